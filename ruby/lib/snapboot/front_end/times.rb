# frozen_string_literal: true

# Times that the program has taken while it booted, and keeps: a thaw has them as they are.
#
# A program reads the clock all the time and hardly ever keeps what it says, so what counts is what is found in constants and
# variables of modules and classes in the end: a number or a Time between the beginning of the boot and now.
class Times
  NAME = Module.instance_method(:name)
  private_constant :NAME

  # +directory+: the control directory, whose plan is as old as the boot.
  def initialize(directory)
    now = Time.now
    ends = [now.to_f, Process.clock_gettime(Process::CLOCK_MONOTONIC)]
    took = now - File.mtime("#{directory}/plan")
    # From when to when by each clock: that of the time since 1970 first, then the one that counts from some other moment.
    @windows = ends.map { |finish| (finish - took)..finish }
  end

  # The names of what keeps such a time (Module::NAME, Module@name), sorted.
  def kept
    found = []
    verbose = $VERBOSE
    $VERBOSE = nil # constants may be deprecated
    ObjectSpace.each_object(Module) do |owner|
      name = NAME.bind_call(owner)
      each_value(owner) { |suffix, value| found << "#{name}#{suffix}".delete_prefix("Object::") if taken?(value) } if name
    end
    found.sort
  ensure
    $VERBOSE = verbose
  end

  private

  def each_value(owner)
    CONSTANTS.bind_call(owner, false).each do |name|
      yield "::#{name}", GET.bind_call(owner, name, false) unless AUTOLOAD.bind_call(owner, name, false)
    end
    VARIABLES.bind_call(owner).each { |name| yield name, GET_VARIABLE.bind_call(owner, name) }
    CLASS_VARIABLES.bind_call(owner, false).each { |name| yield name, GET_CLASS_VARIABLE.bind_call(owner, name) }
  rescue StandardError, ScriptError
    nil # there is one that nobody may look at
  end
  # Whatever the program has put in their place.
  CONSTANTS, GET, AUTOLOAD = %i[constants const_get autoload?].map { |name| Module.instance_method(name) }
  CLASS_VARIABLES, GET_CLASS_VARIABLE = %i[class_variables class_variable_get].map { |name| Module.instance_method(name) }
  VARIABLES, GET_VARIABLE = %i[instance_variables instance_variable_get].map { |name| Kernel.instance_method(name) }
  private_constant :CONSTANTS, :GET, :AUTOLOAD, :CLASS_VARIABLES, :GET_CLASS_VARIABLE, :VARIABLES, :GET_VARIABLE

  def taken?(value)
    case value
    when Time then @windows.first.cover?(value.to_f)
    when Integer then fits?(value / 1e9)
    when Float then fits?(value)
    else false
    end
  end

  # Soon after a machine has started, a setting such as 30.0 seconds might be taken for a time.
  def fits?(seconds)
    windows = (seconds * 1000 % 1).zero? ? @windows.take(1) : @windows
    windows.any? { |window| window.cover?(seconds) }
  end
end
