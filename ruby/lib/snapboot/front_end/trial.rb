# frozen_string_literal: true

# What a child does: loads features, and finds out what each of them did, the nested ones too. For good, in this process.
class Trial
  # Raised where a feature is loaded that is left out. No program catches it by its name.
  class LeftOut < Exception; end # rubocop:disable Lint/InheritException

  # It can be seen in the text only.
  EXIT_HANDLER = /^\s*END\s*\{/n
  LOCATIONS = Kernel.instance_method(:caller_locations)
  # Settings of a terminal, or its name, as the freezer notes it.
  TERMINAL_STATE = "settings or the name of its terminal"
  # What the freezer notes that belongs to a start, in words.
  NOTES = {
    [Channel::FACT, "terminal"] => "reads what its terminal is",
    [Channel::FACT, "window"] => "reads the size of its terminal",
    [Channel::EARLY, TERMINAL_STATE] => "reads #{TERMINAL_STATE}",
    **Reads::OF_TERMINALS.to_h { |name| [[Channel::VARIABLE, name], "reads the variable #{name}"] }
  }.freeze
  # So many frames away is whoever calls a method that this puts in the place of another.
  NEAR = 4
  private_constant :EXIT_HANDLER, :LOCATIONS, :NEAR

  # What the last child in this control directory has found: why a feature must be left out, by its path.
  def self.result(directory)
    file = "#{directory}/rehearsed"
    return { File.read("#{directory}/trying") => "ends the process when it is loaded" } unless File.exist?(file)

    read(file).tap { File.unlink(file) }
  end

  # Writes a file that tells why features are left out, by their paths.
  def self.write(file, left_out)
    File.binwrite(file, left_out.map { |path, why| "left_out=#{Channel.record(path, why)}\0".b }.join)
  end

  # What such a file tells.
  def self.read(file)
    File.binread(file).split("\0").to_h do |entry|
      Channel.fields(entry.split("=", 2).last).map { |field| field.force_encoding(Encoding.find("locale")) }
    end
  end

  def initialize(learnt, directory, reads, gem_lists)
    @learnt = learnt
    @directory = directory
    @reads = reads
    @gem_lists = gem_lists
    # Why a feature must be left out, by its path; first what is known of that.
    @left = learnt.left_out.dup
    # What has happened that must not, in the order of its happening.
    @events = []
    # Reads of which a recipe may say that it makes up for them: what was being loaded then, what was read, where, in words.
    @pending = []
    @loading = []
    @done = $LOADED_FEATURES.to_h { |path| [path, true] }
  end

  # Loads all of them, and writes down which must be left out.
  def run(paths)
    @gem_lists.forget
    watch
    Recipes.training = :trial
    paths.each { |path| try(path) unless @done.key?(path) || @left.key?(path) }
    settle
    find_what_is_kept(paths) if @left.size == @learnt.left_out.size
    @left.update(@learnt.globals.conflicts(paths, @left)) if @left.size == @learnt.left_out.size
    @deeds.clean_up
    Trial.write("#{@directory}/rehearsed", @left.except(*@learnt.left_out.keys))
  ensure
    @gem_lists.report_to(asked = Report.new(@directory))
    asked.append_to("importers")
    exit!(0)
  end

  # Something has happened that no feature may do which is loaded early.
  def note(event)
    @events << event
  end

  # Something was changed that a program may count on if it changes it in each of its starts, and Ruby's own libraries change
  # as everybody knows.
  def note_change(event)
    note(event) unless always? || @loading.last.start_with?(*@ruby)
  end

  # A feature is about to be loaded by the block, if it is not.
  def loading(name, &block)
    path = resolve(name)
    leave(path) if @left.key?(path)
    return block.call if @done.key?(path) || @loading.include?(path) || !@learnt.include?(path)

    watch_loading(path, &block)
  end

  # What `require_relative` in the nearest of these frames means by a name.
  def beside(frames, name)
    frame = frames.find { |candidate| candidate.path != __FILE__ }
    File.expand_path(name.respond_to?(:to_path) ? name.to_path : name, File.dirname(frame.absolute_path))
  end

  private

  def watch
    output = "#{@directory}/rehearsal"
    STDIN.reopen(File::NULL)
    STDOUT.reopen(output, "w")
    STDERR.reopen(output, "a")
    @output = File.open(output)
    @printed = @shown = 0
    show_terminal
    @ruby = Object.const_defined?(:RbConfig) ? RbConfig::CONFIG.values_at("rubylibdir", "rubyarchdir") : []
    @mark = @reads.mark
    @notes = "#{@directory}/noted"
    @noted = File.size?(@notes).to_i
    @changing = "#{@directory}/changing"
    @changed = File.size?(@changing).to_i
    @deeds = Deeds.new(self)
    @deeds.watch
    watch_requires
    @learnt.globals.watch(@loading)
    @state = ProcessState.new(@learnt.main)
    @reads.attributes.look
  end

  # Has some of the streams be a terminal, as in the starts that the image is for.
  def show_terminal
    return if @reads.terminal.to_a.empty?

    require "pty"
    @other_end, terminal = PTY.open
    @reads.terminal.each { |number| [STDIN, STDOUT, STDERR][number].reopen(terminal) }
    terminal.close
  end

  # How much was printed until now (bytes).
  def printed
    [STDOUT, STDERR].each { |stream| stream.flush unless stream.closed? }
    while @other_end
      text = @other_end.read_nonblock(65_536, exception: false)
      break unless text.is_a?(String)

      @shown += text.bytesize
    end
    @output.size + @shown
  end

  def try(path)
    whole = @learnt.whole(path, @left)
    return @left[path] = "requires #{root(whole)}" if whole

    File.binwrite("#{@directory}/trying", path)
    # Here, too: `require` may know the file by another name, through a link.
    watch_loading(path) { require path }
  rescue Exception # rubocop:disable Lint/RescueException
    @left[path] ||= "cannot be loaded by itself"
  end

  # Autoload comes to Kernel#require as well.
  def watch_requires
    trial = self
    plain = Kernel.method(:require) # RubyGems has no part in require_relative
    [Kernel, Kernel.singleton_class].each do |owner|
      original = owner.instance_method(:require)
      replace(owner, :require) { |name| trial.loading(name) { original.bind_call(self, name) } }
      # It looks at its caller, so another one has to do the same.
      replace(owner, :require_relative) do |name|
        name = trial.beside(LOCATIONS.bind_call(self, 0, NEAR), name)
        trial.loading(name) { plain.call(name) }
      end
    end
  end

  def replace(owner, name, &body)
    hidden = owner.private_method_defined?(name, false)
    owner.define_method(name, &body)
    owner.__send__(:private, name) if hidden
  end

  def resolve(name)
    $LOAD_PATH.resolve_feature_path(name)&.last
  rescue LoadError, TypeError
    nil # whoever loads it shall see that
  end

  def leave(path)
    note("requires #{root(path)}")
    raise LeftOut, path
  end

  def watch_loading(path)
    look
    @loading << path
    begun = @events.size
    note("has an exit handler (END)") if path.end_with?(".rb") && File.binread(path).match?(EXIT_HANDLER)
    answer = yield
    @done[path] = true
    answer
  rescue Exception => e # rubocop:disable Lint/RescueException
    note("fails (#{e.class}: #{e.message.lines.first.to_s.chomp})") if @events.size == begun
    raise
  ensure
    look
    @loading.pop
    blame(path, begun) if @events.size > begun
  end

  def blame(path, begun)
    @left[path] ||= @events[begun]
    # For whoever has required it, that is all there is to say.
    @events[begun..] = ["requires #{root(path)}"]
  end

  # The feature that is to blame in the end.
  def root(path)
    @learnt.root(path, @left)
  end

  # Whether the program loads in each start what is being loaded.
  def always?
    @loading.empty? || @learnt.always?(@loading.last)
  end

  # Notes what has happened since the last look.
  def look
    @learnt.globals.look
    printed = self.printed
    note("prints") if printed != @printed
    @printed = printed
    noted_by_freezer(find_reads).each { |event| note(event) }
    changing.each { |path| note("looks for #{path}, which changes") }
    @state.changes(always?).each { |what| note("changes #{what}") }
    # Those of the kernel: the program may look at them before it changes them.
    @reads.attributes.look.each { |name| note("changes its #{name}") }
    gems = @state.new_gems
    note_change("activates the gem #{gems.first}") unless gems.empty?
  end

  # Returns which of them a recipe may make up for. Only it can know, and only when its library is loaded.
  def find_reads
    pending, events = @reads.since(@mark, @learnt).partition { |what, reader, _| Recipes.may_renew?(what, reader) }
    events.each { |_, _, event| note(event) }
    @reads.chosen_since(@mark).each { |place| note_change("chooses what a library chooses by its terminal (#{place})") }
    @mark = @reads.mark
    pending.each { |read| @pending << [@loading.dup, *read] } unless @loading.empty?
    pending.map(&:first)
  end

  # What native libraries ask the C library, the freezer notes in a file; what Ruby has asked for the program, too, which
  # counts there unless it is +pending+.
  def noted_by_freezer(pending)
    size = File.size?(@notes).to_i
    return [] if size == @noted

    entries = File.binread(@notes, size - @noted, @noted).to_s.split("\0")
    events = entries.map { |entry| Channel.fields(entry.split("=", 2).last) }
    # It notes the same but once, and the next may be another's.
    Reads.phase(Channel::OF_TRIAL) unless pending.empty?
    @noted = File.size(@notes)
    events.filter_map { |kind, _, subject| NOTES[[kind, subject]] unless bound?(subject) || pending.include?(subject) }
  end

  # What was looked up since the last look of places that change from start to start: the recorder writes it into that file
  # before the look-up goes on.
  def changing
    size = File.size?(@changing).to_i
    return [] if size == @changed

    File.binread(@changing, size - @changed, @changed).split("\0").tap { @changed = size }
  end

  # Whether the image is for starts where the answer is the same. A size changes, where there is one.
  def bound?(subject)
    @reads.terminal && subject != TERMINAL_STATE && (subject != "window" || @reads.terminal.empty?)
  end

  # Leaves out what has read anything that no recipe makes up for, and what has required that.
  def settle
    @pending.each do |loading, what, reader, event|
      next if Recipes.renews?(what, reader)

      *around, path = loading
      @left[path] ||= event
      around.each { |outer| @left[outer] ||= "requires #{root(path)}" }
    end
  end

  # Features that keep the time when they were loaded, or the number of the process.
  def find_what_is_kept(paths)
    Times.new(@directory).kept.each do |_, name|
      path, = Object.const_source_location(name[/\A[^@]+/])
      @left[path] = "keeps the time when it is loaded, or the number of the process (#{name})" if paths.include?(path)
    end
  end
end
