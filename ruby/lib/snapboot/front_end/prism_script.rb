# frozen_string_literal: true

# The main script of a Ruby that parses with Prism (3.4). When the -r libraries have been loaded, Ruby has mapped the file of
# the script, and what it is about to parse lies on the C stack, in a structure that ends with
#
#   pm_options_t options    among others `line`, `main_script`, and `command_line`, which says whether the text comes from -e
#   pm_string_t input       address, length and kind of the text
#
# So a main script is exchanged by changing these, and the name as MainScript does it. The freeze happens in the last -r: a
# call of `require` on the main object that never gets to be one.
class PrismScript < MainScript
  OPTIONS_SIZE = 104
  # Where the options have their fields.
  LINE = 40
  COMMAND_LINE = 92
  MAIN_SCRIPT = 95
  # Values of `command_line` and of the kinds of text.
  FROM_CODE = 2
  CONSTANT = 0
  MAPPED = 3
  INPUT = "QQL"
  POINTER_AT = 24

  # Whether this Ruby parses its main script with Prism. (3.3 can be told to, and lays things out in another way.)
  def self.parses?
    RUBY_DESCRIPTION.include?("+PRISM") && RUBY_VERSION.start_with?("3.4.")
  end

  # There is nothing that a start would have to learn.
  def self.warm_up; end

  def initialize # rubocop:disable Lint/MissingSuper
    @path = $0
  end

  # Calls the block when the script is about to be parsed.
  def before_parse(&block)
    main = TOPLEVEL_BINDING.receiver
    main.define_singleton_method(:require) do |_feature|
      main.singleton_class.__send__(:remove_method, :require)
      block.call
    end
  end

  # Makes the script exchangeable; to be called while freezing. Raises NotFound.
  def prepare_exchange
    open_memory do |memory|
      @input = find_input(memory)
      # The page of the stand-in's file becomes the process' own: an image does not depend on this installation.
      memory.pwrite("#", memory.pread(8, @input).unpack1("Q"))
    end
    supply("")
    find_name
  end

  # Makes the name of the script exchangeable, and the script with it; to be called while freezing.
  def prepare_renaming(always: false)
    super
    open_memory { |memory| @input = find_input(memory) } if @name
  rescue NotFound
    @name = nil
  end

  # Runs the file +path+. False when it cannot.
  def run_file(path)
    return false unless File.file?(path)

    supply(File.binread(path))
    rename(path, pathless: false)
  rescue SystemCallError
    false # Ruby's own message for a missing or unreadable script is wanted
  end

  # Runs what standard input holds. False when it cannot, with STDIN as it was.
  def run_stdin
    input = StandardInput.new
    text = input.program
    return input.put_back(text) unless same_in_utf8?(text) && parsed?(text)

    supply(text)
    input.define_data
    rename("-", pathless: true)
  rescue IOError, SystemCallError
    false
  end

  private

  def open_memory(&block)
    File.open("/proc/self/mem", "r+b", &block)
  end

  # Ruby obeys the options in a first line of a script only.
  def says_errors_alike?(code)
    !code.start_with?("#!") && parsed?(code)
  end

  # Error messages do not quote the code of -e.
  def keep_lines
    open_memory { |memory| memory.pwrite([FROM_CODE].pack("C"), @input - OPTIONS_SIZE + COMMAND_LINE) }
  end

  def supply(text)
    @text = String.new(capacity: LONG_NAME) << text.b # its buffer must not lie in the object, which may move
    open_memory { |memory| memory.pwrite([buffer_of(@text, memory), @text.bytesize, CONSTANT].pack(INPUT), @input) }
    true
  end

  def buffer_of(text, memory)
    address = memory.pread(8, ObjectHeader.address(text) + POINTER_AT).unpack1("Q")
    start = text.byteslice(0, LONG_NAME)
    raise NotFound, "its text is not laid out as expected" unless memory.pread(LONG_NAME, address).start_with?(start)

    address
  end

  # The address of `input`.
  def find_input(memory)
    maps = File.read("/proc/self/maps").lines(chomp: true) # without a trace in $.
    text = maps.find { |line| line.end_with?(" #{File.realpath(@path)}") }
    stack = maps.find { |line| line.end_with?("[stack]") }
    raise NotFound, "its file is not mapped, or there is no stack" unless text && stack

    start, stop = stack[/\S+/].split("-").map(&:hex)
    wanted = [text[/\h+/].hex, File.size(@path), MAPPED].pack(INPUT)
    at = memory.pread(stop - start, start).rindex(wanted)
    raise NotFound, "nothing on the stack refers to it" unless at

    check_options(memory.pread(OPTIONS_SIZE, start + at - OPTIONS_SIZE))
    start + at
  end

  def check_options(options)
    return if [options.unpack1("l", offset: LINE), options.getbyte(COMMAND_LINE), options.getbyte(MAIN_SCRIPT)] == [1, 0, 1]

    raise NotFound, "the parser's options are not laid out as expected"
  end
end
