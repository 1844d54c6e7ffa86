# frozen_string_literal: true

# Freezes where the program first calls a certain method (`snapboot freeze --at 'Class#method'`), before its first line. What
# looks out for that call leaves no frame beneath it.
class FreezeAt
  CLASS_OF = Kernel.instance_method(:class)
  NAME = Module.instance_method(:name)

  # +request+: names the method. `Class.method` is one of the class itself.
  def initialize(request)
    @request = request
    @name = request.value("at")
    @owner, @kind, method = @name.match(/\A([^#]+)([#.])([^#.]+)\z/)&.captures
    @method = method&.to_sym
  end

  # Calls the block at the first such call in the main thread; it returns in the thawed process. Returns true.
  def begin
    trace = TracePoint.new(:call) do |event|
      next unless event.method_id == @method && Thread.current == Thread.main && it?(event)

      trace.disable
      yield
    end
    trace.enable
    true
  end

  # Falls back where this start has another command line than the frozen process.
  def check(context)
    return if context.main_words == @request.list("argv")[@request.main_index..]

    context.fall_back("the image was frozen at #{@name}, and the program was called by another name")
  end

  # What to say of a program that has ended without the call.
  def never_reached
    why = if @method.nil?
            "--at wants Class#method, or Class.method for one of the class itself, as in --at 'Server#run'"
          elsif !Object.const_defined?(@owner)
            "it has not loaded #{@owner}. Check the name"
          else
            "it does not call that method with the given arguments, or calls it outside the main thread. Name another one"
          end
    "the program ended without calling #{@name}: #{why}."
  rescue NameError
    "the program ended without calling #{@name}: #{@owner} is no name of a class or module. Check it."
  end

  private

  # Whether a call is one of the method, be it inherited or overridden.
  def it?(event)
    receiver = event.self
    return Module === receiver && NAME.bind_call(receiver) == @owner if @kind == "." # rubocop:disable Style/CaseEquality

    [event.defined_class, CLASS_OF.bind_call(receiver)].any? { |kind| NAME.bind_call(kind) == @owner }
  end
end
