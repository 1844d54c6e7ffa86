# frozen_string_literal: true

# The main script of a Ruby that parses with Prism (3.4). After loading the -r libraries, Ruby has mapped the file of the
# script. The C stack holds what it is about to parse, in a structure that ends with
#
#   pm_options_t options    among others `line`, `main_script`, and `command_line`, which says whether the text comes from -e
#   pm_string_t input       address, length and kind of the text
#
# So changing these, and the name as MainScript does, exchanges the main script. The freeze happens in the last -r: a call of
# `require` on the main object that never becomes one.
class PrismScript < MainScript
  OPTIONS_SIZE = 104
  # The offsets of the options' fields.
  LINE = 40
  COMMAND_LINE = 92
  MAIN_SCRIPT = 95
  # Values of `command_line` and of the kinds of text.
  FROM_CODE = 2
  CONSTANT = 0
  MAPPED = 3
  INPUT = "QQL"

  # Whether this Ruby parses its main script with Prism. (3.3 can be told to, but has another layout.)
  def self.parses?
    RUBY_DESCRIPTION.include?("+PRISM") && RUBY_VERSION.start_with?("3.4.")
  end

  # A start has nothing to learn here.
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

  # Makes the script exchangeable. Call while freezing. Raises NotFound.
  def prepare_exchange
    ObjectHeader.open_memory do |memory|
      @input = find_input(memory)
      # The page of the stand-in's file becomes private memory: an image does not depend on this installation.
      memory.pwrite("#", memory.pread(8, @input).unpack1("Q"))
    end
    supply("")
    find_name
  end

  # Makes the script and its name exchangeable. Call while freezing.
  def prepare_renaming(always: false)
    super
    ObjectHeader.open_memory { |memory| @input = find_input(memory) } if @name
  rescue NotFound
    @name = nil
  end

  # Runs the file +path+. False if that is impossible.
  def run_file(path)
    return false unless File.file?(path)

    supply(File.binread(path))
    rename(path, pathless: false)
  rescue SystemCallError
    false # Ruby reports a missing or unreadable script itself
  end

  # Runs the program on standard input. False if that is impossible, with STDIN as it was.
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

  # Ruby obeys the options in a first line of a script only.
  def says_errors_alike?(code)
    !code.start_with?("#!") && parsed?(code)
  end

  # Error messages do not quote the code of -e.
  def keep_lines
    write([FROM_CODE].pack("C"), @input - OPTIONS_SIZE + COMMAND_LINE)
  end

  def supply(text)
    @text = String.new(capacity: ObjectHeader::LONG) << text.b # its contents must not lie in the object, which may move
    write([ObjectHeader.contents(@text), @text.bytesize, CONSTANT].pack(INPUT), @input)
    true
  end

  def write(bytes, address)
    ObjectHeader.open_memory { |memory| memory.pwrite(bytes, address) }
  end

  # Returns the address of `input`.
  def find_input(memory)
    raise NotFound, "strings are not laid out as expected" unless ObjectHeader.layout_known?

    maps = File.read("/proc/self/maps").lines(chomp: true) # does not change $.
    text = maps.find { |line| line.end_with?(" #{File.realpath(@path)}") }
    stack = maps.find { |line| line.end_with?("[stack]") }
    raise NotFound, "its file is not mapped, or there is no stack" unless text && stack

    start, stop = stack[/\S+/].split("-").map(&:hex)
    start + input_in(memory.pread(stop - start, start), text[/\h+/].hex, File.size(@path))
  end

  # Returns the offset of `input` in the stack: the last place that holds the text's address and size, which has options of
  # a main script before it. Raises NotFound.
  def input_in(stack, address, size)
    wanted = [address, size, MAPPED].pack(INPUT)
    at = stack.rindex(wanted)
    raise NotFound, "nothing on the stack refers to it" unless at
    raise NotFound, "the parser's options are not laid out as expected" unless
      at >= OPTIONS_SIZE && of_main_script?(stack.byteslice(at - OPTIONS_SIZE, OPTIONS_SIZE))

    at
  end

  def of_main_script?(options)
    [options.unpack1("l", offset: LINE), options.getbyte(COMMAND_LINE), options.getbyte(MAIN_SCRIPT)] == [1, 0, 1]
  end
end
