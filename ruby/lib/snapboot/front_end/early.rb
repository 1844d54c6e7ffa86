# frozen_string_literal: true

# Per-start facts that the program reads while it boots: ARGV, $0, who called it, terminals, standard streams, the umask, the
# parent. ARGV itself may be kept: a thaw changes it in place; what is noted is who reads its content. All of this is undone
# before the freeze.
class Early
  # Methods of an array that tell nothing of its content.
  SILENT = %i[freeze frozen? hash].freeze
  # Those that tell of the nearest frames, as far as the caller wants them.
  NEAREST = %i[[] at first shift size length empty?].freeze
  STREAMS = [STDIN, STDOUT, STDERR].freeze
  NAMES = ["standard input", "standard output", "standard error"].freeze
  # The part of a path that the files of one library share.
  LIBRARY = %r{\A.*/lib/}

  # +reads+: whom it tells. +stand_in+: what stands for the main script, and whose name is $0 then, or nil. +own_directory+:
  # that of the front end. +starts_alike+: whether each thaw has the boot's command line, and goes on in its main script.
  def initialize(reads, stand_in, own_directory, starts_alike: false)
    @reads = reads
    @stand_in = stand_in && File.basename(stand_in, ".rb")
    @own = own_directory
    @starts_alike = starts_alike
    @undo = []
    @umask = File.umask
    @features = $LOADED_FEATURES.size
  end

  # Starts noting.
  def watch
    @known = names
    STREAMS.each_with_index { |stream, of| watch_stream(stream, of) }
    return if @starts_alike

    watch_arguments
    watch_callers
  end

  # Stops noting, and leaves no trace.
  def stop
    @undo.reverse_each(&:call)
    @undo.clear
    find_names
  end

  # The umask that the program has set, or nil. Who has put back what was there wanted to know it.
  def umask
    File.umask == @umask ? nil : File.umask
  end

  private

  def watch_arguments
    reads = @reads
    (Array.public_instance_methods(false) + %i[dup clone] - SILENT).uniq.each do |name|
      add_method(ARGV.singleton_class, name) do |*arguments, **keywords, &block|
        reads.early("ARGV")
        super(*arguments, **keywords, &block)
      end
    end
  end

  def watch_stream(stream, of)
    reads = @reads
    %i[tty? isatty].each do |name|
      add_method(stream.singleton_class, name) do
        reads.read_fact("terminal", of)
        super()
      end
    end
    add_method(stream.singleton_class, :stat) do
      reads.early("what #{NAMES[of]} is")
      super()
    end
  end

  def add_method(owner, name, &body)
    return if owner.method_defined?(name, false)

    owner.define_method(name, &body)
    @undo << -> { remove_method(owner, name) if owner.method_defined?(name, false) }
  end

  # Also where the program has frozen the object. Where that is impossible, nothing is frozen: see Settings#settle.
  def remove_method(owner, name)
    frozen = owner.frozen?
    return if frozen && !ObjectHeader.layout_known?

    ObjectHeader.thaw(owner) if frozen
    owner.__send__(:remove_method, name)
    owner.freeze if frozen
  end

  # Frames of the front end are none that the program would see. Whoever looks through all of them for somebody else's, and
  # finds nobody, would have come to the main script.
  def watch_callers
    early = self
    @through = looking_through
    { caller: :to_s, caller_locations: :itself }.each do |name, shown|
      [Kernel, Kernel.singleton_class].each do |owner|
        original = owner.instance_method(name)
        visibility = owner.private_method_defined?(name, false) ? :private : :public
        silently { owner.define_method(name) { |*range| early.frames(shown, *range) } }
        owner.__send__(visibility, name)
        @undo << lambda do
          silently { owner.define_method(name, original) }
          owner.__send__(visibility, name)
        end
      end
    end
  end

  # What tells that somebody looks at more of a list of frames than the nearest ones.
  def looking_through
    early = self
    Module.new do
      (Array.public_instance_methods(false) - SILENT - NEAREST).each do |name|
        define_method(name) do |*arguments, **keywords, &block|
          early.looked_through
          super(*arguments, **keywords, &block)
        end
      end
    end
  end

  public

  # What `caller_locations` would say to its caller, each frame as +shown+.
  def frames(shown, start = 1, length = nil)
    all = LOCATIONS.bind_call(self, 0).reject { |frame| (frame.absolute_path || frame.path).start_with?(@own) }
    frames = start.is_a?(Range) ? all[start] : all[start..]
    frames = frames&.first(length) if length
    frames = frames&.map(&shown)
    frames&.extend(@through) if looks_beyond?(start, length) && nobody_else?(all)
    frames
  end

  # To be called when somebody does.
  def looked_through
    @reads.early("who calls it (caller)") unless @undo.empty?
  end

  private

  def looks_beyond?(start, length)
    start.is_a?(Range) ? start.end.nil? || start.end.negative? : length.nil?
  end

  def nobody_else?(frames)
    files = frames.map { |frame| frame.absolute_path || frame.path }.reject { |path| path.start_with?("<internal:") }
    files.map { |path| path[LIBRARY] || File.dirname(path) }.uniq.size <= 1
  end

  # Strings with the name of what stands for the main script. Nobody has such a one who has not read $0.
  def names
    return [] unless @stand_in

    ObjectSpace.each_object(String).select { |text| text.encoding.ascii_compatible? && text.include?(@stand_in) }
  end

  def find_names
    return unless @stand_in

    GC.start
    known = @known.map(&:__id__)
    @reads.early("$0", place_of_name) unless names.all? { |text| known.include?(text.__id__) }
    @known = nil
  end

  # Where it was probably read: the first line that names it, of what was loaded.
  def place_of_name
    $LOADED_FEATURES.drop(@features).grep(/\.rb\z/).reverse_each do |file|
      lines = File.foreach(file, mode: "rb").with_index(1)
      number = lines.find { |line, _| line.match?(/^[^#]*\$(0\b|PROGRAM_NAME\b)/n) }&.last
      return "#{file}:#{number}" if number
    rescue SystemCallError
      next
    end
    nil
  end

  def silently
    verbose = $VERBOSE
    $VERBOSE = nil
    yield
  ensure
    $VERBOSE = verbose
  end

  LOCATIONS = Kernel.instance_method(:caller_locations)
end
