# frozen_string_literal: true

# rubocop:disable Style/EvalWithLocation, Style/DocumentDynamicEvalDefinition

# The garbage collector, the heap, and the machine stack.

require "objspace"
require "weakref"

# The garbage collector, and large and deep things.
class CollectorTest < Minitest::Test
  def test_start
    count = GC.count
    GC.start
    assert_operator(GC.count, :>, count)
    assert_operator(GC.stat(:heap_live_slots), :>, 0)
  end

  def test_under_load
    kept = Array.new(200_000) { |i| "string #{i}" }
    100_000.times { |i| { i => [i] } }
    assert_equal("string 199999", kept.last)
    assert_equal(200_000, kept.uniq.size)
  end

  def test_minor_and_major
    before = GC.stat.slice(:minor_gc_count, :major_gc_count)
    GC.start(full_mark: false)
    GC.start(full_mark: true, immediate_sweep: false)
    assert_equal([1, 1], before.map { |kind, count| GC.stat(kind) <=> count })
  end

  def test_compact
    kept = Array.new(10_000) { |i| [i.to_s] }
    table = kept.to_h { |entry| [entry, entry.first] }.compare_by_identity
    GC.compact
    GC.verify_compaction_references(toward: :empty, double_heap: true)
    assert_equal("9999", kept.last.first)
    assert_equal(10_000, table.size)
    assert_includes(GC.latest_compact_info.keys, :moved)
  end

  def test_auto_compact
    GC.auto_compact = true
    GC.start
    assert_equal(45, 10.times.sum)
  ensure
    GC.auto_compact = false
  end

  def test_stress
    GC.stress = true
    assert_equal("a-1", format("%<a>s-%<b>d", a: "a", b: 1))
    assert_equal({ 1 => [2] }, { 1 => [2] }.dup)
    assert_equal("B", "b".match(/b/)[0].upcase)
  ensure
    GC.stress = false
  end

  def test_disable
    refute(GC.disable)
    assert(GC.enable)
  end

  def test_measure
    GC.measure_total_time = true
    GC.start
    assert_operator(GC.total_time, :>, 0)
  end

  def test_large_allocation
    block = "x" * 100_000_000
    assert_equal(100_000_000, block.bytesize)
    block << ("y" * 1_000_000)
    assert_equal("y", block[-1])
  end

  def test_growing_memory
    string = +""
    64.times { string << ("0123456789abcdef" * 4096) }
    assert_equal("f", string[-1])
    array = []
    1_000_000.times { |i| array << i }
    assert_equal(999_999, array.last)
    assert_equal([nil] * 100, Array.new(3_000_000)[-100..])
  end

  def test_stack
    deeper = ->(n) { n.zero? ? 0 : 1 + deeper.call(n - 1) }
    assert_equal(3000, deeper.call(3000))
    endless = -> { endless.call }
    3.times { assert_raises(SystemStackError) { endless.call } }
  end

  def test_deep_parse
    assert_equal(1, eval("#{"(" * 1000}1#{")" * 1000}"))
  end
end

# ObjectSpace and objspace.
class ObjectSpaceTest < Minitest::Test
  Marker = Class.new

  def test_each_object
    kept = Array.new(5) { Marker.new }
    assert_equal(kept.size, ObjectSpace.each_object(Marker).count)
    assert_includes(ObjectSpace.each_object(Class), Marker)
  end

  def test_count_objects
    counts = ObjectSpace.count_objects
    assert_operator(counts[:T_STRING], :>, 100)
    assert_operator(ObjectSpace.memsize_of("x" * 10_000), :>, 10_000)
    assert_operator(ObjectSpace.memsize_of_all, :>, 100_000)
  end

  def test_id2ref
    object = Object.new
    assert_same(object, ObjectSpace._id2ref(object.object_id))
  end

  def test_allocation_sources
    line = nil
    ObjectSpace.trace_object_allocations do
      object = Object.new
      line = __LINE__ - 1
      assert_equal([__FILE__, line], [ObjectSpace.allocation_sourcefile(object), ObjectSpace.allocation_sourceline(object)])
    end
  end

  def test_dump
    assert_includes(ObjectSpace.dump("in the dump"), "in the dump")
    assert_operator(ObjectSpace.dump_all(output: :string).lines.size, :>, 1000)
  end

  def test_finalizers
    ran = []
    make = -> { ObjectSpace.define_finalizer(Object.new, proc { |id| ran << id }) }
    20.times { make.call }
    GC.start
    assert_operator(ran.size, :>, 0)
  end

  def test_reachable
    assert_includes(ObjectSpace.reachable_objects_from([inner = "inner"]), inner)
  end
end

# Weak references.
class WeakTest < Minitest::Test
  def test_map
    map = ObjectSpace::WeakMap.new
    key = Object.new
    map[key] = value = Object.new
    make = -> { 100.times { map[Object.new] = Object.new } }
    make.call
    GC.start
    assert_same(value, map[key])
    assert_operator(map.keys.size, :<, 101)
  end

  def test_reference
    kept = Object.new
    reference = WeakRef.new(kept)
    assert_predicate(reference, :weakref_alive?)
    lost = Array.new(50) { WeakRef.new(Object.new) }
    GC.start
    assert_operator(lost.count(&:weakref_alive?), :<, 50)
    refute_nil(kept)
  end
end
# rubocop:enable Style/EvalWithLocation, Style/DocumentDynamicEvalDefinition
