# frozen_string_literal: true

# Which specifications RubyGems looks for in its folders while the program boots. It lists a folder and takes the names that
# match a pattern (`rack-*.gemspec`), so only these count, and not every gem that is installed beside them. What it found by
# one name it keeps; for every other name it lists the folders again, after a thaw, too. Once it has all specifications it
# answers from these, so of them those count that it was asked for, or all where somebody saw all.
class GemLists
  # A pattern with one gap at most, and nothing else that a glob knows.
  SIMPLE = %r{\A[^*?\[\]{}\\/\0]*\*?[^*?\[\]{}\\/\0]*\z}
  ALL = "*.gemspec"

  # Notes what RubyGems has done when Ruby started.
  def initialize
    @lists = Hash.new(0)
    @patterns = Hash.new { |all, directory| all[directory] = {} }
    @told = {}.compare_by_identity
    @wrappers = Wrappers.new
    return unless defined?(Gem::Util.glob_files_in_dir) && Gem.respond_to?(:default_specifications_dir)

    list(ALL, Gem.default_specifications_dir)
    names_before.product(directories) { |name, directory| list("#{name}-#{ALL}", directory) }
  end

  # Starts noting.
  def watch
    return unless defined?(Gem::Util.glob_files_in_dir)

    watch_lists
    watch_record(defined?(Gem::SpecificationRecord) ? Gem::SpecificationRecord : Gem::Specification.singleton_class)
    @bundles = BundleLists.new(self, @wrappers)
    @bundles.watch
  end

  # Names that match +pattern+ count in these folders of specifications.
  def note(pattern, directories)
    pattern = ALL unless SIMPLE.match?(pattern)
    directories.each { |directory| @patterns[directory][pattern] = true }
  end

  # Who asks for all specifications in here tells by himself which of them count.
  def told
    thread = Thread.current
    before = @told[thread]
    @told[thread] = true
    yield
  ensure
    @told[thread] = before
  end

  # The folders of specifications.
  def directories
    [*Gem::Specification.dirs, Gem.default_specifications_dir]
  end

  # Stops noting, leaves no trace, and adds what was noted to +report+.
  def report_to(report)
    @bundles&.finish
    @wrappers.take_off
    # What it has of all will answer for all.
    note(ALL, directories) if @has_told && kept.first && !given?
    @lists.each do |directory, count|
      report.add("importer", directory)
      report.add("lists", count)
      @patterns[directory].each_key { |pattern| report.add("pattern", pattern) }
    end
  end

  private

  # To be called again, because Bundler has a method of its own for RubyGems.
  def watch_lists
    @wrappers.wrap(Gem::Util.singleton_class, :glob_files_in_dir) do |_, original, arguments|
      list(*arguments)
      original.call(*arguments)
    end
  end

  # +record+ has what RubyGems keeps.
  def watch_record(record)
    @wrappers.wrap(record, :stubs) do |_, original|
      watch_lists
      all = original.call
      note(ALL, directories) unless @told[Thread.current] || given?
      all
    end
    @wrappers.wrap(record, :stubs_for) do |_, original, arguments|
      watch_lists
      note("#{arguments.first}-#{ALL}", directories) unless given?
      original.call(*arguments)
    end
    @wrappers.wrap(record, :all=) do |_, original, arguments|
      @given = arguments.first
      original.call(*arguments)
    end
  end

  # A folder is about to be listed once, for the names that match.
  def list(pattern, directory)
    return unless pattern.is_a?(String) && directory.is_a?(String) && directory.start_with?("/") && SIMPLE.match?(pattern)

    @lists[directory] += 1
    is_told = @told[Thread.current] && pattern == ALL
    is_told ? @has_told = true : note(pattern, [directory])
  end

  # Whether it has been given what it shall have of all.
  def given?
    @given&.equal?(kept.first)
  end

  # The names that were looked for; none where all were, or nobody knows.
  def names_before
    all, by_name = kept
    all || by_name.nil? ? [] : by_name.keys
  end

  # What RubyGems keeps: of all gems, and by name. In an object of its own since 3.6.
  def kept
    record = Gem::Specification.instance_variable_get(:@specification_record)
    return record.instance_variable_get(:@stubs), record.instance_variable_get(:@stubs_by_name) if record
    return [] unless Gem::Specification.class_variable_defined?(:@@stubs_by_name)

    %i[@@stubs @@stubs_by_name].map { |name| Gem::Specification.class_variable_get(name) }
  end
end
