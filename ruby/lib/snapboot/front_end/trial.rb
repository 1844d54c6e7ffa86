# frozen_string_literal: true

# The work of a child: loads features, and records the effects of each, nested ones included. Changes this process for good.
class Trial
  # Raised where a left-out feature is loaded. No program catches it by name.
  class LeftOut < Exception; end # rubocop:disable Lint/InheritException

  # Only visible in the text.
  EXIT_HANDLER = /^\s*END\s*\{/n
  LOCATIONS = Kernel.instance_method(:caller_locations)
  # Settings or the name of a terminal, in the freezer's records.
  TERMINAL_STATE = "settings or the name of its terminal"
  # The freezer's records of reads that differ in each start, in words.
  NOTES = {
    [Channel::FACT, "terminal"] => "reads what its terminal is",
    [Channel::FACT, "window"] => "reads the size of its terminal",
    [Channel::EARLY, TERMINAL_STATE] => "reads #{TERMINAL_STATE}",
    **Reads::OF_TERMINALS.to_h { |name| [[Channel::VARIABLE, name], "reads the variable #{name}"] }
  }.freeze
  # The caller of a replaced method is at most this many frames away.
  NEAR = 4
  private_constant :EXIT_HANDLER, :LOCATIONS, :NEAR

  # Returns what the last child in this control directory has found: the reason why a feature must be left out, by path.
  def self.result(directory)
    file = "#{directory}/rehearsed"
    return { File.read("#{directory}/trying") => "ends the process when it is loaded" } unless File.exist?(file)

    read(file).tap { File.unlink(file) }
  end

  # Writes a file with the reasons why features are left out, by path.
  def self.write(file, left_out)
    File.binwrite(file, left_out.map { |path, why| "left_out=#{Channel.record(path, why)}\0".b }.join)
  end

  # Returns the contents of such a file.
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
    # The reason why a feature must be left out, by path; initially what is already known.
    @left = learnt.left_out.dup
    # Forbidden effects, in their order.
    @events = []
    # Reads that a recipe may make up for: the feature being loaded then, what was read, where, in words.
    @pending = []
    @loading = []
    @done = $LOADED_FEATURES.to_h { |path| [path, true] }
  end

  # Loads all features, and writes down which must be left out.
  def run(paths)
    @gem_lists.forget
    watch
    Recipes.training = :trial
    Recipes.trying(self)
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

  # Records an effect that forbids loading a feature early.
  def record_effect(event)
    @events << event
  end

  # Records a change that is harmless if the program makes it in each of its starts, or if it is a known change of Ruby's own
  # libraries.
  def record_change(event)
    record_effect(event) unless always? || @loading.last.start_with?(*@ruby)
  end

  # Records that methods are added to the module of that +name+, which existed before.
  def record_reopening(name)
    record_change("changes #{name}") unless @loading.last && Recipes.may_reopen?(@loading.last)
  end

  # The block is about to load a feature that is not loaded yet.
  def loading(name, &block)
    path = resolve(name)
    leave(path) if @left.key?(path)
    return block.call if @done.key?(path) || @loading.include?(path) || !@learnt.include?(path)

    watch_loading(path, &block)
  end

  # Returns what a name means for `require_relative` in the nearest of these frames.
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

  # Makes some of the streams a terminal, as in the starts that the image serves.
  def show_terminal
    return if @reads.terminal.to_a.empty?

    require "pty"
    @other_end, terminal = PTY.open
    @reads.terminal.each { |number| [STDIN, STDOUT, STDERR][number].reopen(terminal) }
    terminal.close
  end

  # Returns the size of the output so far (bytes).
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
    return @left[path] = "is not found first by its name" unless @learnt.found_first?(path)

    File.binwrite("#{@directory}/trying", path)
    # Here as well: `require` may know the file by another name, through a link.
    watch_loading(path) { require path }
  rescue Exception # rubocop:disable Lint/RescueException
    @left[path] ||= "cannot be loaded by itself"
  end

  # Autoload also calls Kernel#require.
  def watch_requires
    trial = self
    plain = Kernel.method(:require) # RubyGems does not take part in require_relative
    [Kernel, Kernel.singleton_class].each do |owner|
      original = owner.instance_method(:require)
      replace(owner, :require) { |name| trial.loading(name) { original.bind_call(self, name) } }
      # It uses its caller's path, so another method must emulate it.
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
    nil # the caller that loads it gets the error
  end

  def leave(path)
    record_effect("requires #{root(path)}")
    raise LeftOut, path
  end

  def watch_loading(path)
    look
    @loading << path
    begun = @events.size
    record_effect("has an exit handler (END)") if path.end_with?(".rb") && File.binread(path).match?(EXIT_HANDLER)
    answer = yield
    @done[path] = true
    answer
  rescue Exception => e # rubocop:disable Lint/RescueException
    record_effect("fails (#{e.class}: #{e.message.lines.first.to_s.chomp})") if @events.size == begun
    raise
  ensure
    look
    @loading.pop
    blame(path, begun) if @events.size > begun
  end

  def blame(path, begun)
    @left[path] ||= @events[begun]
    # For each feature that requires it, this reason is enough.
    @events[begun..] = ["requires #{root(path)}"]
  end

  # Returns the feature that causes the problem.
  def root(path)
    @learnt.root(path, @left)
  end

  # Whether each start of the program loads the feature that is being loaded.
  def always?
    @loading.empty? || @learnt.always?(@loading.last)
  end

  # Records the effects since the last look.
  def look
    @learnt.globals.look
    printed = self.printed
    record_effect("prints") if printed != @printed
    @printed = printed
    reads_seen_by_freezer(find_reads).each { |event| record_effect(event) }
    changing.each { |path| record_effect("looks for #{path}, which changes") }
    @state.changes(always?).each { |what| record_effect("changes #{what}") }
    # The kernel's attributes: the program may read them before it changes them.
    @reads.attributes.look.each { |name| record_effect("changes its #{name}") }
    gems = @state.new_gems
    record_change("activates the gem #{gems.first}") unless gems.empty?
  end

  # Returns the reads that a recipe may make up for. Only the recipe knows, and only when its library is loaded.
  def find_reads
    pending, events = @reads.since(@mark, @learnt).partition { |what, reader, _| Recipes.may_renew?(what, reader) }
    events.each { |_, _, event| record_effect(event) }
    @reads.chosen_since(@mark).each { |place| record_change("chooses what a library chooses by its terminal (#{place})") }
    @mark = @reads.mark
    pending.each { |read| @pending << [@loading.dup, *read] } unless @loading.empty?
    pending.map(&:first)
  end

  # Reads the freezer's records of requests to the C library: those of native libraries, and those of Ruby for the program,
  # which count as well unless they are +pending+.
  def reads_seen_by_freezer(pending)
    size = File.size?(@notes).to_i
    return [] if size == @noted

    entries = File.binread(@notes, size - @noted, @noted).to_s.split("\0")
    events = entries.map { |entry| Channel.fields(entry.split("=", 2).last) }
    # The freezer records the same read only once, and the next reader may be another feature.
    Reads.phase(Channel::OF_TRIAL) unless pending.empty?
    @noted = File.size(@notes)
    events.filter_map { |kind, _, subject| NOTES[[kind, subject]] unless bound?(subject) || pending.include?(subject) }
  end

  # Returns the look-ups since the last look in places that change from start to start. The recorder writes them into that
  # file before the look-up goes on.
  def changing
    size = File.size?(@changing).to_i
    return [] if size == @changed

    File.binread(@changing, size - @changed, @changed).split("\0").tap { @changed = size }
  end

  # Whether the image serves only starts where the answer is the same. The size of a terminal may still change.
  def bound?(subject)
    @reads.terminal && subject != TERMINAL_STATE && (subject != "window" || @reads.terminal.empty?)
  end

  # Leaves out features with a read that no recipe makes up for, and those that have required them.
  def settle
    @pending.each do |loading, what, reader, event|
      next if Recipes.renews?(what, reader)

      *around, path = loading
      @left[path] ||= event
      around.each { |outer| @left[outer] ||= "requires #{root(path)}" }
    end
  end

  # Finds features that keep the time of their loading, or the process number.
  def find_what_is_kept(paths)
    Times.new(@directory).kept.each do |_, name|
      path, = Object.const_source_location(name[/\A[^@]+/])
      @left[path] = "keeps the time when it is loaded, or the pid (#{name})" if paths.include?(path)
    end
  end
end
