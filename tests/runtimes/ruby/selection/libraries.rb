# frozen_string_literal: true

# rubocop:disable Lint/MissingSuper

# RubyGems, Bundler and libraries that reach below Ruby.

require "bundler"
require "delegate"
require "drb"
require "fiddle/import"
require "forwardable"
require "logger"
require "observer"
require "open3"
require "optparse"
require "rbconfig"
require "reline"
require "rinda/tuplespace"
require "shellwords"
require "singleton"
require "tmpdir"
require "uri"

# RubyGems and Bundler.
class GemsTest < Minitest::Test
  def test_specifications
    assert_equal("minitest", Gem.loaded_specs.fetch("minitest").name)
    assert_operator(Gem::Specification.stubs.size, :>, 20)
    assert_equal(Gem::Version.new("2.10"), Gem::Version.new("2.10.0"))
    assert_equal(RUBY_VERSION, Gem.ruby_version.to_s[/\A[\d.]+\d/])
  end

  def test_activation
    name = %w[rake power_assert rexml].find { |gem| !Gem.loaded_specs.key?(gem) } || skip("all are active")
    assert(gem(name))
    assert_includes(Gem.loaded_specs.keys, name)
    assert_raises(Gem::MissingSpecError) { gem("no-such-gem") }
    assert_raises(Gem::LoadError) { gem("minitest", "> 999") }
  end

  def test_paths
    assert_includes(Gem.path, Gem.default_dir)
    assert_equal(Dir.home, File.expand_path("~"))
    assert(Gem::Platform.local.os == "linux")
  end

  def test_gem_command
    output, status = Open3.capture2e("gem", "env", "version")
    assert_equal([Gem::VERSION, true], [output.strip, status.success?])
  end

  def test_bundler
    Dir.mktmpdir do |place|
      File.write("#{place}/Gemfile", "gem 'rake'\n")
      ENV["BUNDLE_GEMFILE"] = "#{place}/Gemfile"
      definition = Bundler::Definition.build("#{place}/Gemfile", "#{place}/Gemfile.lock", nil)
      assert_equal(["rake"], definition.dependencies.map(&:name))
      assert_equal(["rake"], definition.specs.map(&:name) - ["bundler"])
    ensure
      ENV.delete("BUNDLE_GEMFILE")
    end
  end

  def test_bundler_in_a_child
    Dir.mktmpdir do |place|
      File.write("#{place}/Gemfile", "gem 'rake'\n")
      code = "require 'bundler/setup'; print Gem.loaded_specs.keys.sort.include?('rake')"
      assert_equal("true", IO.popen([{ "BUNDLE_GEMFILE" => "#{place}/Gemfile" }, RbConfig.ruby, "-e", code], &:read))
    end
  end
end

# Parts of the standard library.
class LibrariesTest < Minitest::Test
  # Functions of the C library.
  module LibC
    extend Fiddle::Importer
    dlload Fiddle.dlopen(nil)
    extern "int getpid()"
    extern "unsigned long strlen(char*)"
    Pair = struct(["int a", "double b"])
  end

  def test_fiddle
    assert_equal([Process.pid, 5], [LibC.getpid, LibC.strlen("hello")])
    pair = LibC::Pair.malloc(Fiddle::RUBY_FREE)
    pair.a = 7
    pair.b = 0.5
    assert_equal([7, 0.5], [pair.a, pair.b])
  end

  def test_fiddle_callback
    double = Fiddle::Closure::BlockCaller.new(Fiddle::TYPE_INT, [Fiddle::TYPE_INT]) { |i| i * 2 }
    assert_equal(42, Fiddle::Function.new(double, [Fiddle::TYPE_INT], Fiddle::TYPE_INT).call(21))
  end

  def test_options
    options = {}
    rest = OptionParser.new { |o| o.on("-v", "--[no-]verbose") { |v| options[:v] = v } }.parse(%w[-v file --no-verbose])
    assert_equal([{ v: false }, ["file"]], [options, rest])
    assert_raises(OptionParser::InvalidOption) { OptionParser.new.parse(["--x"]) }
  end

  def test_logger
    output = StringIO.new
    logger = Logger.new(output, progname: "selection")
    logger.info("text")
    assert_match(/\AI, \[[^\]]*##{Process.pid}\]  INFO -- selection: text\n\z/, output.string)
  end

  def test_patterns
    one = Class.new { include Singleton }
    assert_same(one.instance, one.instance)
    assert_equal(3, SimpleDelegator.new([1, 2, 3]).size)
    queue = Class.new do
      extend Forwardable
      def_delegators(:@list, :push, :size)
      def initialize = @list = []
    end
    assert_equal(1, queue.new.tap { |q| q.push(1) }.size)
  end

  def test_drb
    server = DRb::DRbServer.new("druby://127.0.0.1:0", { answer: 42 })
    assert_equal(42, DRbObject.new_with_uri(server.uri)[:answer])
  ensure
    server.stop_service
  end

  def test_tuplespace
    space = Rinda::TupleSpace.new
    taker = Thread.new { space.take([:job, nil]) }
    space.write([:job, 1])
    assert_equal([:job, 1], taker.value)
  end

  def test_text_tools
    assert_equal(["a b", "c"], Shellwords.split("'a b' c"))
    assert_equal("h", URI.parse("http://h:1/p?q").host)
    assert_equal("#{{ a: 1 }.inspect}\n", capture_io { pp({ a: 1 }) }.first)
    assert_equal(2, Reline::Unicode.calculate_width("日"))
  end

  def test_configuration
    assert_equal(RbConfig.ruby, File.join(RbConfig::CONFIG["bindir"], RbConfig::CONFIG["ruby_install_name"]))
    assert_path_exists(RbConfig.ruby)
    assert_equal(RUBY_VERSION, RbConfig::CONFIG.values_at("MAJOR", "MINOR", "TEENY").join("."))
  end
end
# rubocop:enable Lint/MissingSuper
