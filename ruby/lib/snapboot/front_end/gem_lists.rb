# frozen_string_literal: true

# Records which specifications RubyGems looks for in its folders while the program boots. It lists a folder and takes the
# names that match a pattern (`NAME-*.gemspec`), so only these count, and not every gem installed beside them. It keeps what
# it found by one name; for every other name it lists the folders again, also after a thaw. Once it has all specifications it
# answers from these, so those that were looked up count: by name, for a feature, or all if some code saw all. After a thaw
# it drops its list of all if a folder has changed.
class GemLists
  # A pattern with at most one `*`, and no other glob syntax.
  SIMPLE = %r{\A[^*?\[\]{}\\/\0]*\*?[^*?\[\]{}\\/\0]*\z}
  ALL = "*.gemspec"
  # A feature that no gem has.
  NONE = ""
  # Endings that the launcher tries for a feature's file.
  SUFFIXES = ["", ".rb", ".so"].freeze
  # Methods that look up a gem by its feature. Gems in use are found without creating a new object.
  BY_FEATURE = %i[find_by_path find_inactive_by_path].freeze
  BY_USE = :find_active_stub_by_path

  # Records what RubyGems has done when Ruby started.
  def initialize
    @kept = KeptGems.new
    @lists = Hash.new(0)
    @patterns = Hash.new { |all, directory| all[directory] = {} }
    @features = Hash.new { |all, directory| all[directory] = {} }
    @names = Hash.new(0)
    @reads_all = {}.compare_by_identity
    @wrappers = Wrappers.new
    return unless defined?(Gem::Util.glob_files_in_dir) && Gem.respond_to?(:default_specifications_dir)

    list(ALL, Gem.default_specifications_dir)
    remember_homes
    @kept.names.product(directories) { |name, directory| list("#{name}-#{ALL}", directory) }
  end

  # Starts recording.
  def watch
    return unless defined?(Gem::Util.glob_files_in_dir)

    watch_homes
    watch_lists
    watch_record(defined?(Gem::SpecificationRecord) ? Gem::SpecificationRecord : Gem::Specification.singleton_class)
    @bundles = BundleLists.new(self, @wrappers)
    @bundles.watch
  end

  # Drops the listings until now: another process reports them.
  def forget
    @lists.clear
    @names.clear
  end

  # Names that match +pattern+ count in these folders of specifications.
  def add(pattern, directories)
    pattern = ALL unless SIMPLE.match?(pattern)
    directories.each { |directory| @patterns[directory][pattern] = true }
  end

  # Code in the block reads all specifications, and itself reports which of them count.
  def reading_all
    thread = Thread.current
    before = @reads_all[thread]
    @reads_all[thread] = true
    yield
  ensure
    @reads_all[thread] = before
  end

  # Returns the folders of specifications.
  def directories
    [*Gem::Specification.dirs, Gem.default_specifications_dir]
  end

  # Stops recording, removes the wrappers, and appends the recorded look-ups to +report+.
  def report_to(report)
    @bundles&.finish
    @wrappers.take_off
    # Code that looks for features sees whether a gem was added while all were listed.
    add_feature(NONE) if @has_read_all && kept && @features.empty?
    @lists.each do |directory, count|
      patterns = @patterns[directory].keys.flat_map { |pattern| ["pattern", pattern] }
      features = @features[directory].keys.flat_map { |feature| ["feature", feature] }
      report.add_record("importer", directory, "lists", count, *patterns, *features)
    end
    @names.each { |directory, count| report.add_record("importer", directory, "named", count) }
  end

  # Returns what must be renewed after a thaw, or nil.
  def kept
    @kept if @has_times && @kept.all && !given?
  end

  # See KeptGems.
  def forget_homes
    @kept.forget_homes if defined?(Gem)
  end

  private

  # RubyGems has resolved the real paths of the gem folders, that of the first one by itself.
  def remember_homes
    return unless (paths = Gem.instance_variable_get(:@paths)) && paths.respond_to?(:expand, true)

    [*paths.path, paths.home].each { |directory| @names[directory] += 1 }
  end

  def watch_homes
    @wrappers.wrap(Gem::PathSupport, :expand) do |_, original, arguments|
      @names[arguments.first] += 1
      original.call(*arguments)
    end
  end

  # Call again when Bundler has replaced a method of RubyGems.
  def watch_lists
    @wrappers.wrap(Gem::Util.singleton_class, :glob_files_in_dir) do |_, original, arguments|
      list(*arguments)
      original.call(*arguments)
    end
  end

  # +record+ holds what RubyGems keeps.
  def watch_record(record)
    watch_features(record)
    @wrappers.wrap(record, :stubs) do |_, original|
      watch_lists
      remember_times unless @kept.all
      all = original.call
      add(ALL, directories) unless @reads_all[Thread.current] || given?
      all
    end
    @wrappers.wrap(record, :stubs_for) do |_, original, arguments|
      watch_lists
      add("#{arguments.first}-#{ALL}", directories) unless given?
      original.call(*arguments)
    end
    @wrappers.wrap(record, :all=) do |_, original, arguments|
      @given = arguments.first
      original.call(*arguments)
    end
  end

  def watch_features(record)
    BY_FEATURE.each do |name|
      @wrappers.wrap(record, name) do |_, original, arguments|
        add_feature(arguments.first) unless given?
        reading_all { original.call(*arguments) }
      end
    end
    @wrappers.wrap(record, BY_USE) { |_, original, arguments| reading_all { original.call(*arguments) } }
  end

  # A gem with this feature counts.
  def add_feature(feature)
    is_plain = feature.is_a?(String) && !feature.match?(/[\n\0]/) && (Gem.suffixes - SUFFIXES).empty?
    return add(ALL, directories) unless is_plain

    Gem::Specification.dirs.each { |directory| @features[directory][feature] = true }
  end

  # All gems are about to be listed.
  def remember_times
    @has_times = true
    folders = Gem::Specification.dirs
    folders.each { |directory| @lists[directory] += 1 }
    @kept.remember_times(folders)
  end

  # A folder is about to be listed once, for the names that match.
  def list(pattern, directory)
    return unless pattern.is_a?(String) && directory.is_a?(String) && directory.start_with?("/") && SIMPLE.match?(pattern)

    @lists[directory] += 1
    is_reading_all = @reads_all[Thread.current] && pattern == ALL
    is_reading_all ? @has_read_all = true : add(pattern, [directory])
  end

  # Whether it was given its list of all specifications.
  def given?
    @given&.equal?(@kept.all)
  end
end
