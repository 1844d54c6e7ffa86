# frozen_string_literal: true

require_relative "support/programs"

# Programs with Ruby's just-in-time compilers: what YJIT has compiled before the freeze runs after the thaw, and it goes on.
class YjitTest < SameResult
  SINCE = "3.3"
  HAS_YJIT = RubyVM.const_defined?(:YJIT)
  HOOKS = "require #{"#{ROOT}/ruby/lib/snapboot".inspect}\n".freeze

  # Boots with hot methods: they are compiled.
  BOOT = <<~RUBY.freeze
    #{HOOKS}class Hot
      LIMIT = 3
      attr_accessor :value
      def initialize = @value = 1
      def add(number) = number + LIMIT + @value
      def each = yield(@value)
      def failing(number) = number.zero? ? raise(ArgumentError, "zero") : number
      def through(number) = failing(number)
      def replaced = :before
      def calls_replaced = replaced
    end

    def compiled = RubyVM::YJIT.runtime_stats[:compiled_iseq_count]
    def code_size = RubyVM::YJIT.runtime_stats[:code_region_size]

    def heat(hot)
      300.times do |i|
        hot.add(i)
        hot.each { |value| value + i }
        hot.through(i + 1)
        hot.calls_replaced
      end
    end

    hot = Hot.new
    heat(hot)
    BEFORE = compiled
    SIZE = code_size
    Snapboot.freeze_point
    p RubyVM::YJIT.enabled?, BEFORE.positive?, compiled >= BEFORE, RUBY_DESCRIPTION
    p hot.add(4), hot.each { |value| value + 5 }, hot.calls_replaced
  RUBY

  # What changes the ground that compiled code stands on.
  CHANGES = <<~RUBY
    begin
      hot.through(0)
    rescue ArgumentError => e
      puts e.message, e.backtrace.map { |frame| frame[/\\d+:in.*/] }
    end
    class Hot; def replaced = :after; end
    p hot.calls_replaced
    Hot.send(:remove_const, :LIMIT)
    Hot::LIMIT = 30
    p hot.add(4)
    GC.compact if GC.respond_to?(:compact)
    heat(hot)
    lines = 0
    TracePoint.new(:line) { lines += 1 }.enable { heat(hot) }
    p lines, hot.add(4)
    p Thread.new { heat(hot); hot.add(5) }.value
    IO.popen("-") { |child| child ? print(child.read) : (heat(hot); p hot.add(6)) }
    ractor = Ractor.new { 200.times.sum { |i| Integer.sqrt(i) } }
    p ractor.respond_to?(:take) ? ractor.take : ractor.value
    class Integer
      alias plain +
      def +(other) = plain(other).plain(1000)
    end
    p hot.add(4), 1 + 1
  RUBY

  # Compiles more code than lay in the committed memory at the freeze.
  GROWTH = <<~RUBY
    source = (1..3000).map { |i| "def made\#{i}(a) = a.to_s + [a, \#{i}].inspect + (a > \#{i} ? 'x' : 'y')" }.join("\\n")
    eval(source)
    total = 0
    (1..3000).each { |i| name = "made\#{i}"; 40.times { |j| total += send(name, j).size } }
    p total, compiled > BEFORE + 2000, code_size > SIZE
    p hot.add(4)
  RUBY

  def setup
    super
    return if name.include?("_refused") || (HAS_YJIT && RUBY_VERSION >= SINCE)

    skip "this Ruby has no YJIT of 3.3 or later"
  end

  def test_compiled_code_is_there_after_the_thaw
    file("hot.rb", BOOT + CHANGES)
    shown = same ["hot.rb"], interpreter_options: ["--yjit"]
    assert_equal ["", 0], [shown.errors.gsub(/.*experimental.*\n/, ""), shown.status]
    assert_match(/\Atrue\ntrue\ntrue\n/, shown.output)
  end

  def test_the_compiler_goes_on_past_what_was_committed
    file("hot.rb", BOOT + GROWTH)
    shown = same ["hot.rb"], interpreter_options: ["--yjit"]
    assert_match(/^true\ntrue\n\d+\n\z/, shown.output)
  end

  def test_each_way_to_turn_it_on
    file("hot.rb", BOOT)
    [{ interpreter_options: ["--yjit", "--yjit-call-threshold=2", "--yjit-exec-mem-size=8"] },
     { environment: { "RUBYOPT" => "--yjit" } }, { environment: { "RUBY_YJIT_ENABLE" => "1" } }].each do |how|
      assert_match(/\Atrue\ntrue\n/, same(["hot.rb"], **how).output)
    end
  end

  def test_a_program_that_turns_it_on_while_it_boots
    file("hot.rb", "RubyVM::YJIT.enable\n#{BOOT}")
    assert_match(/\Atrue\ntrue\n/, same(["hot.rb"]).output)
  end

  def test_a_program_that_turns_it_on_after_the_thaw
    file("later.rb", "#{HOOKS}def double(a) = a * 2\n500.times { double(1) }\nSnapboot.freeze_point\n" \
                     "p RubyVM::YJIT.enabled?\nRubyVM::YJIT.enable\n500.times { double(1) }\n" \
                     "p RubyVM::YJIT.enabled?, double(4)\np RubyVM::YJIT.runtime_stats[:compiled_iseq_count].positive?\n")
    assert_equal "false\ntrue\n8\ntrue\n", same(["later.rb"]).output
  end

  def test_a_start_without_it_has_no_image_with_it
    return unless SNAPBOOT # a start chooses between images only

    file("hot.rb", "#{HOOKS}Snapboot.freeze_point\np [RubyVM::YJIT.enabled?, Snapboot.state]\n")
    [nil, "1"].permutation(2) do |frozen, started|
      image = "#{@directory}/image"
      environment = { "RUBY_YJIT_ENABLE" => frozen }
      freeze = [SNAPBOOT, "freeze", "-o", image, "--", RbConfig.ruby, "hot.rb"]
      _, errors, status = Open3.capture3(environment, *freeze, chdir: @directory)
      assert status.success?, errors
      { frozen => :thawed, started => :ordinary }.each do |value, state|
        output, = Open3.capture2({ "RUBY_YJIT_ENABLE" => value }, image, chdir: @directory)
        assert_equal [!value.nil?, state].inspect, output.chomp
      end
    end
  end

  if HAS_YJIT && RUBY_VERSION < SINCE
    def test_an_earlier_version_is_refused
      file("boot.rb", "module RubyVM::YJIT\n  def self.enabled? = true\nend")
      assert_refused(/YJIT of CRuby 3\.[12].* from CRuby 3\.3 on/)
    end
  end

  def test_another_compiler_is_refused
    file("boot.rb", "class RubyVM\n  module RJIT\n  end\n  def RJIT.enabled? = true\nend")
    assert_refused(/RJIT of CRuby .* only YJIT's can/)
  end

  unless HAS_YJIT
    def test_an_option_that_this_ruby_warns_of_is_refused
      file("boot.rb", "")
      assert_refused(/built without YJIT, and warns of --yjit/, interpreter_options: ["--yjit"])
    end
  end

  private

  def assert_refused(message, **how)
    shown, report = thawed([], "-e", "p 1", preload: ["./boot"], **how)
    assert_equal 2, shown.status
    assert_match message, SNAPBOOT ? shown.errors : report.grep(/^error=/).join
  end
end
