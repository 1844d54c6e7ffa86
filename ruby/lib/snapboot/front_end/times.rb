# frozen_string_literal: true

# Times that the program has taken while it booted, and its process number, where it keeps them: a thaw has them as they are.
#
# A program reads the clock all the time and hardly ever keeps what it says, so what counts is what is found in constants and
# variables of modules and classes in the end: a number or a date between the beginning of the boot and now, or a text with
# the date and the minute. A process number is known by the name of a constant as well: variables that hold one mostly serve
# to notice a fork, which a thaw is.
class Times
  NAME = Module.instance_method(:name)
  # Of a constant.
  PROCESS = /\A::.*(?:pid|process)/i
  # As 20260102T0304 is; a longer text than the other says more than a time.
  SHORTEST = 12
  LONGEST = 200
  # Of a boot that takes longer, only the first minutes are looked for in texts.
  MAX_MINUTES = 30
  private_constant :NAME, :PROCESS, :SHORTEST, :LONGEST, :MAX_MINUTES

  # +directory+: the control directory, whose request is as old as the boot.
  def initialize(directory)
    now = Time.now
    ends = [now.to_f, Process.clock_gettime(Process::CLOCK_MONOTONIC)]
    began = File.mtime("#{directory}/request")
    took = now - began
    # From when to when by each clock: that of the time since 1970 first, then the one that counts from some other moment.
    @windows = ends.map { |finish| (finish - took)..finish }
    minutes = (began.to_i / 60..now.to_i / 60).first(MAX_MINUTES).map { |minute| Time.at(minute * 60) }
    minutes += minutes.map(&:getutc)
    @days = minutes.map { |time| [time.year, time.month, time.day] }.uniq
    @stamps = minutes.flat_map { |time| stamps(time) }.uniq
    @marks = @stamps.map(&:first).uniq
    @dates = Object.const_defined?(:Date) && !Object.autoload?(:Date) ? [Object.const_get(:Date)] : []
  end

  # Pairs of :time or :pid and the name of what keeps it (Module::NAME, Module@name), sorted.
  def kept
    found = []
    verbose = $VERBOSE
    $VERBOSE = nil # constants may be deprecated
    ObjectSpace.each_object(Module) do |owner|
      name = NAME.bind_call(owner)
      next unless name

      each_value(owner) do |suffix, value|
        kind = kind_of(suffix, value)
        found << [kind, "#{name}#{suffix}".delete_prefix("Object::")] if kind
      end
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

  def kind_of(name, value)
    if time?(value) then :time
    elsif value.equal?(Process.pid) && name.match?(PROCESS) then :pid
    end
  end

  def time?(value)
    case value
    when Time then @windows.first.cover?(value.to_f)
    when Integer then fits?(value / 1e9)
    when Float then fits?(value)
    when String then value.bytesize.between?(SHORTEST, LONGEST) && stamp?(value)
    when *@dates then date?(value)
    else false
    end
  end

  # DateTime is a Date, too.
  def date?(value)
    return @windows.first.cover?(value.to_time.to_f) if value.respond_to?(:hour)

    @days.include?([value.year, value.month, value.day])
  end

  def stamp?(text)
    text = text.b
    # Hardly any text has one of these, and there are thousands of texts.
    @marks.any? { |mark| text.include?(mark) } &&
      @stamps.any? { |mark, rests| text.include?(mark) && rests.any? { |rest| text.include?(rest) } }
  end

  # How a minute is written: pairs of a part that is rare, and what may be beside it.
  def stamps(time)
    dates = %w[- / .].flat_map { |mark| %w[%Y-%m-%d %m-%d-%Y %d-%m-%Y].map { |form| time.strftime(form.tr("-", mark)) } }
    dates += ["%b %e ", "%b %d", "%d %b", "%d/%b/%Y"].map { |form| time.strftime(form) }
    in_one = time.strftime("%Y%m%d")
    [[time.strftime("%H:%M"), dates], [in_one, ["", "T", "-", "_"].map { |mark| in_one + mark + time.strftime("%H%M") }]]
  end

  # Soon after a machine has started, a setting such as 30.0 seconds might be taken for a time.
  def fits?(seconds)
    windows = (seconds * 1000 % 1).zero? ? @windows.take(1) : @windows
    windows.any? { |window| window.cover?(seconds) }
  end
end
