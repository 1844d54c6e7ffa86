# frozen_string_literal: true

require_relative "support/bundles"
require_relative "../../ruby/lib/snapboot/archive/gems/known_source"
require_relative "../../ruby/lib/snapboot/archive/gems/plain_gemspec"

# RubyGems and Bundler from the boot archive: a process is as it would be without, in the start that fills the archive,
# in those that use it, and after every kind of change.
class GemsTest < Minitest::Test
  parallelize_me!

  GEMFILE = <<~GEMFILE
    source "https://rubygems.org"
    gem "one", "~> 1.0"
    gem "two", require: ["two", "two"]
    gem "dashed-name"
    gem "unrequired", require: false
    group :test do
      gem "three"
    end
  GEMFILE

  def setup
    @bundle = Bundle.new
    @bundle.install("one", dependencies: { "two" => ">= 0" })
    %w[two three four unrequired outside].each { |name| @bundle.install(name) }
    @bundle.install("dashed-name", library: "dashed/name")
    @bundle.write("app/Gemfile", GEMFILE)
    @bundle.lock
  end

  def teardown
    @bundle.remove
  end

  def test_a_set_up_is_the_same_with_the_archive_as_without
    plain = @bundle.plain(arguments: ["definition"])
    assert_predicate(plain.last, :success?, plain.first)
    3.times { |start| same(plain, @bundle.archived(arguments: ["definition"]), "start #{start}") }
  end

  def test_a_second_set_up_does_not_build_the_definition
    assert_includes(@bundle.archived(arguments: ["kept"]).first, "definition built")
    assert_kept
  end

  {
    "a gemfile" => ->(bundle) { bundle.write("app/Gemfile", GEMFILE.sub(/^group.*/m, "gem 'four'\n")) },
    "a group of the gemfile" => ->(bundle) { bundle.write("app/Gemfile", GEMFILE.sub("group :test", "group :other")) },
    "what is required" => ->(bundle) { bundle.write("app/Gemfile", GEMFILE.sub("require: false", "require: 'unrequired'")) },
    "a gemfile that cannot be met" => ->(bundle) { bundle.write("app/Gemfile", "#{GEMFILE}gem 'missing'\n") },
    "a gemfile that raises" => ->(bundle) { bundle.write("app/Gemfile", "#{GEMFILE}gem 'one', raise('no')\n") },
    "a gemfile that is gone" => ->(bundle) { FileUtils.rm("#{bundle.root}/app/Gemfile") },
    "another gemfile name" => ->(bundle) { bundle.write("app/gems.rb", "source 'https://rubygems.org'\ngem 'four'\n") },
    "the Ruby version" => ->(bundle) { bundle.write("app/Gemfile", "#{GEMFILE}ruby '1.9.3'\n") },
    "a lockfile" => lambda do |bundle|
      lock = "#{bundle.root}/app/Gemfile.lock"
      bundle.write("app/Gemfile.lock", File.read(lock).gsub("three (1.0)", "three (0.9)"))
    end,
    "a lockfile that is broken" => ->(bundle) { bundle.write("app/Gemfile.lock", "<<<<<<< HEAD\n") },
    "a lockfile that is gone" => ->(bundle) { FileUtils.rm("#{bundle.root}/app/Gemfile.lock") },
    "a new version and lockfile" => lambda do |bundle|
      bundle.install("one", "1.5")
      FileUtils.rm("#{bundle.root}/app/Gemfile.lock")
    end,
    "a new version" => ->(bundle) { bundle.install("one", "1.5") },
    "a gem that is gone" => ->(bundle) { FileUtils.rm("#{bundle.root}/gems/specifications/three-1.0.gemspec") },
    "a gemspec" => lambda do |bundle|
      path = "#{bundle.root}/gems/specifications/one-1.0.gemspec"
      bundle.write("gems/specifications/one-1.0.gemspec", File.read(path).gsub("lib", "other"))
    end,
    "details of a gemspec" => lambda do |bundle|
      path = "#{bundle.root}/gems/specifications/one-1.0.gemspec"
      bundle.write("gems/specifications/one-1.0.gemspec", File.read(path).gsub("a gem", "A GEM"))
    end,
    "a gemspec that is broken" => ->(bundle) { bundle.write("gems/specifications/one-1.0.gemspec", "nonsense") },
    "a native part" => ->(bundle) { bundle.install("three", extensions: ["ext/three/extconf.rb"]) },
    "the configuration" => ->(bundle) { bundle.write("app/.bundle/config", "---\nBUNDLE_WITHOUT: \"test\"\n") },
    "the user's configuration" => ->(bundle) { bundle.write("home/.bundle/config", "---\nBUNDLE_WITHOUT: \"test\"\n") },
    "a path in the configuration" => ->(bundle) { bundle.write("app/.bundle/config", "---\nBUNDLE_PATH: \"vendor\"\n") }
  }.each do |what, change|
    define_method("test_never_stale_after_a_change_of_#{what.tr(" '", "__")}") do
      2.times { @bundle.archived }
      assert_kept
      instance_exec(@bundle, &change)
      same_twice(arguments: ["definition"])
    end
  end

  {
    "BUNDLE_WITHOUT" => { "BUNDLE_WITHOUT" => "test" },
    "BUNDLE_FROZEN" => { "BUNDLE_FROZEN" => "true" },
    "BUNDLE_GEMFILE" => { "BUNDLE_GEMFILE" => "Gemfile" },
    "BUNDLE_PATH" => { "BUNDLE_PATH" => "vendor" },
    "GEM_PATH" => { "GEM_PATH" => "/nowhere", "GEM_HOME" => "/nowhere" },
    "RUBYLIB" => { "RUBYLIB" => "/somewhere" },
    "RUBYOPT" => { "RUBYOPT" => "-W1" },
    "MANPATH" => { "MANPATH" => "/man" },
    "a variable that the gemfile reads" => { "FOUR" => "yes" },
    "a variable that the gemfile names as a condition" => { "SIX" => "yes" },
    "a variable that a further gemfile reads" => { "FIVE" => "yes" }
  }.each do |what, environment|
    define_method("test_never_stale_with_another_#{what.tr(" ", "_")}") do
      @bundle.write("app/more", "gem 'four' if ENV.fetch('FIVE', 'no') == 'yes'\n")
      @bundle.write("app/Gemfile", <<~GEMFILE)
        #{GEMFILE}
        gem "four" if ENV["FOUR"] == "yes"
        eval_gemfile "more"
        env "SIX" => "yes" do
          gem "outside"
        end
      GEMFILE
      File.utime(0, 0, "#{@bundle.root}/app/more")
      @bundle.lock
      sleep(1.1)
      2.times { @bundle.archived }
      assert_kept
      same_twice(environment, arguments: ["definition"])
    end
  end

  {
    "a file" => "gem 'four' if File.exist?(File.join(__dir__, 'flag'))\n",
    "a command" => "gem 'four' if `ls`.include?('flag')\n",
    "a method" => "def four? = Dir.children(__dir__).include?('flag')\ngem 'four' if four?\n",
    "a library" => "require_relative 'lib'\ngem 'four' if four?\n"
  }.each do |what, code|
    define_method("test_a_gemfile_that_depends_on_#{what.tr(" ", "_")}_is_evaluated") do
      @bundle.write("app/lib.rb", "def four? = File.exist?(File.join(__dir__, 'flag'))\n")
      @bundle.write("app/Gemfile", GEMFILE + code)
      @bundle.lock
      2.times { @bundle.archived }
      @bundle.write("app/flag", "")
      assert_includes(same_twice, "four-1.0")
    end
  end

  def test_a_gem_in_a_directory_is_evaluated
    @bundle.write("local/lib/local.rb", "LOADED << 'local'\n")
    @bundle.write("local/local.gemspec", <<~RUBY)
      Gem::Specification.new("local", File.read(File.join(__dir__, "VERSION"))) { |spec| spec.authors = ["me"]; spec.summary = "s" }
    RUBY
    @bundle.write("local/VERSION", "1.0")
    @bundle.write("app/Gemfile", "#{GEMFILE}gem 'local', path: '../local'\n")
    @bundle.lock
    2.times { same(@bundle.plain(arguments: ["definition"]), @bundle.archived(arguments: ["definition"]), "1.0") }
    @bundle.write("local/VERSION", "1.1")
    assert_includes(same_twice, "local-1.1")
  end

  def test_programs_without_a_bundle_activate_the_same_gems
    FileUtils.rm(Dir["#{@bundle.root}/app/Gemfile*"])
    @bundle.write("app/main.rb", <<~'RUBY')
      gem "one"
      require "two"
      require "dashed/name"
      p LOADED, Gem.loaded_specs.transform_values(&:full_name), $LOAD_PATH, Gem::Specification.map(&:full_name)
      p Gem::Specification.map { |spec| spec.instance_variables.map { |name| [name, spec.instance_variable_get(name).inspect] } }
      p Gem::Specification.map { |spec| spec.instance_variables.select { |name| spec.instance_variable_get(name).frozen? } }
      begin
        gem "missing"
      rescue LoadError => e
        p e.class, e.message
      end
    RUBY
    main = "#{@bundle.root}/app/main.rb"
    2.times { same(@bundle.plain(probe: main), @bundle.archived(probe: main), "unchanged") }
    @bundle.install("one", "1.5", dependencies: { "four" => ">= 0" })
    2.times { same(@bundle.plain(probe: main), @bundle.archived(probe: main), "a new version") }
    FileUtils.rm("#{@bundle.root}/gems/specifications/one-1.5.gemspec")
    2.times { same(@bundle.plain(probe: main), @bundle.archived(probe: main), "a version is gone") }
  end

  def test_features_of_gems_are_found_where_they_are
    FileUtils.rm(Dir["#{@bundle.root}/app/Gemfile*"])
    @bundle.install("native", extensions: ["ext/native/extconf.rb"])
    @bundle.write("app/main.rb", <<~'RUBY')
      %w[late late/er native dashed/name ../four /four dashed two].each do |feature|
        require feature
        p [feature, $LOADED_FEATURES.last, Gem.loaded_specs.keys]
      rescue LoadError => e
        p [feature, e.message, e.path]
      end
    RUBY
    main = "#{@bundle.root}/app/main.rb"
    2.times { same(@bundle.plain(probe: main), @bundle.archived(probe: main), "unchanged") }
    @bundle.write("gems/gems/four-1.0/lib/late.rb", "")
    2.times { same(@bundle.plain(probe: main), @bundle.archived(probe: main), "a new file") }
    @bundle.write("gems/gems/three-1.0/lib/late/er.rb", "")
    2.times { same(@bundle.plain(probe: main), @bundle.archived(probe: main), "a new directory") }
    @bundle.install("other", library: "late")
    2.times { same(@bundle.plain(probe: main), @bundle.archived(probe: main), "a new gem") }
    FileUtils.rm("#{@bundle.root}/gems/gems/four-1.0/lib/late.rb")
    2.times { same(@bundle.plain(probe: main), @bundle.archived(probe: main), "a file is gone") }
  end

  def test_a_gemspec_with_code_is_evaluated
    @bundle.write("gems/specifications/four-1.0.gemspec", <<~RUBY)
      # -*- encoding: utf-8 -*-
      # stub: four 1.0 ruby lib

      Gem::Specification.new { |s| s.name = "four"; s.version = "1.0"; s.summary = ENV["SUMMARY"].to_s }
    RUBY
    @bundle.write("app/main.rb", "p Gem::Specification.find_by_name('four').summary\n")
    main = "#{@bundle.root}/app/main.rb"
    %w[a b].each do |summary|
      assert_includes(@bundle.archived({ "SUMMARY" => summary }, probe: main).first, summary.inspect)
    end
  end

  private

  def assert_kept
    shown = @bundle.archived(arguments: ["kept"]).first
    assert(shown.start_with?("definition left"), shown)
  end

  # Compares two starts with the archive, the one after a change and the next, with one without. Returns what that one shows.
  # A set-up may write the lockfile: it is put back each time.
  def same_twice(environment = {}, arguments: [])
    locks = %w[Gemfile.lock gems.locked].map { |name| "#{@bundle.root}/app/#{name}" }
    texts = locks.map { |lock| File.read(lock) if File.exist?(lock) }
    plain = @bundle.plain(environment, arguments: arguments)
    %w[first second].each do |start|
      locks.zip(texts) { |lock, text| text ? File.write(lock, text) : FileUtils.rm_f(lock) }
      sleep(0.03)
      same(plain, @bundle.archived(environment, arguments: arguments), "#{start} start")
    end
    plain.first
  end

  def same(plain, archived, message)
    expected, shown = [plain, archived].map { |output, _| output.gsub(/0x\h{16}/, "0xADDRESS").lines }
    differences = (expected - shown).map { |line| "without: #{line}" } + (shown - expected).map { |line| "with:    #{line}" }
    assert_empty(differences, "#{message}\n#{differences.join}")
    assert_equal(plain.last.exitstatus, archived.last.exitstatus, message)
  end
end

# What is known of a Gemfile: the variables that it depends on, or nil.
class KnownSourceTest < Minitest::Test
  {
    "gem 'a', '~> 1', require: %w[b c], platforms: %i[mri]" => [],
    "gem 'a' if ENV['B'] || ENV.fetch('C', 'd') != 'd'" => %w[B C],
    "ruby '3.1.2', '>= 3', engine: 'ruby', engine_version: '3.1.2'" => [],
    "git_source(:github) { |name| \"https://github.com/\#{name}.git\" }" => [],
    "%w[a b].each { |name| gem name, install_if: -> { RUBY_PLATFORM =~ /linux/ } }" => [],
    "eval_gemfile File.join(__dir__, 'more')" => [],
    "ruby file: '.ruby-version'" => nil,
    "ruby(**{ file: '.ruby-version' })" => nil,
    "ruby(*%w[a b])" => nil,
    "ruby File.join('a')" => nil,
    "gemspec" => nil,
    "plugin 'a'" => nil,
    "gem 'a' if ENV.key?(name = 'B')" => nil,
    "gem 'a' if ENV.any?" => nil,
    "gem ENV.to_h['A']" => nil,
    "gem 'a', File.read('b')" => nil,
    "gem 'a', `b`" => nil,
    "gem 'a', %x(b)" => nil,
    "gem 'a', $b" => nil,
    "gem 'a', @b" => nil,
    "gem 'a', open('b')" => nil,
    "gem 'a', \"\#{system 'b'}\"" => nil,
    "gem 'a', Dir['*']" => nil,
    "gem 'a', Gem.loaded_specs" => nil,
    "gem 'a', Gem::Specification.load('b')" => nil,
    "gem 'a'.send(:system, 'b')" => nil,
    "'a'.instance_eval { gem 'b' }" => nil,
    "%w[b].map(&method(:system))" => nil,
    "%w[b].each(&:display)" => nil,
    "%w[b].map(&:to_sym).each { |name| gem name.to_s }" => [],
    ":instance_eval.to_proc.call('', 'system')" => nil,
    "def gem(*); end" => nil,
    "class String; end" => nil,
    "A = 1" => nil,
    "require 'a'" => nil,
    "gem 'a', Time.now.to_s" => nil,
    "gem 'a', rand.to_s" => nil,
    "gem 'a" => nil
  }.each do |source, variables|
    define_method("test_#{source}") do
      table = Snapboot::Archive::Gems::KnownSource
      known = table.variables(source, table::GEMFILE)
      variables ? assert_equal(variables, known) : assert_nil(known)
    end
  end
end

# Which gemspecs are told without a syntax tree.
class PlainGemspecTest < Minitest::Test
  def test_what_rubygems_writes_is_plain
    source = Gem::Specification.new("a", "1.0") do |spec|
      spec.summary = "with \#{nothing}, \"quotes\"\nand lines"
      spec.authors = %w[One Two]
      spec.metadata = { "key" => "value", "other" => "# no" }
      spec.files = []
      spec.required_ruby_version = [">= 3", "< 4"]
      spec.add_runtime_dependency("b", "~> 1", ">= 1.2")
      spec.add_development_dependency("c")
    end.to_ruby
    assert(Snapboot::Archive::Gems::PlainGemspec.match?(source), source)
  end

  def test_installed_gemspecs_that_are_plain_are_known_sources
    table = Snapboot::Archive::Gems::KnownSource
    files = Gem::Specification.dirs.flat_map { |directory| Dir.glob("#{directory}/*.gemspec") }
    files.each do |file|
      source = File.read(file, encoding: "UTF-8")
      next unless Snapboot::Archive::Gems::PlainGemspec.match?(source)

      assert_equal([], table.variables(source, table::GEMSPEC), file)
    end
  end

  [
    "s.name = name", "s.name = \"\#{1}\"", "s.name = \"\#$0\"", "s.name = \"\#@a\"", "s.name = `id`", "s.name = %x<id>",
    "s.name = \"a\"; exit", "s.name = \"a\".then { exit }", "s.name = \"a\" if ENV[\"A\"]", "s.name = [\"a\", exit]",
    "s.files = Dir[\"*\"]", "s.metadata = { \"a\" => exit }", "s.metadata = { exit => \"a\" }", "s.unknown = \"a\"", "exit",
    "s.add_dependency(exit, [\"1\"])", "s.add_dependency(%q<a>, [exit])", "s.add_dependency(%q<\\>>, [\"1\"])",
    "if exit then", "s.name = \"\\C-\"; exit #\"", "s.name = \"\\c\"; exit #\"", "s.name = \"\\M-\"; exit #\"",
    "s.name = \"a\"\n  # -*- coding: sjis -*-",
    "s.version = Gem::Version.new(exit)", "s.name = \"a\"\n\"b\"", "s.name = \"\\", "end\nexit\nif s"
  ].each do |statement|
    define_method("test_#{statement.inspect}_is_not_plain") do
      source = "# -*- encoding: utf-8 -*-\n\nGem::Specification.new do |s|\n  s.version = \"1\"\n  #{statement}\nend\n"
      refute(Snapboot::Archive::Gems::PlainGemspec.match?(source))
    end
  end
end
