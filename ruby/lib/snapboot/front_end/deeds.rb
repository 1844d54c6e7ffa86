# frozen_string_literal: true

# Records effects of a feature while it is loaded, if they come through methods of Ruby: exit and signal handlers, started
# processes, created files, methods added to existing classes. The hooks are never removed: this is only created in a child
# that ends for good.
class Deeds
  # The effects of methods of these objects.
  CALLS = {
    [Kernel, Kernel.singleton_class] =>
      { at_exit: "has an exit handler (at_exit)", trap: "has a handler of a signal (trap)" },
    [Signal.singleton_class] => { trap: "has a handler of a signal (trap)" },
    [Kernel, Kernel.singleton_class, Process.singleton_class, IO.singleton_class] =>
      %i[fork spawn system ` popen].to_h { |name| [name, "starts another process"] },
    [ENV.singleton_class] => %i[
      []= store update merge! replace clear delete delete_if reject! select! filter! keep_if
    ].to_h { |name| [name, "sets variables of the environment"] }
  }.freeze
  WRITING = File::WRONLY | File::RDWR | File::CREAT
  # The flag with which libraries create a file or folder that they remove at the end.
  TEMPORARY = File::EXCL
  TEMPORARY_MODE = 0o700
  # Labels of the code of a file, outside of all methods and classes.
  FILE_BODIES = ["<top (required)>", "<main>"].freeze
  NAME = Module.instance_method(:inspect)
  private_constant :NAME

  # +trial+ receives the effects.
  def initialize(trial)
    @trial = trial
    @temporary = []
    # By identity, without calling methods that the objects may define.
    @there = {}.compare_by_identity
    ObjectSpace.each_object(Module) { |owner| @there[owner] = true }
  end

  # Starts recording.
  def watch
    CALLS.each do |owners, names|
      owners.product(names.to_a) { |owner, (name, event)| wrap(owner, name) { @trial.record_effect(event) } }
    end
    wrap(Dir.singleton_class, :mkdir) { |path, mode| make(path, mode == TEMPORARY_MODE, "makes the directory") }
    wrap(File, :initialize) { |path, mode| opened(path, mode) }
    [Kernel, Kernel.singleton_class, IO.singleton_class].product(%i[open sysopen]) do |owner, name|
      wrap(owner, name) { |path, mode| opened(path, mode) }
    end
    %i[read binread readlines foreach].each { |name| wrap(IO.singleton_class, name) { |path| read(path) } }
    %i[write binwrite].each { |name| wrap(IO.singleton_class, name) { |path| make(path, false, "writes") } }
    watch_methods
  end

  # Removes temporary files and folders, as their creator would have done at its end.
  def clean_up
    @temporary.reverse_each do |path|
      File.directory?(path) ? Dir.rmdir(path) : File.unlink(path)
    rescue SystemCallError
      next
    end
  end

  private

  # Calls the block with the arguments before the method.
  def wrap(owner, name, &before)
    return unless owner.method_defined?(name, false) || owner.private_method_defined?(name, false)

    hidden = owner.private_method_defined?(name, false)
    original = owner.instance_method(name)
    owner.define_method(name) do |*arguments, **keywords, &block|
      before.call(*arguments, **keywords.slice(:mode))
      original.bind_call(self, *arguments, **keywords, &block)
    end
    owner.__send__(:private, name) if hidden
  end

  def opened(path, mode)
    mode = mode[:mode] if mode.is_a?(Hash)
    writes = mode.is_a?(Integer) ? mode.anybits?(WRITING) : mode.to_s.match?(/[wa+]/)
    make(path, mode.is_a?(Integer) && mode.anybits?(TEMPORARY), "opens for writing") if writes
    read(path) unless writes
  end

  # A file named relative to the current directory is another one, or missing, in a start elsewhere. A program of this folder
  # is started there, and its image may depend on the folder's contents; a tool is started anywhere.
  def read(path)
    name = path.respond_to?(:to_path) ? path.to_path : path
    return unless name.is_a?(String) && !name.start_with?("/", "|") && File.file?(name)

    loaded = caller_locations.find { |place| FILE_BODIES.include?(place.base_label) }&.absolute_path
    here = File.expand_path(".")
    @trial.record_effect("reads #{name} of the current directory") unless loaded&.start_with?("#{here.chomp("/")}/")
  end

  def make(path, is_temporary, event)
    return if path.is_a?(Integer) || path.to_s.start_with?("/dev/")

    @temporary << path if is_temporary
    @trial.record_effect(is_temporary ? "makes a temporary file or directory" : "#{event} #{path}")
  end

  # Records methods that are added to modules which already existed.
  def watch_methods
    there = @there
    trial = @trial
    changed = ->(owner) { trial.record_reopening(NAME.bind_call(owner)) if there.key?(owner) }
    Module.prepend(Module.new do
      %i[method_added method_removed method_undefined].each do |name|
        define_method(name) { |method| super(method).tap { changed.call(self) } }
      end
      %i[append_features prepend_features extend_object].each do |name|
        define_method(name) { |owner| super(owner).tap { changed.call(owner) } }
      end
    end)
    BasicObject.define_method(:singleton_method_added) { |_| changed.call(self) }
    BasicObject.__send__(:private, :singleton_method_added)
  end
end
