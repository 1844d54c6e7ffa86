# frozen_string_literal: true

# rubocop:disable Style/GlobalVars, Style/EvalWithLocation, Lint/LiteralAsCondition, Lint/UnreachableLoop, Lint/EmptyBlock, Security/Eval

# The language itself: what is evaluated, traced, refined and loaded after the thaw.

require "coverage"
require "ripper"
require "tmpdir"

# A refinement.
module ShoutedStrings
  refine String do
    def shout
      "#{upcase}!"
    end
  end
end

# Where it is in use.
module Refined
  using ShoutedStrings

  def self.run
    ["a".shout, %w[b c].map(&:shout)]
  end
end

# The language.
class LanguageTest < Minitest::Test
  def test_refinements
    assert_equal(["A!", ["B!", "C!"]], Refined.run)
    assert_raises(NoMethodError) { "a".shout }
    code = "module Twice; refine(Integer) { def twice = self * 2 }; end; using Twice; 3.twice"
    assert_equal(6, eval(code, TOPLEVEL_BINDING.dup))
  end

  def test_binding
    local = 1
    assert_equal([2, true], [binding.eval("local + 1"), binding.local_variable_defined?(:local)])
    binding.local_variable_set(:local, 5)
    assert_equal(5, local)
    assert_equal([self, __FILE__], [binding.receiver, binding.source_location.first])
  end

  def test_toplevel_binding
    assert_equal("main", TOPLEVEL_BINDING.receiver.inspect)
    TOPLEVEL_BINDING.local_variable_set(:set_at_the_top, 3)
    assert_equal(3, TOPLEVEL_BINDING.eval("set_at_the_top"))
  end

  def test_eval
    assert_equal(["given.rb", 12], eval("[__FILE__, __LINE__]", nil, "given.rb", 12))
    error = assert_raises(SyntaxError) { eval("1 +", nil, "given.rb") }
    assert_match(/\Agiven\.rb:1/, error.message)
    assert_equal(3, instance_eval { 3 })
    assert_equal(:made, Class.new { class_eval("def made = :made") }.new.made)
  end

  def test_instructions
    compiled = RubyVM::InstructionSequence.compile("40 + 2")
    assert_equal(42, compiled.eval)
    assert_equal(42, RubyVM::InstructionSequence.load_from_binary(compiled.to_binary).eval)
    assert_includes(compiled.disasm, "opt_plus")
    assert_equal([:program, [[:@int, "1", [1, 0]]]], Ripper.sexp("1"))
    assert_equal(:SCOPE, RubyVM::AbstractSyntaxTree.parse("1").type)
  end

  def test_pattern_matching
    found = case { name: "x", list: [1, [2, 3]] }
            in { name: String => name, list: [Integer, [*, last]] } then [name, last]
            end
    assert_equal(["x", 3], found)
    assert_raises(NoMatchingPatternError) do
      case 5
      in 6 then nil
      end
    end
  end

  def test_control
    assert_equal(:thrown, catch(:tag) { 10.times { throw(:tag, :thrown) } })
    order = []
    begin
      begin
        raise "one"
      ensure
        order << :ensure
      end
    rescue RuntimeError => e
      order << e.message
    else
      order << :else
    end
    assert_equal([:ensure, "one"], order)
    assert_equal(3, begin
      attempts = (attempts || 0) + 1
      raise if attempts < 3

      attempts
    rescue RuntimeError
      retry
    end)
  end

  def test_exceptions
    error = assert_raises(NameError) { undefined_name_here }
    assert_equal(:undefined_name_here, error.name)
    assert_includes(error.backtrace.first, "#{__FILE__}:#{__LINE__ - 2}")
    outer = assert_raises(ArgumentError) do
      raise "inner"
    rescue RuntimeError
      raise ArgumentError, "outer"
    end
    assert_equal("inner", outer.cause.message)
    assert_includes(outer.full_message(highlight: false), "inner (RuntimeError)")
  end

  def test_suggestions
    error = assert_raises(NoMethodError) { [].frist }
    message = error.respond_to?(:detailed_message) ? error.detailed_message(highlight: false) : error.message # since 3.2
    assert_includes(message, "Did you mean?  first")
    assert_includes(message, "frist")
  end

  def test_callers
    assert_equal([:test_callers, __method__], [caller_locations(0, 1).first.base_label.to_sym, __method__])
    assert_equal(File.expand_path(__FILE__), caller_locations(0, 1).first.absolute_path)
    assert_equal(__dir__, File.dirname(__FILE__))
  end

  def test_objects
    parent = Class.new do
      def hello = "parent"
      def method_missing(name, *) = name.end_with?("?") ? name : super
      def respond_to_missing?(name, all = false) = name.end_with?("?") || super
    end
    loud = Module.new { def hello = super.upcase }
    child = Class.new(parent) { prepend(loud) }
    assert_equal(["PARENT", :any?, true], [child.new.hello, child.new.any?, child.new.respond_to?(:any?)])
    assert_equal([loud, child], child.ancestors.first(2))
    assert_raises(NoMethodError) { child.new.absent }
  end

  def test_redefining_what_is_inlined
    # In a child, since nothing could go on with such an Integer.
    sum = IO.popen("-") do |child|
      next child.read if child

      $stdout.write(eval("class ::Integer; def +(other) = 5; end; 1 + 1"))
    end
    assert_equal("5", sum)
  end

  def test_constants
    Object.const_set(:MadeAfterTheThaw, Class.new)
    assert_equal("MadeAfterTheThaw", MadeAfterTheThaw.name)
    assert_equal(__FILE__, Object.const_source_location(:LanguageTest).first)
    Object.send(:remove_const, :MadeAfterTheThaw)
    assert_raises(NameError) { MadeAfterTheThaw }
  end

  def test_globals
    assert_equal([$0, ARGV], [$PROGRAM_NAME, $*])
    assert_nil($DEBUG || nil)
    assert_equal([RUBY_ENGINE, "ruby"], ["ruby", RUBY_ENGINE])
    trace_var(:$traced, ->(value) { @seen = value })
    $traced = 5
    untrace_var(:$traced)
    assert_equal(5, @seen)
  end

  def test_warnings
    _, errors = capture_io { warn("deprecated", category: :deprecated) }
    assert_equal("", errors)
    _, errors = capture_io { warn("plain") }
    assert_equal("plain\n", errors)
  end
