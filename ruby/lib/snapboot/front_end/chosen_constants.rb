# frozen_string_literal: true

# Constants that a program makes of what a library has chosen by its terminal, each in a line of its own, such as
# MARK = Colour("x").red. They are made again after a thaw that chooses otherwise. That is right as long as nobody has used
# them for anything, which training finds out: in its child they are not there until somebody asks for one.
class ChosenConstants
  BODY = /\A<(?:class|module):/
  CODING = /coding[:=]\s*(?!utf-8)/i
  HAS = Module.instance_method(:const_defined?)
  PLACE = Module.instance_method(:const_source_location)
  private_constant :BODY, :CODING, :HAS, :PLACE

  # What is known of one: its name, and where and how it is made.
  Made = Struct.new(:name, :file, :number, :code, :owner)

  # +line+: the pattern of such a line, and in it the name.
  def initialize(line)
    @line = line
    @made = []
    @hidden = {}
  end

  # Whether the choice is taken in this frame for such a constant. +used+: to be called when it is used.
  def take(frame, &used)
    made = made_in(frame) if Recipes.training
    return false if made.nil? || @made.any? { |other| other.to_a == made.to_a }

    @made << made
    hide_when_made(made, used) if Recipes.training == :trial
    true
  end

  # Finds who has them. Returns false where that is not to be known.
  def find
    @made.each do |made|
      made.owner = ObjectSpace.each_object(Module).find { |owner| made_in?(owner, made) }
    end
    @made.all?(&:owner)
  end

  def make
    @made.each do |made|
      made.owner.__send__(:remove_const, made.name)
      made.owner.class_eval(made.code, made.file, made.number)
    end
  end

  # Somebody asks for a constant that is not there. Whether it is by now.
  def asked(owner, name)
    value, used = @hidden.delete([owner, name])
    return false unless used

    used.call
    owner.const_set(name, value)
    true
  end

  private

  def made_in(frame)
    return unless frame&.absolute_path && frame.label.match?(BODY)

    lines = File.readlines(frame.absolute_path, encoding: Encoding::UTF_8)
    code = lines[frame.lineno - 1].to_s.strip
    return if !code.valid_encoding? || lines.first(2).any? { |line| line.b.match?(CODING) }

    Made.new(code[@line, 1].to_sym, frame.absolute_path, frame.lineno, code) if code.match?(@line)
  rescue SystemCallError
    nil
  end

  def made_in?(owner, made)
    HAS.bind_call(owner, made.name, false) && PLACE.bind_call(owner, made.name, false) == [made.file, made.number]
  end

  # At once, so that the next line does not find it.
  def hide_when_made(made, used)
    trace = TracePoint.new(:line, :end) do |point|
      next if point.path != made.file || point.lineno == made.number

      trace.disable
      hide(point.self, made, used)
    end
    trace.enable
  end

  def hide(owner, made, used)
    return unless owner.is_a?(Module) && made_in?(owner, made)
    # Nobody would ask the owner then.
    return used.call if owner.singleton_class.method_defined?(:const_missing, false) && !@hidden.key?(owner)
    return used.call if found_elsewhere?(owner, made.name)

    @hidden[[owner, made.name]] = [owner.__send__(:remove_const, made.name), used]
    watch(owner) unless @hidden.key?(owner)
  end

  def watch(owner)
    @hidden[owner] = nil
    constants = self
    owner.define_singleton_method(:const_missing) do |name|
      constants.asked(owner, name) ? owner.const_get(name) : super(name)
    end
  end

  def found_elsewhere?(owner, name)
    around = owner.name.to_s.split("::")[0...-1]
    outer = around.each_index.map { |last| Object.const_get(around[0..last].join("::")) }
    [Object, *owner.ancestors.drop(1), *outer].any? { |other| HAS.bind_call(other, name, false) }
  end
end
