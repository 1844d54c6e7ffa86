# frozen_string_literal: true

# The script that Ruby is about to run. When the -r libraries have been loaded, Ruby already holds the main script as an
# open file, but has not parsed it: that is the default freeze point. What Ruby then does, in C, is:
#
#   stream.set_encoding(...)   the one call that can be seen from Ruby, so everything happens in here
#   parse the lines of stream, under the name `name`
#   stream.set_encoding(...)   again
#   path = realpath(name), unless the name it was started with is "-"
#   run it
#
# So a main script is exchanged by changing what `stream` holds and what `name` says, and Ruby itself runs it in the
# ordinary way: no frame of ours below it, DATA, __dir__ and TOPLEVEL_BINDING as always.
class MainScript
  # Raised when Ruby does not hold the script the way described above.
  class NotFound < StandardError; end

  STRING_TYPE = 0x05
  TYPE_MASK = 0x1f
  FROZEN_FLAG = 1 << 11
  # A text pushed back must fit into the buffer of the stream.
  LARGEST_PUSHBACK = 8192
  LARGEST_PIPE = 1 << 20
  SET_PIPE_SIZE = 1031

  # What the main script is read from.
  attr_reader :stream

  # Finds the script that Ruby was started with. Raises NotFound.
  def initialize
    @path = $0
    @stream = ObjectSpace.each_object(File).find { |file| !file.closed? && file.path == @path }
    raise NotFound, "no open file named #{@path}" unless @stream
  end

  # Calls the block when the script is about to be parsed.
  def before_parse(&block)
    script = self
    parsing = false
    @stream.define_singleton_method(:set_encoding) do |*encodings|
      if parsing
        script.parsed
      else
        parsing = true
        block.call
        encodings[0] = script.encoding || encodings[0]
      end
      super(*encodings)
    end
  end

  # Makes the script exchangeable; to be called while freezing. Raises NotFound.
  def prepare_exchange
    @stream.read # to the end: nothing but what is pushed back will be parsed
    names = ObjectSpace.each_object(String).select do |text|
      text.frozen? && text.encoding == Encoding.find("locale") && text == @path
    end
    raise NotFound, "#{names.size} strings hold its name" unless names.size == 1

    @name = names.first
    thaw_string(@name)
  end

  # Runs +code+ as `ruby -e` does. False when it cannot.
  def run_code(code)
    return false unless supply(code)

    @encoding = Encoding.find("locale")
    # Where error messages find the code that they quote; Ruby keeps the text of an ordinary -e, but not of a script.
    if RubyVM.respond_to?(:keep_script_lines) && !RubyVM.keep_script_lines
      @forget_lines = true
      RubyVM.keep_script_lines = true
    end
    rename("-e", pathless: true)
  end

  # Runs the file +path+. False when it cannot, or when its first line has options for the interpreter.
  def run_file(path)
    @stream.reopen(path)
    return false unless skip_shebang

    rename(path, pathless: false)
  rescue SystemCallError
    false # Ruby's own message for a missing or unreadable script is wanted
  end

  # Runs what standard input holds.
  def run_stdin
    @stream.reopen(STDIN)
    return false unless skip_shebang

    @encoding = Encoding.find("locale")
    rename("-", pathless: true)
  end

  # The encoding of the source, when it is not the one that Ruby takes for files.
  attr_reader :encoding

  # Called when Ruby has parsed the script.
  def parsed
    RubyVM.keep_script_lines = false if @forget_lines
    @stream.singleton_class.__send__(:remove_method, :set_encoding)
  end

  private

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

  # Ruby drops the text of a first line that names it, and obeys the options in it. False for lines it treats otherwise.
  def skip_shebang
    first = @stream.getbyte
    second = @stream.getbyte if first == 35
    if second == 33
      line = @stream.gets.to_s
      at = line.index("ruby")
      return false if at.nil? || line.index(" -", at) || line.end_with?("\r\n")

      @stream.ungetbyte("!\n")
    elsif second
      @stream.ungetbyte(second)
    end
    @stream.ungetbyte(first) if first
    true
  end

  # Ruby has two references to the name: the string, and a C pointer to its first buffer, which it compares with "-" to see
  # whether there is a path at all. The copy takes over that buffer, and is kept so that the pointer stays valid.
  def rename(name, pathless:)
    if pathless
      @name.setbyte(0, 45)
      @name.setbyte(1, 0)
    end
    @first_buffer = @name.dup
    @name.replace(name).freeze
    true
  end

  # Ruby has no way to change a frozen string, which the name is. This happens in the process that is being frozen, to one
  # string that nothing but Ruby's main function knows, after making sure that the header is what it has to be.
  def thaw_string(string)
    address = Kernel.instance_method(:to_s).bind_call(string)[/0x\h+/].hex
    File.open("/proc/self/mem", "r+b") do |memory|
      flags = memory.pread(8, address).unpack1("Q")
      raise NotFound, "its name is not laid out as expected" unless
        flags & TYPE_MASK == STRING_TYPE && flags & FROZEN_FLAG == FROZEN_FLAG

      memory.pwrite([flags & ~FROZEN_FLAG].pack("Q"), address)
    end
    raise NotFound, "its name stays frozen" if string.frozen?
  end
end
