# frozen_string_literal: true

# Settings of the interpreter and the process that the program changes while it boots: separators, encodings, warnings, the
# standard streams; $0 and the process title are in title.rb.
#
# Ruby sets some of them again after parsing the main script (`process_options` in its ruby.c: the external encoding, those
# of the standard streams, $0), and has no process title before. Others change how the front end or the parser works. So the
# program's settings are replaced with those of Ruby's start before the freeze, and restored right before the main script
# runs.
class Settings
  # Replaces a standard stream while Ruby parses the main script. Ruby's last step before the script runs sets the encodings
  # of $stdin, $stdout and $stderr, in this order: the call for the last one shows that the script is about to run.
  class StandIn
    # +changed+: whether the program has set the stream's encodings, so that Ruby's do not count.
    def initialize(stream, changed, &block)
      @stream = stream
      @changed = changed
      @block = block
    end

    def set_encoding(*encodings)
      @stream.set_encoding(*encodings) unless @changed || @stream.closed?
      @block&.call
    end

    def write(*texts) = @stream.write(*texts)
  end

  # By name: the code that reads a setting, and the code that sets it. $VERBOSE comes last, since others warn when they are
  # set.
  ALL = {
    "$;" => [-> { $; }, ->(value) { $; = value }],
    "$," => [-> { $, }, ->(value) { $, = value }],
    "$/" => [-> { $/ }, ->(value) { $/ = value }],
    "$\\" => [-> { $\ }, ->(value) { $\ = value }],
    "$stdin" => [-> { $stdin }, ->(value) { $stdin = value }],
    "$stdout" => [-> { $stdout }, ->(value) { $stdout = value }],
    "$stderr" => [-> { $stderr }, ->(value) { $stderr = value }],
    "GC.stress" => [-> { GC.stress }, ->(value) { GC.stress = value }],
    "Encoding.default_external" => [-> { Encoding.default_external }, ->(value) { Encoding.default_external = value }],
    "Encoding.default_internal" => [-> { Encoding.default_internal }, ->(value) { Encoding.default_internal = value }],
    **%i[deprecated experimental performance strict_unused_block].to_h do |kind|
      ["Warning[:#{kind}]", [-> { Warning[kind] }, ->(value) { Warning[kind] = value }]]
    end,
    "$DEBUG" => [-> { $DEBUG }, ->(value) { $DEBUG = value }],
    "$VERBOSE" => [-> { $VERBOSE }, ->(value) { $VERBOSE = value }]
  }.select { |_, (get, _)| get.call || true rescue false }.freeze # rubocop:disable Style/RescueModifier
  STREAMS = [STDIN, STDOUT, STDERR].freeze
  STREAM_NAMES = %w[$stdin $stdout $stderr].freeze
  ARGUMENTS = ARGV
  COMMAND_LINE = "/proc/self/cmdline"
  # Of fcntl(2).
  GET_FLAGS = 3
  SET_FLAGS = 4

  # The command line that the process was started with, according to the kernel.
  attr_reader :command_line

  # Create this before the program can change anything.
  def initialize
    @ordinary = ALL.transform_values { |get, _| get.call }
    @compiler = compile_options
    @command_line = File.binread(COMMAND_LINE)
    @title = Title.new
    @flags_then = STREAMS.map { |stream| flags(stream) }
    @encodings_then = encodings
    @kept = {}
  end

  # Takes out the program's settings, including those of the process. Call right before the freeze.
  def settle
    @frozen = [ARGUMENTS, *STREAMS].select(&:frozen?).each { |object| ObjectHeader.thaw(object) }
    @title.settle
    take
    @flags = STREAMS.map { |stream| flags(stream) }
    @flags = nil if @flags == @flags_then
    @streams_changed = encodings.zip(@encodings_then, STREAMS).map do |encodings, before, stream|
      encodings != before || @frozen.include?(stream)
    end
  end

  # Returns the program's settings, by name.
  def kept
    { "settings" => @kept, "$0 (set)" => @title.kept }
  end

  # Restores the program's settings.
  def put_back
    set(@kept)
    put_back_late
  end

  # Does the same after Ruby has parsed the main script.
  def put_back_before_main
    take
    return unless @streams_changed.any? || late? || !@kept.empty?

    stand_ins = STREAMS.zip(@streams_changed).map { |stream, changed| StandIn.new(stream, changed) }
    stand_ins[-1] = StandIn.new(STDERR, @streams_changed.last) do
      set(@ordinary.slice(*STREAM_NAMES))
      set(@kept)
      at_first_line { put_back_late } if late?
    end
    set(STREAM_NAMES.zip(stand_ins).to_h)
  end

  # Sets what an option of the command line says, which Ruby obeys before it loads anything.
  def start_with(name, value)
    unchanged = ALL.fetch(name).first.call.equal?(@ordinary[name])
    @ordinary[name] = value
    set(name => value) if unchanged
  end

  # Restores the settings of the process besides the interpreter's. Call after the thaw.
  def renew_process
    @title.put_back_name
    @flags&.zip(STREAMS) { |flags, stream| renew_flags(stream, *flags) }
  end

  # Call when the thaw is done with ARGV and the standard streams.
  def freeze_again
    @frozen.each(&:freeze)
  end

  private

  # Silently: the program was warned when it set them.
  def set(values)
    return if values.empty?

    verbose = $VERBOSE
    $VERBOSE = nil
    values.each { |name, value| ALL.fetch(name).last.call(value) unless name == "$VERBOSE" }
  ensure
    $VERBOSE = values.fetch("$VERBOSE", verbose) unless values.empty?
  end

  # Ruby sets the encodings of the standard streams to its own, unless stand-ins replace them.
  def encodings
    STREAMS.map { |stream| [stream.external_encoding, stream.internal_encoding] unless stream.closed? }
  end

  def compile_options
    RubyVM::InstructionSequence.compile_option
  end

  def same?(one, other)
    one.equal?(other) || (one.instance_of?(String) && one == other)
  end

  # Takes out the program's later settings.
  def take
    @kept = ALL.each_with_object({}) do |(name, (get, _)), kept|
      value = get.call
      kept[name] = value unless same?(value, @ordinary[name])
    end
    now = compile_options
    @kept_compiler = now unless now == @compiler
    set(@ordinary.slice(*@kept.keys))
    RubyVM::InstructionSequence.compile_option = @compiler if @kept_compiler
  end

  # Whether a setting has no effect, or a wrong one, before Ruby has compiled the main script.
  def late?
    @title.set? || @kept_compiler
  end

  def put_back_late
    @title.put_back
    RubyVM::InstructionSequence.compile_option = @kept_compiler if @kept_compiler
  end

  # Calls the block before the first line of the main script. Nothing else may be done in between.
  def at_first_line
    trace = TracePoint.new(:line) do
      trace.disable
      yield
    end
    trace.enable
  end

  # Returns whether an executed program does not inherit it, and how it was opened. nil for a closed stream.
  def flags(stream)
    stream.closed? ? nil : [stream.close_on_exec?, stream.fcntl(GET_FLAGS)]
  rescue SystemCallError
    nil
  end

  def renew_flags(stream, closes, opened)
    return if opened.nil? || stream.closed?

    _, opened_then = @flags_then[STREAMS.index(stream)]
    stream.close_on_exec = true if closes
    return if opened_then.nil? || (opened ^ opened_then).nobits?(File::NONBLOCK)

    now = stream.fcntl(GET_FLAGS)
    stream.fcntl(SET_FLAGS, (now & ~File::NONBLOCK) | (opened & File::NONBLOCK))
  rescue SystemCallError
    nil
  end
end
