# frozen_string_literal: true

require "minitest/autorun"
require "fileutils"
require "open3"
require "tmpdir"
require "rbconfig"

# What only shows with CRuby and the native back end. What require does in general is in tests/archive/require.
class ArchiveRequireTest < Minitest::Test
  SETUP = File.expand_path("../../ruby/lib/snapboot/setup.rb", __dir__)

  def setup
    @directory = Dir.mktmpdir
    @root = File.join(@directory, "app")
    FileUtils.mkdir_p(File.join(@root, "lib"))
  end

  def teardown
    FileUtils.rm_rf(@directory)
  end

  # So many that features are just appended, and some more.
  MANY = 1200

  def test_the_list_of_features_stays_true_when_ruby_is_not_asked_for_long
    MANY.times { |number| write("lib/c#{number}.rb", "$order << #{number}") }
    write("lib/more.rb", "$order << :more")
    same(<<~RUBY)
      $order = []
      #{MANY}.times { |number| require "c\#{number}" }
      p $order == (0...#{MANY}).to_a, $".last(2), require("c7"), require("\#{ROOT}/lib/c#{MANY - 1}.rb")
      $".delete("\#{ROOT}/lib/c5.rb")
      $order.clear
      p require("c5"), require("c5"), require("etc"), require("more"), $order, $".last(3), $".last.frozen?
      autoload :Gone, "\#{ROOT}/lib/c6.rb"
      p defined?(Gone), $".count { |feature| feature.start_with?(ROOT) }, $".pop, require("more"), $order
      $".freeze
      write = begin
        load "\#{ROOT}/lib/c1.rb"
        require "\#{ROOT}/lib/../lib/more"
      rescue StandardError => e
        e.class
      end
      p write
    RUBY
  end

  def test_a_moved_application_keeps_its_archive
    skip "the layout of this Ruby's code is not known" unless RUBY_VERSION.match?(/\A3\.[13]\./)

    write("lib/one.rb", "module One; FILE = __FILE__; DIR = __dir__; def self.fail = raise('no'); end")
    write("lib/two.rb", "require_relative 'one'; p __FILE__, __dir__, One::FILE, One::DIR, One.method(:fail)")
    write("main.rb", <<~RUBY)
      require_relative "lib/two"
      begin
        One.fail
      rescue StandardError => e
        puts e.backtrace.first
      end
    RUBY
    write("Gemfile", "")
    run_ruby("#{@root}/main.rb")
    moved = File.join(@directory, "a much longer name than before")
    File.rename(@root, moved)
    sleep 0.03
    @root = moved
    expected = run_ruby("#{@root}/main.rb", switch: [])
    assert_equal "#{expected}events: 2 hit\n", run_ruby("#{@root}/main.rb", events: true)
  end

  def test_with_coverage_a_tracer_or_full_warnings_code_is_compiled_anew
    write("lib/one.rb", "unused = 1\nputs :one")
    code = "$:.unshift(#{File.join(@root, "lib").dump}); "
    run_ruby("-e", "#{preamble}#{code}require 'one'")
    covered = "require 'coverage'; Coverage.start; require 'one'; p Coverage.result"
    assert_includes run_ruby("-e", "#{preamble}#{code}#{covered}"), "one.rb"
    traced = "p TracePoint.new(:script_compiled) { |t| p t.instruction_sequence.path }.enable { require 'one' }"
    assert_includes run_ruby("-e", "#{preamble}#{code}#{traced}"), "one.rb"
    warned = run_ruby("-w", "-e", "#{preamble}#{code}require 'one'")
    assert_includes warned, "assigned but unused variable"
  end

  def test_other_compile_options_have_code_of_their_own
    write("lib/one.rb", "p 'literal'.frozen?")
    code = "#{preamble}$:.unshift(\"\#{ROOT}/lib\"); load 'one.rb'; " \
           "RubyVM::InstructionSequence.compile_option = { frozen_string_literal: true }; load 'one.rb'"
    2.times { assert_equal "false\ntrue\n", run_ruby("-e", code) }
    2.times do
      assert_equal "true\ntrue\n", run_ruby("--enable-frozen-string-literal", "-e", code)
    end
  end

  def test_other_code_caches_are_left_alone
    write("lib/one.rb", "puts :one")
    run_ruby("-e", "#{preamble}require '#{@root}/lib/one'")
    other = "def (RubyVM::InstructionSequence).load_iseq(path) = (puts File.basename(path); nil)"
    assert_equal "one.rb\none\n", run_ruby("-e", "#{preamble}#{other}; require '#{@root}/lib/one'")
  end

  # As Bundler does: RubyGems' require is gone.
  BUNDLER = <<~RUBY
    module Kernel
      remove_method :require
      alias_method :require, :gem_original_require
      private :require
    end
  RUBY
  # As Zeitwerk does: Ruby's own has another name, and calls reach it from a method in front.
  ZEITWERK = <<~RUBY
    $calls = 0
    module Kernel
      module_function
      alias_method :original_of_another, :require
      class << self
        alias_method :original_of_another, :require
      end
      def require(name) = ($calls += 1; original_of_another(name))
    end
  RUBY

  # As in a thawed process, which opens its archive late.
  def test_an_archive_that_is_opened_late_finds_files_for_whoever_has_kept_rubys_own_require
    3.times { |number| write("lib/f#{number}.rb", "") }
    features = "%w[f0 f1]"
    { "" => 0, BUNDLER => 0, ZEITWERK => 2, BUNDLER + ZEITWERK => 2 }.each do |before, calls|
      code = <<~RUBY
        #{preamble}$:.unshift("\#{ROOT}/lib")
        #{before}
        require_relative #{SETUP.delete_suffix(".rb").dump}
        $found = []
        watcher = Object.new
        def watcher.looked_up(_event, path, _took, found) = ($found << File.basename(path) if found)
        def watcher.compiled_instead(_path) = nil
        def watcher.answered(_name, _took) = nil
        Snapboot::Archive.watch(watcher)
        $calls = 0
        #{features}.each { |name| require name }
        calls = $calls
        p $found, calls, Kernel.require("f2"), Kernel.require("f2"), $calls - calls, Kernel.method(:require).owner == Kernel.singleton_class
      RUBY
      expected = "[\"f0.rb\", \"f1.rb\", \"f2.rb\"]\n#{calls}\ntrue\nfalse\n#{calls}\ntrue\n"
      assert_equal expected, run_ruby("-e", code, switch: []), before
    end
  end

  def test_threads_wait_for_each_other
    write("lib/slow.rb", "$count += 1; sleep 0.2; Slow = 1")
    2.times do
      threads = "3.times.map { Thread.new { [require('#{@root}/lib/slow'), Slow] } }"
      output = run_ruby("-e", "$count = 0; p #{threads}.map(&:value).sort_by(&:to_s), $count")
      assert_equal "[[false, 1], [false, 1], [true, 1]]\n1\n", output
    end
  end

  def test_ractors_go_the_ordinary_way
    write("lib/one.rb", "ONE = 1")
    code = "Warning[:experimental] = false; require '#{@root}/lib/one'; p Ractor.new { Object.const_get(:ONE) }.take"
    2.times { assert_equal "1\n", run_ruby("-e", code) }
  end

  def test_only_the_main_ractor_has_the_archive
    code = "Warning[:experimental] = false; native = Snapboot::Archive::Native; p native.place.class, " \
           "Ractor.new { [Snapboot::Archive::Native.place, Snapboot::Archive::Native.counters] }.take"
    assert_equal "String\n[nil, [0, 0, 0, 0]]\n", run_ruby("-e", code)
  end

  private

  def write(name, text)
    File.write(File.join(@root, name), text)
    sleep 0.03 unless name.match?(/c\d/)
  end

  def preamble
    "ROOT = #{@root.dump}; "
  end

  # The code prints the same without the archive, when it is filled, and from it.
  def same(code)
    sleep 0.03
    code = "#{preamble}$:.unshift(\"\#{ROOT}/lib\")\n#{code}"
    expected = run_ruby("-e", code, switch: [])
    2.times { assert_equal expected, run_ruby("-e", code) }
  end

  EVENTS = <<~'RUBY'
    hits = 0
    Snapboot::Archive.on_event { |event, _, name| hits += 1 if event == :hit && name.match?(%r{/lib/(one|two)\.rb}) }
    at_exit { puts "events: #{hits} hit" }
  RUBY

  # What it prints, errors included.
  def run_ruby(*words, switch: ["-r", SETUP], events: false)
    File.write("#{@directory}/events.rb", EVENTS)
    switch += ["-r", "#{@directory}/events.rb"] if events
    environment = { "SNAPBOOT_ARCHIVE" => File.join(@directory, "boot.archive"), "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil }
    output, status = Open3.capture2e(environment, RbConfig.ruby, *switch, *words)
    assert_predicate status, :success?, output
    output
  end
end
