# frozen_string_literal: true

# Loads features that training runs have loaded late, if it makes no difference when they are loaded.
#
# A feature may be loaded early if loading it has no other effect. The program itself must load a feature that reads data of
# one start, prints, fails, or changes the process for everybody: the program may never reach that point, or reach it in
# another state. The same goes for each feature that requires such a one. Forked children find out which features these are,
# so this process stays clean: see Trial. Once a child finds nothing new, this process loads the same features.
class Learnt
  # Programs usually need three or four.
  MAX_PASSES = 12
  BUNDLER = %r{/bundler/setup\.rb\z}
  GEMDEPS = "Gem.use_gemdeps"
  # A script that chooses the versions of its gems before it knows its arguments.
  BINSTUB = /Gem\.(activate_)?bin_path/
  # RubyGems' scripts run another version of their gem with _1.2.3_.
  OTHER_VERSION = "_*"

  # RubyGems chooses its version in each start, by the arguments and by the lock file of the current directory.
  PER_START_GEM = "bundler"

  # +request+: names the features, in the order in which their loading began. +main+: the text of the main part, or nil where
  # it may be any.
  def initialize(request, main)
    @directory = request.directory
    # The first boot has tried the features.
    @is_later_boot = %w[other again].include?(request.value("evidence"))
    @script = request.value("script")
    @leaves_script = request.leaves_script?
    # By path: the feature whose loading loaded it.
    @from = request.records("learnt").to_h
    @gems = request.records("gem").reject { |name, _| name == PER_START_GEM }
    @activated = request.list("activated").map(&:split).reject { |name, _| name == PER_START_GEM }
    @always = request.list("always").to_h { |path| [path, true] }
    @changed = request.list("changed")
    @harmless = request.records("harmless")
    @left_out = {}
    @load_path = request.list("load_path")
    @searched = request.list("searched")
    @loaded = []
    @main = main
    @globals = Globals.new(main, request.list("ran"), @from)
  end

  # Pairs of the end of a path and what that file may read of a start, since it keeps nothing of it.
  attr_reader :harmless
  # Names of variables that the program has set in a training run.
  attr_reader :changed
  # The reason why a feature is left out, by path.
  attr_reader :left_out
  # The text of the main part, or nil where it may be any; the Globals that features use.
  attr_reader :main, :globals

  # Whether a training run has loaded it.
  def include?(path)
    @from.key?(path)
  end

  # Whether all training runs have.
  def always?(path)
    @always.key?(path)
  end

  # Loads the features. +reads+ and +gem_lists+ watch. Raises what loading raises.
  def load(reads, gem_lists)
    return if @from.empty? || bundled?

    activate
    # The script inserts it there later. Features loaded until then are found loaded.
    $LOAD_PATH.unshift(*@load_path)
    leave_searched
    known = "#{@directory}/left_out"
    @left_out.update(Trial.read(known)) if @is_later_boot
    load_all(reads, gem_lists)
    Trial.write(known, @left_out) unless @is_later_boot
  ensure
    @load_path.each { |path| $LOAD_PATH.delete_at($LOAD_PATH.index(path)) } if @active
  end

  # Adds the loaded features to +report+, and those left out with the reason.
  def report_to(report)
    @loaded.each { |path| report.add("learnt", path) }
    @left_out.each do |path, why|
      report.add_record("left_out", path, why)
    end
    report.add("guard", OTHER_VERSION) unless @active.to_a.empty?
  end

  # Whether anything was loaded.
  def any?
    !@loaded.empty?
  end

  # Whether the search for a feature by its name leads to this path. An image depends on the search: another file of that
  # name may appear in a folder before.
  def found_first?(path)
    folders = $LOAD_PATH.map { |folder| "#{folder}/" }.select { |folder| path.start_with?(folder) }
    return true if folders.empty?

    name = path.delete_prefix(folders.max_by(&:size))
    found = $LOAD_PATH.resolve_feature_path(name.delete_suffix(File.extname(name)))&.last
    found.nil? || found == path || File.identical?(found, path)
  end

  # Returns the one of +left+ that the feature is a part of, if any: it may rely on that one, so it is not loaded without.
  def whole(path, left)
    wholes(path).find { |other| left.key?(other) }
  end

  # Returns the one of +left+ that in the end causes that one to be left out.
  def root(path, left)
    left[path].to_s[/\Arequires (.*)/m, 1] || path
  end

  private

  def load_all(reads, gem_lists)
    MAX_PASSES.times do
      paths = @from.keys - $LOADED_FEATURES - @left_out.keys
      return if paths.empty?

      # Later boots use the result of the first.
      found = @is_later_boot ? {} : try_in_child(paths, reads, gem_lists)
      return load_for_good(paths) if found.empty?

      @left_out.update(found)
    end
    (@from.keys - $LOADED_FEATURES - @left_out.keys).each do |path|
      @left_out[path] = "could not be separated from what must be left out"
    end
  end

  # Bundler decides where features are found by the Gemfile, which may differ in each start.
  def bundled?
    setup = @from.keys.grep(BUNDLER).first
    return false if setup.nil? || $LOADED_FEATURES.include?(setup)

    @left_out[setup] = "decides in each start which gems there are"
    true
  end

  # Lets RubyGems do what the script makes it do first: in the same order, and before anything else is loaded.
  def activate
    @active = []
    return unless defined?(Gem.loaded_specs)

    script = @script && !@leaves_script ? File.binread(@script) : ""
    Gem.use_gemdeps if script.include?(GEMDEPS)
    @gems.select! { |name, version| only?(name, version) } unless script.match?(BINSTUB)
    (@gems + unambiguous).each do |name, version|
      next if Gem.loaded_specs.key?(name)

      gem(name, "= #{version}")
      @active << name
    end
  end

  # Returns gems that are activated later and may be active now, with all their dependencies.
  def unambiguous
    gems = @activated.select { |name, version| unambiguous?(name, version) }
    loop do
      known = Gem.loaded_specs.keys + (@gems + gems).map(&:first)
      met = gems.select { |name, version| (needs(name, version) - known).empty? }
      return gems if met == gems

      gems = met
    end
  end

  def needs(name, version)
    Gem::Specification.find_by_name(name, version).runtime_dependencies.map(&:name)
  end

  # Whether this gem has no other version, which another start could ask for.
  def only?(name, version)
    Gem::Specification.find_all_by_name(name).map { |spec| spec.version.to_s } == [version]
  end

  # Whether it is the only version, and its loaded features are found nowhere else. If a file of the same name appears later,
  # that is an input of the image.
  def unambiguous?(name, version)
    return false unless only?(name, version)

    Gem::Specification.find_by_name(name, version).full_require_paths.all? do |folder|
      features = @from.keys.filter_map { |path| path[%r{\A#{Regexp.escape(folder)}/(.*)\.[a-z]+\z}, 1] }
      features.none? { |feature| $LOAD_PATH.resolve_feature_path(feature) }
    end
  end

  # Leaves out features found through a folder that is not in the search path yet, such as that of a gem activated later: the
  # next start may search another folder, or another version.
  def leave_searched
    later = @searched - $LOAD_PATH
    @from.each_key do |path|
      next if $LOAD_PATH.any? { |folder| path.start_with?("#{folder}/") }

      folder = later.find { |searched| path.start_with?("#{searched}/") }
      @left_out[path] = "is found in #{folder}, which the program adds to $LOAD_PATH" if folder
    end
  end

  # Returns what the feature is a part of: the feature that loaded it, in the same library, and lib/a.rb for lib/a/b.rb.
  def wholes(path)
    found = []
    from = @from[path].to_s
    found << from if !from.empty? && library(from) == library(path)
    folder = path
    found << "#{folder}.rb" while (folder = File.dirname(folder)).size > 1
    found
  end

  def library(path)
    @folders ||= $LOAD_PATH.map { |folder| "#{folder}/" }.sort_by { |folder| -folder.size }
    folder = @folders.find { |candidate| path.start_with?(candidate) }
    folder ? path.delete_prefix(folder)[%r{\A[^/.]+}] : File.dirname(path)
  end

  # Lets a child load them. Returns why some of them must be left out, by path.
  def try_in_child(paths, reads, gem_lists)
    Reads.phase(Channel::OF_TRIAL)
    child = Process.fork do
      Channel.call(Channel::TRIAL)
      Trial.new(self, @directory, reads, gem_lists).run(paths)
    end
    Process::Status.wait(child) # leaves $? unchanged
    Reads.phase(Channel::OF_PROGRAM)
    Trial.result(@directory)
  end

  def load_for_good(paths)
    Recipes.training = :loading
    paths.each do |path|
      found_first?(path)
      require path
    end
    @loaded = paths & $LOADED_FEATURES
  ensure
    Recipes.training = nil
  end
end
