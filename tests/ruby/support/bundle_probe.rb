# frozen_string_literal: true

# Shows what bundler/setup has done to a process, one fact a line. Arguments: `definition` also asks Bundler for what a
# set-up from the archive leaves to later, `kept` tells whether it was left to later.

def show(name)
  value = begin
    yield
  rescue Exception => e # rubocop:disable Lint/RescueException
    [e.class, e.message]
  end
  puts "#{name}: #{value.inspect}"
end

def variables(environment)
  environment.to_h.reject { |name, _| name.start_with?("SNAPBOOT") }.sort
end

def specification(spec)
  [spec.name, spec.version, spec.class, spec.platform, spec.full_name, spec.loaded_from, spec.full_gem_path,
   spec.full_require_paths, spec.default_gem?, spec.activated?]
end

begin
  require "bundler/setup"
rescue Exception => e # rubocop:disable Lint/RescueException
  puts "#{e.class}: #{e.message}"
  exit 1
end

if ARGV.include?("kept")
  built = $LOADED_FEATURES.any? { |name| name.end_with?("/bundler/definition.rb") }
  puts "definition #{built ? "built" : "left"}"
end

show("load path") { $LOAD_PATH }
show("environment") { variables(ENV) }
show("original") { variables(Bundler.original_env) }
show("unbundled") { variables(Bundler.with_unbundled_env { ENV.to_h }) }
show("loaded specs") { Gem.loaded_specs.map { |name, spec| [name, specification(spec)] } }
$LOADED_FEATURES.grep_v(%r{/bundler|snapboot|/rubygems/(?:vendor|name_tuple)}).each { |name| puts "feature: #{name}" }
show("gem of the bundle") { gem "one" }
show("gem of another version") { gem "one", "> 5" }
show("gem outside of the bundle") { gem "outside" }
show("require outside of the bundle") { require "outside" }
show("default gem") { gem "json" }
show("find by name") { Gem::Specification.find_by_name("one").full_name }
show("find outside") { Gem::Specification.find_by_name("outside").full_name }
show("known") { Gem::Specification.map(&:full_name) }
show("stubs") { Gem::Specification.stubs.size }
show("bin path") { Gem.bin_path("one", "one") }
show("interface") { Gem::DefaultUserInteraction.instance_variable_get(:@ui).class }
show("paths") { [Bundler.root, Bundler.bundle_path, Gem.path, Gem.dir] }
show("settings") { Bundler.settings.all.map { |key| [key, Bundler.settings[key]] } }
show("setup again") { [Bundler.setup.class, Bundler.setup.equal?(Bundler.load)] }
show("require") { Bundler.require.size && LOADED }
show("require of a group") { Bundler.require(:test).size && LOADED }

if ARGV.include?("definition")
  show("dependencies") do
    Bundler.load.dependencies.map do |dep|
      [dep.class, dep.name, dep.requirement.to_s, dep.groups, dep.autorequire, dep.source, dep.gemfile]
    end
  end
  show("source of a specification") { Gem.loaded_specs["one"].source.then { |source| [source.class, source.to_s] } }
  show("dependencies of a specification") { Gem.loaded_specs["one"].dependencies.map(&:to_s) }
  show("details of a specification") { Gem.loaded_specs["one"].summary }
  show("definition") do
    [Bundler.definition.instance_of?(Bundler::Definition), Bundler.definition.equal?(Bundler.definition)]
  end
  show("specs") { [Bundler.definition.specs.map(&:full_name), Bundler.definition.specs.size] }
  show("specs of the runtime") { Bundler.load.specs.map(&:full_name) }
  show("same specs") { Bundler.definition.specs.map { |spec| spec.equal?(Gem.loaded_specs[spec.name]) } }
  show("requested specs") { Bundler.load.requested_specs.map(&:full_name) }
  show("locked") { Bundler.locked_gems.specs.map(&:full_name) }
  show("groups") { Bundler.definition.groups }
  show("sources") { Bundler.definition.send(:sources).all_sources.map(&:to_s) }
  show("installed") { Bundler.definition.send(:sources).rubygems_sources.flat_map { |one| one.specs.map(&:full_name) }.sort }
  show("known afterwards") { [Gem::Specification.map(&:full_name), Gem::Specification.stubs.size] }
  show("Bundler's interface") { [Bundler.ui.class, Bundler.ui.level] }
  show("interface afterwards") { Gem::DefaultUserInteraction.instance_variable_get(:@ui).class }
  show("reset") { Bundler.reset! && Bundler.setup.specs.map(&:full_name) }
end
