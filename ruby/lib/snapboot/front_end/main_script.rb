# frozen_string_literal: true

# The script that Ruby is about to run. After loading the -r libraries, Ruby holds the main script as an open file, but has
# not parsed it: that is the default freeze point. Ruby then does this, in C:
#
#   stream.set_encoding(...)   the one call that can be seen from Ruby, so everything happens in here
#   parse the lines of stream, under the name `name`
#   stream.set_encoding(...)   again
#   path = realpath(name), unless the name it was started with is "-"
#   run it
#
# So changing the contents of `stream` and of `name` exchanges the main script, and Ruby itself runs it in the ordinary way:
# with no frame of ours below it, and with DATA, __dir__ and TOPLEVEL_BINDING as always.
class MainScript
  # Raised when Ruby does not hold the script the way described above.
  class NotFound < StandardError; end

  SYNTAX_ERRORS_DIFFER = RUBY_VERSION >= "3.2"
  # Ruby has forgotten the line number of a shebang when the script is parsed.
  FORGETS_LINE_NUMBER = RUBY_VERSION >= "3.2"
  # A text pushed back must fit into the buffer of the stream.
  LARGEST_PUSHBACK = 8192
  LARGEST_PIPE = 1 << 20
  SET_PIPE_SIZE = 1031

  # The stream from which the main script is read.
  attr_reader :stream

  # Does on another script what a thaw will do to the main script: see FreezeRun#warm_up.
  def self.warm_up
    File.open(__FILE__) do |file|
      script = allocate
      script.__send__(:stand_in, file)
      script.before_parse { script.run_code("nil\n") }
      2.times { file.set_encoding(Encoding::UTF_8) }
    end
  end

  # Finds the script that Ruby was started with. Raises NotFound.
  def initialize
    @path = $0
    @stream = ObjectSpace.each_object(File).find { |file| !file.closed? && file.path == @path }
    raise NotFound, "no open file named #{@path}" unless @stream
  end

  # Calls the block when the script is about to be parsed.
  def before_parse(&block)
    script = self
    on_set_encoding do |encodings|
      script.stop_watching
      script.take_lines
      block.call
      encodings[0] = script.encoding || encodings[0]
    end
  end

  # Call when Ruby has checked whether to keep the text.
  def take_lines
    Object.__send__(:remove_const, :SCRIPT_LINES__) if @lines
    @kept_lines = @lines&.values&.first
    @lines = nil
  end

  # Makes the script exchangeable. Call while freezing. Raises NotFound.
  def prepare_exchange
    # Only pushed-back text will be parsed, and an image does not depend on this installation's files.
    @stream.reopen(File::NULL)
    find_name
    return if Object.const_defined?(:SCRIPT_LINES__)

    @lines = {}
    Object.const_set(:SCRIPT_LINES__, @lines) # see #keep_lines
  end

  # Makes the script's name exchangeable. Call while freezing. Otherwise the script keeps its name or falls back. +always+:
  # also for an absolute path, which only a link leads to under another name.
  def prepare_renaming(always: false)
    find_name if always || !@path.start_with?("/")
  rescue NotFound
    @name = nil
  end

  # Call right before the freeze: code that uses the name as a path while it is open would give it another buffer.
  def open_name
    ObjectHeader.thaw(@name) if @name
  end

  # Runs the script under the name that it was frozen with.
  def keep_name
    @name&.freeze
  end

  # Runs the script under its absolute path if the relative one leads elsewhere, or under that of a link to it. False if that
  # is impossible.
  def take_path(path)
    !@name.nil? && run_file(path)
  end

  # Runs +code+ as `ruby -e` does. False if that is impossible.
  def run_code(code)
    return false unless same_in_utf8?(code) && says_errors_alike?(code) && supply(code)

    keep_lines
    rename("-e", pathless: true)
  end

  # Runs the file +path+. False if that is impossible, or if its first line has options for the interpreter.
  def run_file(path)
    @stream.reopen(path)
    return false unless skip_shebang

    rename(path, pathless: false)
  rescue SystemCallError
    false # Ruby reports a missing or unreadable script itself
  end

  # Runs the program on standard input. As in an ordinary start its lines come from STDIN, so text after the program stays
  # there. False if that is impossible, with STDIN as it was.
  def run_stdin
    input = StandardInput.new
    text = input.program
    return input.put_back(text) unless says_errors_alike?(text)

    supply_any(text)
    return input.put_back(text) unless skip_shebang

    @encoding = Encoding.find("locale")
    on_set_encoding do |encodings|
      stop_watching
      @kept_lines&.clear # Ruby does not keep them either
      input.take_over(encodings)
    end
    rename("-", pathless: true)
  rescue IOError, SystemCallError
    false
  end

  # The encoding of the source, if it differs from Ruby's default for files.
  attr_reader :encoding

  # Removes the hook.
  def stop_watching
    @stream.singleton_class.__send__(:remove_method, :set_encoding)
  end

  private

  # Finds the string from which Ruby takes the script's name. Of a short name Ruby has an interned copy as well. Raises
  # NotFound.
  def find_name
    raise NotFound, "strings are not laid out as expected" unless ObjectHeader.layout_known?

    @title = $0 unless $0.frozen? # from 3.2 on, it is the name itself
    GC.start if strings_like_name.size > 1 # drops the copies that Ruby makes of paths it opens
    names = strings_like_name
    raise NotFound, "#{names.size} strings hold its name" unless names.size == 1

    @name = names.first
  end

  def strings_like_name
    names = ObjectSpace.each_object(String).select do |text|
      text.frozen? && text.encoding == Encoding.find("locale") && text == @path
    end
    return names unless names.size > 1

    # $0 was made from it.
    shared = ObjectHeader.contents($0)
    sources = names.select { |text| text.equal?($0) || (shared && ObjectHeader.contents(text) == shared) }
    sources.size == 1 ? sources : names.reject { |text| ObjectHeader.unique?(text) }
  end

  def stand_in(file)
    @stream = file
    @title = +""
    @name = "as long as the name of stand_in_for_main.rb, which Ruby keeps outside of the object".ljust(ObjectHeader::LONG)
    @stream.read
  end

  # Calls the block with the arguments, which it may change, before Ruby sets the encoding of the stream.
  def on_set_encoding
    ordinary = IO.instance_method(:set_encoding)
    @stream.define_singleton_method(:set_encoding) do |*encodings|
      yield encodings
      ordinary.bind_call(self, *encodings)
    end
  end

  # Code in -e has the encoding of the locale. But when its lines are kept, see below, the parser takes it for UTF-8. In
  # other locales, only code goes on whose result cannot depend on the encoding of its literals.
  def same_in_utf8?(code)
    Encoding.find("locale") == Encoding::UTF_8 ||
      (code.ascii_only? && !code.match?(/\\|<<|%c|ncod|ENCOD|Marshal|concat|force|chr|pack/))
  end

  # From 3.2 on, Ruby words the syntax errors of a script differently from those of -e and of standard input.
  def says_errors_alike?(code)
    !SYNTAX_ERRORS_DIFFER || parsed?(code)
  end

  def parsed?(code)
    verbose = $VERBOSE
    $VERBOSE = nil
    RubyVM::InstructionSequence.compile(code)
    true
  rescue SyntaxError
    false
  ensure
    $VERBOSE = verbose
  end

  # Error messages quote the code that they are about. For them, Ruby keeps the text of an ordinary -e, but not of a script.
  # It also does so with SCRIPT_LINES__, which it checks right before it sets the encoding, or (3.1) with keep_script_lines.
  def keep_lines
    return if @kept_lines || !RubyVM.respond_to?(:keep_script_lines) || RubyVM.keep_script_lines

    RubyVM.keep_script_lines = true
    script = self
    on_set_encoding do
      script.stop_watching
      RubyVM.keep_script_lines = false
    end
  end

  def supply(code)
    return false if code.bytesize > LARGEST_PIPE

    if code.bytesize <= LARGEST_PUSHBACK
      @stream.ungetbyte(code)
    else
      reader, writer = IO.pipe
      writer.fcntl(SET_PIPE_SIZE, code.bytesize)
      writer.write(code)
      writer.close
      @stream.reopen(reader)
      reader.close
    end
    true
  end

  # Text of any size, through a nameless file if needed.
  def supply_any(text)
    @stream.reopen(StandardInput.nameless(text)) unless supply(text)
  end

  # Ruby drops the text of a first line that names it, and obeys its options. False for lines that Ruby treats otherwise.
  def skip_shebang
    first = @stream.getbyte
    second = @stream.getbyte if first == 35
    if second == 33
      number = $.
      line = @stream.gets.to_s
      $. = number if FORGETS_LINE_NUMBER
      at = line.index("ruby")
      return false if at.nil? || line.index(" -", at) || line.end_with?("\r\n")

      @stream.ungetbyte("!\n")
    elsif second
      @stream.ungetbyte(second)
    end
    @stream.ungetbyte(first) if first
    true
  end

  # Ruby has two references to the name: the string, and a C pointer to its first buffer, which it compares with "-" to
  # decide whether there is a path at all. The copy takes over that buffer, and is kept so that the pointer stays valid. That
  # is why the name must be long: the buffer of a short one lies in the string itself.
  def rename(name, pathless:)
    @title&.replace(name) # -r libraries may read $0; Ruby sets it again
    if pathless
      @name.setbyte(0, 45)
      @name.setbyte(1, 0)
    end
    @first_buffer = @name.dup
    @name.replace(name).freeze
    true
  end
end
