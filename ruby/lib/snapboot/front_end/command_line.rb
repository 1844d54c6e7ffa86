# frozen_string_literal: true

# Reads a command line the way the ruby command does, as far as it can be honoured in a running process.
class CommandLine
  # +kind+ is :script, :stdin or :code; +name+ is what $0 will be.
  attr_reader :kind, :name, :code, :arguments, :features, :directories, :verbose

  # +words+: the command line after the interpreter's options.
  def initialize(words)
    @words = words.dup
    @features = []
    @directories = []
    @verbose = :unchanged
    @honoured = true
    read_options
    read_main if @honoured
  end

  # False when only a real start of the interpreter can honour the options.
  def honoured?
    @honoured
  end

  # True when an option could change what the frozen part of the program loaded or printed.
  def changes_preload?
    !@directories.empty? || @verbose != :unchanged
  end

  private

  def read_options
    while @honoured && (word = @words.first) && word.start_with?("-") && word != "-"
      @words.shift
      break if word == "--"

      read_option(word)
    end
  end

  def read_option(word)
    case word[1]
    when "e" then add_code(argument(word))
    when "r" then add(@features, argument(word))
    when "I" then add_directories(argument(word))
    when "w", "W" then read_warning_level(word)
    else @honoured = false
    end
  end

  # Returns the rest of the word, or the next word; nil if there is none: Ruby itself then reports that.
  def argument(word)
    word.size > 2 ? word[2..] : @words.shift
  end

  def add(list, value)
    value.nil? || value.empty? ? @honoured = false : list << value
  end

  def add_code(text)
    return @honoured = false unless text

    (@code ||= String.new(encoding: text.encoding)) << text << "\n"
  end

  def add_directories(list)
    return @honoured = false if list.nil? || list.empty?

    list.split(":").each { |directory| add(@directories, directory) }
  end

  def read_warning_level(word)
    case word
    when "-w", "-W", "-W2" then @verbose = true
    when "-W1" then @verbose = false
    when "-W0" then @verbose = nil
    else @honoured = false
    end
  end

  def read_main
    if @code
      # Ruby ignores what follows __END__ in -e; a script would make it DATA.
      return @honoured = false if @code.include?("__END__")

      @kind = :code
      @name = "-e"
    else
      @name = @words.shift || "-"
      @kind = @name == "-" ? :stdin : :script
      @honoured = false if @name.empty?
    end
    @arguments = @words
  end
end
