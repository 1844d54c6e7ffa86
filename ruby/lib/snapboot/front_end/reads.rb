# frozen_string_literal: true

# What the program reads of its surroundings while it boots, as far as only Ruby knows: its environment and its process, and
# who asks. `snapboot freeze` makes inputs of it, and names the place where a variable is read that was withheld. What goes
# through the C library the freezer notes. All of this is undone before the freeze.
class Reads
  # Methods of ENV that look for the names that they are given; all others that are not in SILENT look at every variable.
  NAMED = %i[[] fetch key? include? member? has_key? assoc values_at slice delete].freeze
  WRITING = %i[[]= store].freeze
  SILENT = %i[update merge! replace clear rehash freeze].freeze
  # So many frames away is whoever asks, those of this file and of methods written in C included.
  NEAR = 12
  # Methods of other objects, and the fact that they tell.
  FACTS = [
    [Process, %i[uid euid gid egid], "user"],
    [Process, %i[groups], "groups"],
    [Process::Sys, %i[getuid geteuid getgid getegid], "user"],
    [Process::UID, %i[rid eid], "user"],
    [Process::GID, %i[rid eid], "user"],
    [Dir, %i[pwd getwd], "cwd"]
  ].freeze

  # Tells the freezer, which notes what the C library is asked, who asks from now on.
  def self.phase(who)
    ENV["SNAPBOOT_PHASE"] = who
    ENV.delete("SNAPBOOT_PHASE")
  end

  # +own_directory+: what is below reads for the front end, not for the program.
  def initialize(own_directory)
    @own = own_directory
    @library = Object.const_defined?(:RbConfig) ? RbConfig::CONFIG["rubylibdir"] : "<"
    @variables = {}
    @wholes = {}
    @facts = {}
    @written = {}
    @watched = []
  end

  # Starts noting.
  def watch
    ENV.singleton_methods(false).each { |name| watch_variables(name) }
    FACTS.each do |object, names, fact|
      names.each { |name| watch_method(object, name) { ask_for(fact) } }
    end
    self.class.phase("program")
  end

  # Stops noting, leaves no trace, and adds what was noted to +report+.
  def report_to(report)
    self.class.phase("front end")
    @watched.each do |owner, name, original, visibility|
      owner.define_method(name, original)
      owner.__send__(visibility, name)
    end
    @variables.each { |(name, reader), place| add(report, "variable", name, reader, place) }
    @wholes.each { |reader, place| add(report, "variables", "*", reader, place) }
    @facts.each_key do |fact, reader|
      report.add("fact", fact)
      report.add("reader", reader)
    end
  end

  private

  def watch_variables(name)
    return if SILENT.include?(name)

    watch_method(ENV, name) do |arguments|
      case name
      when *WRITING then @written[arguments.first.dup] = true
      when *NAMED then arguments.each { |variable| read(variable) if variable.respond_to?(:to_str) }
      else read_all
      end
    end
  end

  def read(variable)
    variable = variable.to_str.dup
    return if @written.key?(variable)

    reader = self.reader
    @variables[[variable, reader]] ||= place if reader
  end

  def read_all
    reader = self.reader
    @wholes[reader] ||= place if reader
  end

  def ask_for(fact)
    reader = self.reader
    @facts[[fact, reader]] = true if reader
  end

  # Has the block called with the arguments before the method.
  def watch_method(object, name, &ask)
    owner = object.singleton_class
    return unless owner.method_defined?(name, false) || owner.private_method_defined?(name, false)

    visibility = owner.private_method_defined?(name, false) ? :private : :public
    original = owner.instance_method(name)
    @watched << [owner, name, original, visibility]
    watcher = self
    owner.define_method(name) do |*arguments, **keywords, &block|
      ask.call(arguments)
      original.bind_call(self, *arguments, **keywords, &block)
    rescue StandardError => e
      watcher.hide(e)
      raise
    end
    owner.__send__(visibility, name)
  end

  # The file that asks; nil when it is the front end's.
  def reader
    path = path_of(outside(caller_locations(1, NEAR)).first)
    path unless path.nil? || path.start_with?(@own)
  end

  # FILE:LINE of the innermost frame outside the standard library, or of the innermost at all.
  def place
    frames = outside(caller_locations(1)).reject { |frame| path_of(frame).start_with?(@own) }
    frame = frames.find { |candidate| !path_of(candidate).start_with?(@library) } || frames.first
    "#{path_of(frame)}:#{frame.lineno}"
  end

  def outside(frames)
    frames.reject { |frame| frame.path.start_with?("<internal:") || frame.path == __FILE__ }
  end

  def path_of(frame)
    frame&.then { |found| found.absolute_path || found.path }
  end

  def add(report, key, value, reader, place)
    report.add(key, value)
    report.add("reader", reader)
    report.add("place", place)
  end

  public

  # Makes an error of a watched method look as if nobody watched.
  def hide(error)
    error.set_backtrace(error.backtrace.reject { |frame| frame.start_with?(__FILE__) })
  end
end
