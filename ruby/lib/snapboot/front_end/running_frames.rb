# frozen_string_literal: true

# The frames of the program that are being executed where it is frozen in a method of its own: what they hold counts as what
# modules hold.
#
# Only C code can list them: that of the boot archive does. Use this only in a process that is not frozen, since each frame
# gets a Binding.
module RunningFrames
  # The methods before the program can replace them.
  REQUIRE = Kernel.instance_method(Kernel.private_method_defined?(:gem_original_require) ? :gem_original_require : :require)
  CLASS = Kernel.instance_method(:class)
  NAME = Module.instance_method(:name)
  LIBRARIES = %w[.. ../../.. ../../../target/release].freeze
  # Objects of these classes are the interpreter's own, or have a path of their own.
  OTHERS = %w[ObjectSpace::InternalObjectWrapper Class Module Thread Binding Fiber Ractor ThreadGroup TracePoint].freeze
  private_constant :REQUIRE, :CLASS, :NAME, :LIBRARIES, :OTHERS

  # Returns where each frame is, its local variables and its receiver, by number, the outermost first; and the values with
  # which their expressions have begun. +directory+: the front end's. +own_names+: the beginning of the names of its classes.
  # Raises where there is no library for this Ruby.
  def self.all(directory, own_names)
    %w[objspace].push(library(directory)).each { |feature| REQUIRE.bind_call(Object.new, feature) }
    frames = Snapboot::Archive::Native.frames
    outermost = frames.rindex { |place, *| place.path.start_with?(directory) }
    frames = frames.drop(outermost + 1).reverse.map { |place, binding, receiver| [place.to_s, binding || receiver] }
    { "frames" => frames, "values in frames" => values(own_names) }
  end

  def self.library(directory)
    places = LIBRARIES.map { |place| "#{File.expand_path(place, directory)}/libsnapboot_ruby.so" }
    places.find { |place| File.file?(place) }.to_s
  end

  # Returns the objects on the thread's stack below the front end's, by class and number. Their order is that of the stack.
  def self.values(own_names)
    counts = Hash.new(0)
    ObjectSpace.reachable_objects_from(Thread.current).each_with_object({}) do |object, found|
      name = NAME.bind_call(CLASS.bind_call(object)).to_s
      break found if name.start_with?(own_names)

      found["#{name} #{counts[name] += 1}"] = object unless OTHERS.include?(name)
    end
  end
  private_class_method :library, :values
end