end

# TracePoint and Coverage.
class TracingTest < Minitest::Test
  def test_trace_point
    calls = []
    TracePoint.new(:call, :return, :c_call) { |point| calls << [point.event, point.method_id] }.enable { traced(2) }
    assert_includes(calls, %i[call traced])
    assert_includes(calls, %i[return traced])
  end

  def test_targeted
    lines = []
    TracePoint.new(:line) { |point| lines << point.lineno }.enable(target: method(:traced)) { traced(1) }
    assert_equal(1, lines.uniq.size)
  end

  def test_raise_and_class
    seen = []
    TracePoint.new(:raise, :class, :thread_begin) { |point| seen << point.event }.enable(target_thread: nil) do
      eval("class TracedClass; end")
      Thread.new {}.join
      begin
        Integer("x")
      rescue StandardError
        nil
      end
    end
    assert_equal(%i[class raise thread_begin], seen.uniq.sort)
  end

  def test_set_trace_func
    events = []
    set_trace_func(->(event, *) { events << event })
    traced(1)
    set_trace_func(nil)
    assert_includes(events, "call")
  end

  def test_coverage
    Dir.mktmpdir do |place|
      File.write("#{place}/covered.rb", "def covered(x)\n  x ? 1 : 2\nend\ncovered(true)\n")
      Coverage.start
      load("#{place}/covered.rb")
      assert_equal([1, 1, nil, 1], Coverage.result["#{place}/covered.rb"])
    end
  end

  private

  def traced(value)
    value + 1
  end
end

# require, load, autoload.
class LoadingTest < Minitest::Test
  def setup
    @place = File.realpath(Dir.mktmpdir)
    @features = $LOADED_FEATURES.dup
    $LOAD_PATH.unshift(@place)
  end

  def teardown
    $LOAD_PATH.delete(@place)
    $LOADED_FEATURES.replace(@features)
    FileUtils.remove_entry(@place)
  end

  def write(name, code)
    File.write("#{@place}/#{name}", code)
  end

  def test_require
    write("required_late.rb", "$required = ($required || 0) + 1")
    assert_equal([true, false, 1], [require("required_late"), require("#{@place}/required_late.rb"), $required])
    assert_includes($LOADED_FEATURES, "#{@place}/required_late.rb")
    assert_raises(LoadError) { require "absent_feature" }
  end

  def test_require_relative
    write("first.rb", "require_relative 'second'")
    write("second.rb", "$second = __dir__")
    require "first"
    assert_equal(@place, $second)
  end

  def test_loaded_before
    refute(require("minitest"))
    refute(require("rubygems"))
  end

  def test_load
    write("loaded.rb", "$loaded = ($loaded || 0) + 1\nONLY_INSIDE = 1")
    2.times { load("loaded.rb", true) }
    assert_equal([2, nil], [$loaded, defined?(ONLY_INSIDE)])
  end

  def test_autoload
    write("loaded_by_name.rb", "module LoadedByName; VALUE = 7; end")
    Object.autoload(:LoadedByName, "loaded_by_name")
    assert_equal("loaded_by_name", Object.autoload?(:LoadedByName))
    assert_equal([7] * 4, Array.new(4) { Thread.new { LoadedByName::VALUE } }.map(&:value))
    assert_nil(Object.autoload?(:LoadedByName))
  end

  def test_standard_library_and_extensions
    # What neither the runner nor this file loads: sources, and extensions with libraries of their own.
    %w[abbrev English racc/parser syslog nkf].each { |feature| require feature }
    refute_predicate(Syslog, :opened?)
    assert_equal("\x1b$B$\"\x1b(B".b, NKF.nkf("-j", "あ").b)
  end

  def test_script_with_data
    write("script.rb", "p DATA.read, $0 == __FILE__, ARGV\n__END__\nrest")
    assert_equal("\"rest\"\ntrue\n[\"a\"]\n", IO.popen([RbConfig.ruby, "#{@place}/script.rb", "a"], &:read))
  end

  def test_parallel_requires
    8.times { |i| write("parallel_#{i}.rb", "sleep 0.001; $parallel_#{i} = true") }
    Array.new(8) { |i| Thread.new { 8.times { |j| require "parallel_#{(i + j) % 8}" } } }.each(&:join)
    assert($parallel_0 && $parallel_7)
  end
end
# rubocop:enable Style/GlobalVars, Style/EvalWithLocation, Lint/LiteralAsCondition, Lint/UnreachableLoop, Lint/EmptyBlock, Security/Eval
