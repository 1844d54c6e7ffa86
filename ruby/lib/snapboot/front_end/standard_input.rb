# frozen_string_literal: true

# A program on standard input. Ruby reads its lines from STDIN up to __END__, where DATA begins, which is STDIN as well.
class StandardInput
  END_OF_PROGRAM = /\A__END__\r?\n?\z/

  # Returns a nameless file that holds +text+, at its beginning. Raises SystemCallError.
  def self.nameless(text)
    file = File.open("/tmp", File::RDWR | File::TMPFILE, 0o600)
    file.binmode
    file.write(text)
    file.rewind
    file
  end

  def initialize
    @start = position
    @data = false
  end

  # Reads the program, without __END__. Raises IOError or SystemCallError.
  def program
    number = $.
    text = String.new(encoding: Encoding.find("locale"))
    while (line = STDIN.gets("\n"))
      break @data = true if line.b.match?(END_OF_PROGRAM) && complete?(text)

      text << line
    end
    $. = number
    text
  end

  # Undoes the reading. Returns false. Raises IOError or SystemCallError.
  def put_back(text)
    if @start
      STDIN.pos = @start
    else
      STDIN.reopen(self.class.nameless(text + (@data ? "__END__\n" : "") + STDIN.read))
    end
    false
  end

  # Does to STDIN what Ruby does to the file after parsing it.
  def take_over(encodings)
    STDIN.set_encoding(*encodings)
    define_data
  end

  # Makes the rest after the program DATA.
  def define_data
    Object.const_set(:DATA, STDIN) if @data
  end

  private

  def position
    STDIN.pos
  rescue SystemCallError
    nil # a pipe or a terminal
  end

  # Whether __END__ may follow here: inside an unfinished text or comment, it belongs to that.
  def complete?(text)
    verbose = $VERBOSE
    $VERBOSE = nil
    RubyVM::InstructionSequence.compile(text)
  rescue SyntaxError
    false
  ensure
    $VERBOSE = verbose
  end
end
