# frozen_string_literal: true

# Identifies the code of methods and closures, for ObjectPaths: by its place, and by its contents if the place is not enough.
# Code of a file follows from the file, which counts anyway. But one line may have several pieces of code, and a fact may
# choose among them; and code from a text follows from no file.
class ObjectCode
  OF = RubyVM::InstructionSequence.method(:of)
  # The beginning of a piece of code: a line with several of these needs a closer look.
  BEGINNING = /\{|\bdo\b|\bdef\b/n
  LOCATION, TEXT, LAMBDA = %i[source_location inspect lambda?].map { |name| Proc.instance_method(name) }

  def initialize
    @lines = {}
  end

  # Returns bytes that identify a Proc, whose +place+ is its source location.
  def closure(object, place)
    # A Proc of C code: identified by the method it is made from.
    return TEXT.bind_call(object).b.gsub(/0x\h+/n, "") if place.nil?

    "#{place.join(":").b} #{LAMBDA.bind_call(object)} #{digest(OF.call(object), place.last)}".b
  end

  # Returns bytes that identify an UnboundMethod. One in C has no place, but a module has defined it under some name.
  def method(object, code = OF.call(object))
    place = object.source_location
    name = "#{ObjectPaths::NAME.bind_call(object.owner)&.b}##{object.original_name.name.b}"
    "#{name} #{place&.join(":")&.b} #{digest(code, place&.last)}".b
  end

  private

  def digest(code, line)
    return if code.nil? || code.path.start_with?("<internal:") || (code.absolute_path && alone?(code.absolute_path, line))

    contents = code.to_a
    ObjectPaths.digest(Marshal.dump(contents))
  rescue TypeError
    ObjectPaths.digest(contents.inspect.b)
  end

  # Whether at most one piece of code begins in that line of a file.
  def alone?(path, line)
    lines = (@lines[path] ||= File.binread(path).lines)
    line.positive? && lines[line - 1].to_s.scan(BEGINNING).size == 1
  rescue SystemCallError
    false
  end
end
