# frozen_string_literal: true

require_relative "support/programs"

# The layout of Ruby's objects in memory, and of what Ruby is about to parse: where it is another one, nothing is written.
class ObjectHeaderTest < Minitest::Test
  # Another value of each constant.
  OTHERS = { STRING: 0x06, FROZEN: 1 << 10, OUTSIDE: 1 << 14, UNIQUE: 1 << 28, CLASS_AT: 16, LENGTH_AT: 24, POINTER_AT: 16,
             MEMORY: "/nowhere" }.freeze

  def test_the_layout_of_this_ruby
    header = front_end::ObjectHeader
    assert header.layout_known?
    text = "a frozen text".dup.freeze
    header.thaw(text)
    assert_equal "a frozen text, changed", text << ", changed"
  end

  OTHERS.each do |name, value|
    define_method("test_another_#{name.downcase}") do
      header = front_end("#{name} = ", value)::ObjectHeader
      refute header.layout_known?
      assert_nothing_changes(header)
    end
  end

  def test_a_file_that_is_no_memory
    Dir.mktmpdir do |directory|
      File.binwrite("#{directory}/memory", "\xa5" * 100)
      header = front_end("MEMORY = ", "#{directory}/memory")::ObjectHeader
      refute header.layout_known?
      assert_nothing_changes(header)
      assert_equal "\xa5".b * 100, File.binread("#{directory}/memory")
    end
  end

  # The stack of Ruby 3.4, as far as it counts: options, then the text's address, size and kind.
  OPTIONS = [1].pack("@40l").ljust(92, "\0") + [0, 0, 0, 1].pack("C4").ljust(12, "\0")
  INPUT = [0x7f0000001000, 200, 3].pack("QQL")

  def test_the_parsers_input_on_the_stack
    assert_equal 512 + 104, input_in(("x" * 512) + OPTIONS + INPUT + ("y" * 64))
  end

  def test_other_stacks
    other_line, from_code, no_main_script = { 40 => 2, 92 => 2, 95 => 0 }.map do |at, byte|
      OPTIONS.dup.tap { |options| options.setbyte(at, byte) }
    end
    stacks = [other_line, from_code, no_main_script].map { |options| ("x" * 512) + options + INPUT }
    stacks += ["", INPUT, "x" * 600, OPTIONS, OPTIONS + INPUT[0, 16], "xx#{OPTIONS}xx#{INPUT}"]
    stacks << (OPTIONS + [0x7f0000001000, 201, 3].pack("QQL"))
    stacks.each do |stack|
      assert_raises(front_end::MainScript::NotFound, stack) { input_in(stack) }
    end
  end

  private

  def input_in(stack)
    front_end::PrismScript.allocate.__send__(:input_in, stack.b, 0x7f0000001000, 200)
  end

  # The files of the front end that know layouts, with another value of a constant.
  def front_end(constant = nil, value = nil)
    @front_end = nil if constant
    @front_end ||= Module.new.tap do |front_end|
      %w[object_header main_script prism_script].each do |name|
        text = File.read("#{FRONT_END}/front_end/#{name}.rb")
        text = text.sub(/^  #{constant}.*/) { "  #{constant}#{value.inspect}" } if constant
        front_end.module_eval(text, name)
      end
    end
  end

  def assert_nothing_changes(header)
    text = "a frozen text".dup.freeze
    object = Object.new
    object.define_singleton_method(:own) { 1 }
    assert_raises(header::Unknown) { header.thaw(text) }
    assert_raises(header::Unknown) { header.keep_class(object) { flunk } }
    assert_predicate text, :frozen?
    assert_equal 1, object.own
  end
end
