# frozen_string_literal: true

# Which specifications RubyGems looks for in its folders while the program boots. It lists a folder and takes the names that
# match a pattern (`rack-*.gemspec`), so only these count, and not every gem that is installed beside them. What it found by
# one name it keeps; for every other name it lists the folders again, after a thaw, too.
class GemLists
  # A pattern with one gap and nothing else that a glob knows.
  SIMPLE = %r{\A[^*?\[\]{}\\/]*\*[^*?\[\]{}\\/]*\z}
  ALL = "*.gemspec"

  # Notes what RubyGems has done when Ruby started.
  def initialize
    @patterns = Hash.new { |all, directory| all[directory] = [] }
    return unless defined?(Gem::Util.glob_files_in_dir) && Gem.respond_to?(:default_specifications_dir)

    note(ALL, Gem.default_specifications_dir)
    names_before.product(directories) { |name, directory| note("#{name}-#{ALL}", directory) }
  end

  # Starts noting.
  def watch
    return unless defined?(Gem::Util.glob_files_in_dir)

    @original = original = Gem::Util.singleton_class.instance_method(:glob_files_in_dir)
    lists = self
    Gem::Util.singleton_class.define_method(:glob_files_in_dir) do |pattern, directory|
      lists.note(pattern, directory)
      original.bind_call(self, pattern, directory)
    end
  end

  # A folder is about to be listed once, for the names that match.
  def note(pattern, directory)
    return unless pattern.is_a?(String) && directory.is_a?(String) && directory.start_with?("/") && SIMPLE.match?(pattern)

    @patterns[directory.dup] << pattern.dup
  end

  # Stops noting, leaves no trace, and adds what was noted to +report+.
  def report_to(report)
    Gem::Util.singleton_class.define_method(:glob_files_in_dir, @original) if @original
    @patterns.each do |directory, patterns|
      report.add("importer", directory)
      report.add("lists", patterns.size)
      patterns.uniq.each { |pattern| report.add("pattern", pattern) }
    end
  end

  private

  # The names that were looked for; none where all were, or nobody knows.
  def names_before
    all, by_name = kept
    all || by_name.nil? ? [] : by_name.keys
  end

  def directories
    [*Gem::Specification.dirs, Gem.default_specifications_dir]
  end

  # What RubyGems keeps: of all gems, and by name. In an object of its own since 3.6.
  def kept
    record = Gem::Specification.instance_variable_get(:@specification_record)
    return record.instance_variable_get(:@stubs), record.instance_variable_get(:@stubs_by_name) if record
    return unless Gem::Specification.class_variable_defined?(:@@stubs_by_name)

    %i[@@stubs @@stubs_by_name].map { |name| Gem::Specification.class_variable_get(name) }
  end
end
