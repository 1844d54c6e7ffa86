# frozen_string_literal: true

# What the program reads of its environment and process while it boots, as far as only Ruby sees it, and who reads it.
#
# `snapboot freeze` makes inputs of these reads, and names the place that reads a withheld variable. The freezer records
# reads through the C library. All of this is undone before the freeze. The freezer shows most variables to the program
# only when it looks them up, since ENV uses the C library; a walk through all variables does not see them.
class Reads
  # Methods of ENV that read only the names that they are given. All others, except those in SILENT, read every
  # variable.
  NAMED = %i[[] fetch key? include? member? has_key? assoc values_at slice delete].freeze
  WRITING = %i[[]= store].freeze
  SILENT = %i[update merge! replace clear rehash freeze].freeze
  # What the block of #watch_method returns where that method reads each variable.
  WALK = :walk
  # The caller is at most this many frames away, including frames of this file and of methods written in C.
  NEAR = 12
  OWN_FILES = %w[reads early recipes choice chosen_constants].map { |name| "#{File.dirname(__FILE__)}/#{name}.rb" }.freeze
  # Ruby's own method, not the one that Early puts in its place.
  LOCATIONS = Kernel.instance_method(:caller_locations)
  # Methods of other objects, and the fact that they read.
  FACTS = [
    [Process, %i[uid euid gid egid], "user"],
    [Process, %i[groups], "groups"],
    [Process::Sys, %i[getuid geteuid getgid getegid], "user"],
    [Process::UID, %i[rid eid], "user"],
    [Process::GID, %i[rid eid], "user"],
    [Dir, %i[pwd getwd], "cwd"],
    [File, %i[umask], "umask"]
  ].freeze

  # Facts that may differ in the next start, in words.
  OF_A_START = { "cwd" => "the current directory", "terminal" => "what its terminal is", "umask" => "the umask" }.freeze
  OF_TERMINALS = %w[COLUMNS LINES TERM COLORTERM TERM_PROGRAM].freeze

  # Tells the freezer, which records reads through the C library, who reads from now on.
  def self.phase(who)
    Channel.call(Channel::PHASE, who)
  end

  # +own_directory+: code below it belongs to the front end, not to the program. +environment+: is told which variables
  # are shown.
  def initialize(own_directory, environment)
    @own = own_directory
    @environment = environment
    @library = Object.const_defined?(:RbConfig) ? RbConfig::CONFIG["rubylibdir"] : "<"
    @variables = {}
    @wholes = {}
    @facts = {}
    @early = {}
    @choices = {}
    @written = {}
    @watched = []
  end

  # Numbers of the standard streams that are a terminal in the starts that the image serves; nil if it serves all
  # starts.
  attr_accessor :terminal

  # The ProcessAttributes.
  attr_accessor :attributes

  # Starts recording. +stand_in+ and +starts_alike+: see Early.
  def watch(stand_in = nil, starts_alike: false)
    ENV.singleton_methods(false).each { |name| watch_variables(name) }
    FACTS.each do |object, names, fact|
      names.each { |name| watch_method(object, name) { read_fact(fact) } }
    end
    watch_method(Process, :ppid) { early("the pid of its parent process") }
    @per_start = Early.new(self, stand_in, @own, starts_alike: starts_alike)
    @per_start.watch
    self.class.phase(Channel::OF_PROGRAM)
  end

  # Removes the hooks and adds the recorded reads to +report+.
  def report_to(report)
    self.class.phase(Channel::OF_FRONT_END)
    @per_start.stop
    @watched.each do |owner, name, original, visibility|
      next owner.__send__(:remove_method, name) unless original

      owner.alias_method(name, name) # nothing is discarded then, of which Ruby would warn
      owner.define_method(name, original)
      owner.__send__(visibility, name)
    end
    @variables.each { |(name, reader), place| add(report, Channel::VARIABLE, name, reader, place) }
    @wholes.each { |reader, place| add(report, Channel::ALL_VARIABLES, "*", reader, place) }
    @facts.each do |(fact, of, reader), place|
      next if fact == "umask" && umask

      add(report, Channel::FACT, fact, reader, place, of)
    end
    @early.each { |(what, reader), place| add(report, Channel::EARLY, what, reader, place) }
  end

  # Returns the umask that the program has set, or nil.
  def umask
    @per_start.umask
  end

  # Whether the program has read the current directory.
  def folder?
    @facts.any? { |(fact, *), _| fact == "cwd" }
  end

  # Whether the program has checked for a terminal.
  def terminal?
    @facts.any? { |(fact, *), _| %w[terminal window].include?(fact) }
  end

  # Returns the number of reads so far.
  def mark
    [@early, @wholes, @facts, @variables, @choices].map(&:size)
  end

  # Returns the reads since +mark+ that belong to a start, or to the program's state at that time: what was read, its
  # reader, and both in words. +learnt+ knows harmless reads, and the variables that the program sets at some time.
  def since(mark, learnt)
    early, wholes, facts, variables = mark
    harmless = ->(what, reader) { learnt.harmless.any? { |ending, it| it == what && reader.end_with?(ending) } }
    early = @early.drop(early).reject { |(what, reader), _| harmless.call(what, reader) }
    found = early.map { |(what, reader), place| [what, reader, "reads #{what} (#{place})"] }
    wholes = @wholes.drop(wholes).reject { |reader, _| harmless.call("*", reader.to_s) }
    found += wholes.map { |reader, place| ["*", reader, "reads the whole environment (#{place})"] }
    facts = @facts.drop(facts).select do |(fact, _, reader), _|
      OF_A_START.key?(fact) && !(@terminal && fact == "terminal") && !harmless.call(fact, reader.to_s)
    end
    found += facts.map { |(fact, _, reader), place| [fact, reader, "reads #{OF_A_START[fact]} (#{place})"] }
    names = @terminal ? learnt.changed : learnt.changed + OF_TERMINALS
    variables = @variables.drop(variables).select { |(name, _), _| names.include?(name) }
    found + variables.map { |(name, reader), place| [name, reader, "reads the variable #{name} (#{place})"] }
  end

  # Returns the places where the program has chosen, since +mark+, what a library chooses by its terminal.
  def chosen_since(mark)
    @choices.keys.drop(mark.last)
  end

  # Records a read of a fact about machine, user or process. +of+: the number of a descriptor.
  def read_fact(fact, of = 0)
    reader = self.reader
    return unless reader

    Recipes.reading(fact, reader, self)
    @facts[[fact, of, reader]] ||= place
  end

  # Records that the program takes, at this place, what a library has chosen by these streams and variables.
  def taken(streams, variables, place)
    streams.each { |of| @facts[["terminal", of, place]] ||= place }
    variables.each do |name|
      @environment.show(name)
      @variables[[name, place]] ||= place
    end
  end

  # Records that the program chooses it itself at this place.
  def chosen(place)
    @choices[place] = true
  end

  # Returns the innermost frame in a file whose path has none of these endings.
  def frame_beyond(endings)
    frames = outside(LOCATIONS.bind_call(self, 1)).reject { |frame| frame.path.start_with?("(eval") }
    frames.find { |frame| !path_of(frame).end_with?(*endings) }
  end

  # Returns FILE:LINE of that frame; nil in the front end.
  def place_beyond(endings)
    frame = frame_beyond(endings)
    "#{path_of(frame)}:#{frame.lineno}" unless frame.nil? || path_of(frame).start_with?(@own)
  end

  # Calls the block with the arguments before each call of the method. It returns WALK if the method goes through all
  # variables.
  def watch_method(object, name, &note)
    owner = object.singleton_class
    return unless owner.method_defined?(name) || owner.private_method_defined?(name)

    is_own = owner.method_defined?(name, false) || owner.private_method_defined?(name, false)
    visibility = owner.private_method_defined?(name) ? :private : :public
    original = owner.instance_method(name)
    @watched << [owner, name, (original if is_own), visibility]
    watcher = self
    owner.alias_method(name, name)
    owner.define_method(name) do |*arguments, **keywords, &block|
      next original.bind_call(self, *arguments, **keywords, &block) unless note.call(arguments) == WALK

      watcher.walk(block) { |body| original.bind_call(self, *arguments, **keywords, &body) }
    rescue StandardError => e
      watcher.hide(e)
      raise
    end
    owner.__send__(visibility, name)
  end

  # Records a read of something that differs in each start. +place+: the reader, if only the caller knows it.
  def early(what, place = nil)
    reader = place || self.reader
    @early[[what, reader]] ||= place || self.place if reader
  end

  private

  def watch_variables(name)
    return if SILENT.include?(name)

    watch_method(ENV, name) do |arguments|
      case name
      when *WRITING then write(arguments.first.dup)
      when :fetch then read(arguments.first) if arguments.first.respond_to?(:to_str)
      when *NAMED then arguments.each { |variable| read(variable) if variable.respond_to?(:to_str) }
      else read_all
      end
    end
  end

  def read(variable)
    variable = variable.to_str.dup
    return if @written.key?(variable)

    reader = self.reader
    return unless reader

    @environment.show(variable)
    Recipes.reading(variable, reader, self)
    @variables[[variable, reader]] ||= place
  end

  def write(variable)
    @written[variable] = true
    @environment.forget(variable)
  end

  def read_all
    reader = self.reader
    return unless reader

    self.class.phase(Channel::OF_FRONT_END)
    @environment.show_all
    self.class.phase(Channel::OF_PROGRAM)
    @wholes[reader] ||= place
    WALK
  end

  # Returns the file whose code reads; nil for the front end.
  def reader
    path = path_of(outside(LOCATIONS.bind_call(self, 1, NEAR)).first)
    path unless path.nil? || path.start_with?(@own)
  end

  # Returns FILE:LINE of the innermost frame outside the standard library, or else of the innermost frame.
  def place
    frames = outside(LOCATIONS.bind_call(self, 1)).reject { |frame| path_of(frame).start_with?(@own) }
    frame = frames.find { |candidate| !path_of(candidate).start_with?(@library) } || frames.first
    "#{path_of(frame)}:#{frame.lineno}"
  end

  def outside(frames)
    frames.reject { |frame| frame.path.start_with?("<internal:") || OWN_FILES.include?(frame.path) }
  end

  def path_of(frame)
    frame&.then { |found| found.absolute_path || found.path }
  end

  def add(report, kind, subject, reader, place, detail = "")
    renewed = Recipes.renews?(subject, reader) ? "1" : ""
    report.add_record("event", kind, Channel::OF_PROGRAM, subject, reader, place, detail, renewed)
  end

  public

  # Ruby looks up each variable by its name while it goes through all. That says nothing more, other than what the program's
  # +block+ does meanwhile. Yields what stands for the block.
  def walk(block)
    body = block && proc do |*values|
      Reads.phase(Channel::OF_PROGRAM)
      block.call(*values)
    ensure
      Reads.phase(Channel::OF_FRONT_END)
    end
    Reads.phase(Channel::OF_FRONT_END)
    yield body
  ensure
    Reads.phase(Channel::OF_PROGRAM)
  end

  # Removes the traces of watching from an error of a watched method.
  def hide(error)
    error.set_backtrace(error.backtrace.reject { |frame| frame.start_with?(__FILE__) })
  end
end
