# frozen_string_literal: true

require "fileutils"
require "minitest/autorun"
require "open3"
require "rbconfig"
require "rubygems"
require "tmpdir"

# An application with a bundle and gems of its own, in a temporary directory; started plainly and with a boot archive.
class Bundle
  LIBRARY = File.expand_path("../../../ruby/lib", __dir__)
  PROBE = File.expand_path("bundle_probe.rb", __dir__)

  attr_reader :root

  def initialize
    @root = File.realpath(Dir.mktmpdir("bundle"))
    %w[app gems/specifications gems/gems home].each { |name| FileUtils.mkdir_p("#{@root}/#{name}") }
  end

  def remove
    FileUtils.rm_rf(@root)
  end

  def write(name, text)
    path = "#{@root}/#{name}"
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
    settle
  end

  # Installs a gem: its gemspec as RubyGems writes it, and a library that tells that it was loaded.
  def install(name, version = "1.0", dependencies: {}, extensions: [], library: name)
    gem = "#{@root}/gems/gems/#{name}-#{version}"
    FileUtils.mkdir_p("#{gem}/lib/#{File.dirname(library)}")
    File.write("#{gem}/lib/#{library}.rb", "LOADED = [] unless defined?(LOADED)\nLOADED << '#{name} #{version}'\n")
    specification = Gem::Specification.new(name, version) do |spec|
      spec.summary = "a gem"
      spec.authors = ["somebody"]
      spec.files = ["lib/#{library}.rb"]
      spec.extensions = extensions
      dependencies.each { |other, requirement| spec.add_dependency(other, requirement) }
    end
    File.write("#{@root}/gems/specifications/#{name}-#{version}.gemspec", specification.to_ruby)
    settle
  end

  def lock
    output, status = run("-rbundler", "-e", "Bundler.definition.lock(Bundler.default_lockfile)")
    raise output unless status.success?

    settle
  end

  # What the probe shows in an ordinary start.
  def plain(environment = {}, arguments: [], probe: PROBE)
    run(probe, *arguments, environment: environment)
  end

  # What it shows in a start with the archive.
  def archived(environment = {}, arguments: [], probe: PROBE)
    run("-r", "snapboot/setup", probe, *arguments, environment: environment)
  end

  def environment
    { "GEM_HOME" => "#{@root}/gems", "GEM_PATH" => "#{@root}/gems", "HOME" => "#{@root}/home", "LC_ALL" => "C.UTF-8",
      "SNAPBOOT_ARCHIVE" => "#{@root}/archive", "RUBYOPT" => nil, "RUBYLIB" => nil, "BUNDLE_GEMFILE" => nil }
  end

  private

  # What has just changed is not kept in an archive.
  def settle
    sleep(0.03)
  end

  def run(*words, environment: {})
    Open3.capture2e(self.environment.merge(environment), RbConfig.ruby, "-I", LIBRARY, *words, chdir: "#{@root}/app")
  end
end
