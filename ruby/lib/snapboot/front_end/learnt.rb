# frozen_string_literal: true

# Loads what training runs have shown that the program needs later, as far as that is the same at any time.
#
# A feature may be loaded early when that is nothing but loading it. One that reads what belongs to a start, prints, fails,
# or changes the process for everybody is left to the program, which may never come to it, or come to it in another state;
# and so is whatever requires such a one. Which ones these are, children find out, so that this process stays clean: see
# Trial. When one has found nothing new, this process does the same.
class Learnt
  # A program needs three or four.
  MAX_PASSES = 12
  BUNDLER = %r{/bundler/setup\.rb\z}
  GEMDEPS = "Gem.use_gemdeps"
  # A script that chooses the versions of its gems before it knows its arguments.
  BINSTUB = /Gem\.(activate_)?bin_path/
  # RubyGems' scripts run another version of their gem with _1.2.3_.
  OTHER_VERSION = "_*"

  # RubyGems chooses its version in each start, by the arguments and by the lock file of the current directory.
  PER_START_GEM = "bundler"

  # +request+: names the features, in the order in which their loading began. +main+: the text of the main part, or nil
  # where it may be any.
  def initialize(request, main)
    @directory = request.directory
    # The first boot has tried what may be loaded.
    @is_later_boot = %w[other again].include?(request.value("evidence"))
    @script = request.value("script")
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

  # Pairs of the end of a path and what that file may read of a start, since it keeps nothing of that.
  attr_reader :harmless
  # Names of variables that the program has set in a training run.
  attr_reader :changed
  # Why a feature is left out, by its path.
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

  # Loads them. +reads+ and +gem_lists+ watch. Raises what loading raises.
  def load(reads, gem_lists)
    return if @from.empty? || bundled?

    activate
    # The script puts it there later: what was loaded by then is found loaded.
    $LOAD_PATH.unshift(*@load_path)
    leave_searched
    known = "#{@directory}/left_out"
    @left_out.update(Trial.read(known)) if @is_later_boot
    load_all(reads, gem_lists)
    Trial.write(known, @left_out) unless @is_later_boot
  ensure
    @load_path.each { |path| $LOAD_PATH.delete_at($LOAD_PATH.index(path)) } if @active
  end

  # Adds to +report+ what was loaded, and what was not and why.
  def tell(report)
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

  # Which of +left+ the feature is a part of, if any: it may rely on what stands there, so it is not loaded without.
  def whole(path, left)
    wholes(path).find { |other| left.key?(other) }
  end

  # The one of +left+ that is to blame in the end for leaving out that one.
  def root(path, left)
    left[path].to_s[/\Arequires (.*)/m, 1] || path
  end

  private

  def load_all(reads, gem_lists)
    MAX_PASSES.times do
      paths = @from.keys - $LOADED_FEATURES - @left_out.keys
      return if paths.empty?

      # The others do what the first one did.
      found = @is_later_boot ? {} : rehearse(paths, reads, gem_lists)
      return load_for_good(paths) if found.empty?

      @left_out.update(found)
    end
    (@from.keys - $LOADED_FEATURES - @left_out.keys).each do |path|
      @left_out[path] = "could not be told apart from what must be left out"
    end
  end

  # Bundler decides by the Gemfile, which may be another one in each start, where features are found.
  def bundled?
    setup = @from.keys.grep(BUNDLER).first
    return false if setup.nil? || $LOADED_FEATURES.include?(setup)

    @left_out[setup] = "decides in each start which gems there are"
    true
  end

  # Has RubyGems do what the script has it do first: in the same order, and before anything else is loaded.
  def activate
    @active = []
    return unless defined?(Gem.loaded_specs)

    script = @script ? File.binread(@script) : ""
    Gem.use_gemdeps if script.include?(GEMDEPS)
    @gems.select! { |name, version| only?(name, version) } unless script.match?(BINSTUB)
    (@gems + unambiguous).each do |name, version|
      next if Gem.loaded_specs.key?(name)

      gem(name, "= #{version}")
      @active << name
    end
  end

  # Gems that are activated later, and may be active now, with all that they need.
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

  # Whether there is no other version of this gem, which another start could ask for.
  def only?(name, version)
    Gem::Specification.find_all_by_name(name).map { |spec| spec.version.to_s } == [version]
  end

  # Whether it is the only one, and what was loaded from it is found nowhere else. What comes by the same name later is an
  # input with that.
  def unambiguous?(name, version)
    return false unless only?(name, version)

    Gem::Specification.find_by_name(name, version).full_require_paths.all? do |folder|
      features = @from.keys.filter_map { |path| path[%r{\A#{Regexp.escape(folder)}/(.*)\.[a-z]+\z}, 1] }
      features.none? { |feature| $LOAD_PATH.resolve_feature_path(feature) }
    end
  end

  # What was found by its name in a folder that is not searched yet, such as that of a gem which is activated later: the next
  # start may search another one, or another version.
  def leave_searched
    later = @searched - $LOAD_PATH
    @from.each_key do |path|
      next if $LOAD_PATH.any? { |folder| path.start_with?("#{folder}/") }

      folder = later.find { |searched| path.start_with?("#{searched}/") }
      @left_out[path] = "is found in #{folder}, which the program adds to $LOAD_PATH" if folder
    end
  end

  # What the feature is a part of: what has loaded it, in the same library, and lib/a.rb for lib/a/b.rb.
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

  # Has a child load them. Returns why some of them must be left out, by path.
  def rehearse(paths, reads, gem_lists)
    Reads.phase(Channel::OF_TRIAL)
    child = Process.fork do
      Channel.call(Channel::TRIAL)
      Trial.new(self, @directory, reads, gem_lists).run(paths)
    end
    Process::Status.wait(child) # leaves $? alone
    Reads.phase(Channel::OF_PROGRAM)
    Trial.result(@directory)
  end

  def load_for_good(paths)
    Recipes.training = :loading
    paths.each { |path| require path }
    @loaded = paths & $LOADED_FEATURES
  ensure
    Recipes.training = nil
  end
end
