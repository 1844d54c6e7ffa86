# frozen_string_literal: true

# What tells the code of methods and closures apart, for ObjectPaths: where it stands, and what it is where that is not
# enough. Code of a file is as the file is, which counts anyway; but a line may have more than one piece, of which a fact
# chooses, and code of a text follows from no file.
class ObjectCode
  OF = RubyVM::InstructionSequence.method(:of)
  # What begins a piece of code: a line that has more of these than one is looked at.
  BEGINNING = /\{|\bdo\b|\bdef\b/n
  LOCATION, TEXT, LAMBDA = %i[source_location inspect lambda?].map { |name| Proc.instance_method(name) }

  def initialize
    @lines = {}
  end

  # Bytes for a Proc, whose +place+ is its source location.
  def closure(object, place)
    # One of C code: which method it is made of.
    return TEXT.bind_call(object).b.gsub(/0x\h+/n, "") if place.nil?

    "#{place.join(":").b} #{LAMBDA.bind_call(object)} #{digest(OF.call(object), place.last)}".b
  end

  # Bytes for an UnboundMethod. One in C has no place, but it was defined under some name by some module.
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

  # Whether no more than one piece of code begins in that line of a file.
  def alone?(path, line)
    lines = (@lines[path] ||= File.binread(path).lines)
    line.positive? && lines[line - 1].to_s.scan(BEGINNING).size == 1
  rescue SystemCallError
    false
  end
end
