# frozen_string_literal: true

# Finds times that the program has taken while it booted, and its process number, where it keeps them: a thaw would keep the
# old ones.
#
# A program reads the clock often and rarely keeps the result, so only the final constants and variables of modules and
# classes count: a number or a date between the beginning of the boot and now, or a text with the date and the minute. A
# process number also needs a constant with a fitting name: variables that hold one mostly serve to detect a fork, and a thaw
# is one.
class Times
  NAME = Module.instance_method(:name)
  # The name of such a constant.
  PROCESS = /\A::.*(?:pid|process)/i
  # As long as 20260102T0304; a text longer than the other limit is more than a time.
  SHORTEST = 12
  LONGEST = 200
  # Of a longer boot, only the first minutes are searched for in texts.
  MAX_MINUTES = 30
  private_constant :NAME, :PROCESS, :SHORTEST, :LONGEST, :MAX_MINUTES

  # +directory+: the control directory, whose request is as old as the boot.
  def initialize(directory)
    now = Time.now
    ends = [now.to_f, Process.clock_gettime(Process::CLOCK_MONOTONIC)]
    began = File.mtime("#{directory}/request")
    took = now - began
    # From when to when by each clock: first that of the time since 1970, then the one with another origin.
    @windows = ends.map { |finish| (finish - took)..finish }
    minutes = (began.to_i / 60..now.to_i / 60).first(MAX_MINUTES).map { |minute| Time.at(minute * 60) }
    minutes += minutes.map(&:getutc)
    @days = minutes.map { |time| [time.year, time.month, time.day] }.uniq
    @stamps = minutes.flat_map { |time| stamps(time) }.uniq
    @marks = @stamps.map(&:first).uniq
    @dates = Object.const_defined?(:Date) && !Object.autoload?(:Date) ? [Object.const_get(:Date)] : []
  end

  # Returns pairs of :time or :pid and the name that holds it (Module::NAME, Module@name), sorted.
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
    nil # one of them may not be read
  end
  # The original methods, whatever the program has put in their place.
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
    # Hardly any of the thousands of texts has one of these.
    @marks.any? { |mark| text.include?(mark) } &&
      @stamps.any? { |mark, rests| text.include?(mark) && rests.any? { |rest| text.include?(rest) } }
  end

  # Returns the ways to write a minute: pairs of a rare part, and the texts that may stand beside it.
  def stamps(time)
    dates = %w[- / .].flat_map { |mark| %w[%Y-%m-%d %m-%d-%Y %d-%m-%Y].map { |form| time.strftime(form.tr("-", mark)) } }
    dates += ["%b %e ", "%b %d", "%d %b", "%d/%b/%Y"].map { |form| time.strftime(form) }
    in_one = time.strftime("%Y%m%d")
    [[time.strftime("%H:%M"), dates], [in_one, ["", "T", "-", "_"].map { |mark| in_one + mark + time.strftime("%H%M") }]]
  end

  # Soon after the machine's start, a setting such as 30.0 seconds might look like a time.
  def fits?(seconds)
    windows = (seconds * 1000 % 1).zero? ? @windows.take(1) : @windows
    windows.any? { |window| window.cover?(seconds) }
  end
end
