# frozen_string_literal: true

# $0, the process title and the name of the process, as `ps` shows them, which a program may set while it boots.
#
# Neither $0 nor the title can be read, so this watches who sets them. Ruby sets $0 after it has parsed the main script, and
# has no process title before.
class Title
  SCRIPT_NAMES = %i[$0 $PROGRAM_NAME].freeze
  # Of the process.
  NAME_FILE = "/proc/self/comm"

  # Create this before the program can change anything.
  def initialize
    @name_then = File.binread(NAME_FILE)
    watch
  end

  # Stops watching. Call right before the freeze.
  def settle
    SCRIPT_NAMES.each { |name| untrace_var(name, @on_name) }
    define_setproctitle(@setproctitle) if Process.method(:setproctitle).unbind == @watching # else it is the program's own
    now = File.binread(NAME_FILE)
    @name = now.chomp unless now == @name_then
  end

  # Returns what the program has set: $0, the title, the name; nil for what it has not.
  def kept = [@script_name, @title, @name]

  # Returns whether the program has set $0 or the title.
  def set? = !(@script_name || @title).nil?

  # Gives the process the name that the program has set.
  def put_back_name
    File.binwrite(NAME_FILE, @name) if @name
  end

  # Sets $0 and the title again. Call after Ruby has parsed the main script.
  def put_back
    $0 = @script_name if @script_name
    Process.setproctitle(@title) if @title # after $0, which sets it as well
  end

  private

  def watch
    @on_name = ->(name) { record(name, nil) }
    SCRIPT_NAMES.each { |name| trace_var(name, @on_name) }
    original = @setproctitle = Process.method(:setproctitle).unbind
    recording = ->(title) { record(nil, title) }
    define_setproctitle(->(title) { original.bind_call(Process, title).tap { recording.call(title) } })
    @watching = Process.method(:setproctitle).unbind
  end

  # Whoever sets $0 sets the title as well.
  def record(script_name, title)
    @script_name = script_name if script_name
    @title = title
  end

  def define_setproctitle(body)
    verbose = $VERBOSE
    $VERBOSE = nil
    Process.singleton_class.define_method(:setproctitle, body)
  ensure
    $VERBOSE = verbose
  end
end
