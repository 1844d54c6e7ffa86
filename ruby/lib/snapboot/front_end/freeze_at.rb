# frozen_string_literal: true

# Freezes where the program first calls one of certain methods (`snapboot freeze --at 'Class#method'`, or a recipe), before
# its first line. What looks out for that call leaves no frame beneath it.
class FreezeAt
  # +request+: names the methods. `Class.method` is one of the class itself.
  def initialize(request)
    @request = request
    @places = request.list("at").map { |name| Place.new(name) }
    @process = Process.pid
  end

  # Calls the block at the first such call in the main thread, or later, if a recipe says so; it returns in the thawed
  # process. Returns true.
  def begin(&freeze)
    trace = TracePoint.new(:call) do |event|
      next unless Thread.current == Thread.main && @places.any? { |place| place.called?(event) }

      trace.disable
      exit!(1) unless Process.pid == @process # a child, such as a daemon whose parent has ended
      said = Recipes.reached(event.self, &freeze) || yield
      trace.enable if said == :on_the_way
    end
    trace.enable
    true
  end

  # Falls back where this start has another command line than the frozen process.
  def check(context)
    return if context.main_words == @request.list("argv")[@request.main_index..]

    context.fall_back("the image was frozen at #{@places.first.name}, and the program was called by another name")
  end

  # What to say of a program that has ended without the call.
  def never_reached
    "the program ended without calling #{@places.map(&:name).join(" or ")}: #{@places.first.why_not}."
  end

  # A method.
  class Place
    CLASS = Kernel.instance_method(:class)
    NAME = Module.instance_method(:name)
    private_constant :CLASS, :NAME

    attr_reader :name

    def initialize(name)
      @name = name
      @owner, @kind, method = name.match(/\A([^#]+)([#.])([^#.]+)\z/)&.captures
      @method = method&.to_sym
    end

    # Whether a call is one of the method, be it inherited or overridden.
    def called?(event)
      return false unless event.method_id == @method

      receiver = event.self
      return Module === receiver && NAME.bind_call(receiver) == @owner if @kind == "." # rubocop:disable Style/CaseEquality

      [event.defined_class, CLASS.bind_call(receiver)].any? { |kind| NAME.bind_call(kind) == @owner }
    end

    # Why a program may have ended without calling it.
    def why_not
      if @method.nil?
        "--at wants Class#method, or Class.method for one of the class itself, as in --at 'Server#run'"
      elsif !Object.const_defined?(@owner)
        "it has not loaded #{@owner}. Check the name"
      else
        "it does not call that method with the given arguments, or calls it outside the main thread. Name another one"
      end
    rescue NameError
      "#{@owner} is no name of a class or module. Check it"
    end
  end
end
