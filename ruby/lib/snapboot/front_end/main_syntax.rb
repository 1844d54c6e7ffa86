# frozen_string_literal: true

# Checks whether the main part of a command can be parsed at all, without running it or printing anything.
class MainSyntax
  # Options that change how a program is read: in loops (-n, -p ...) or in another encoding. Programs read with these are
  # left to the start.
  READING = /\A-[^IrwW-]*[npalxsSKEU]|\A--(?:enc|ext|int)/

  def initialize(request)
    @request = request
  end

  # Returns the SyntaxError that would end each start of the program; nil if there is none, or none that is certain.
  def error
    return if @request.leaves_script?
    return if (@request.options + ENV.fetch("RUBYOPT", "").split).any? { |word| word.match?(READING) }

    verbose = $VERBOSE
    $VERBOSE = nil
    parse
    nil
  rescue SyntaxError => e
    e.set_backtrace([]) # that of the look, not of the program
    e
  rescue StandardError
    nil
  ensure
    $VERBOSE = verbose
  end

  private

  # The parser alone decides; the compiler then words the error with the file's name.
  def parse
    case @request.main
    when :script
      script = @request.value("script")
      parsed { RubyVM::AbstractSyntaxTree.parse_file(script) } || RubyVM::InstructionSequence.compile_file(script)
    when :code
      code = @request.command.code
      return unless code && (code.ascii_only? || code.encoding == Encoding::UTF_8)

      parsed { RubyVM::AbstractSyntaxTree.parse(code) } || RubyVM::InstructionSequence.compile(code, "-e", "-e")
    end
  end

  def parsed
    yield
    true
  rescue SyntaxError
    false
  end
end
