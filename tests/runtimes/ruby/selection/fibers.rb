# frozen_string_literal: true

# Fibers, enumerators, and Ractors.

require "fiber"

# Fibers.
class FibersTest < Minitest::Test
  def test_resume_and_yield
    fiber = Fiber.new do |first|
      second = Fiber.yield(first + 1)
      second * 2
    end
    assert_equal(2, fiber.resume(1))
    assert_equal(20, fiber.resume(10))
    refute(fiber.alive?)
    assert_raises(FiberError) { fiber.resume }
  end

  def test_many
    fibers = Array.new(500) { |i| Fiber.new { Fiber.yield(i) } }
    assert_equal((0...500).sum, fibers.sum(&:resume))
  end

  def test_raise
    fiber = Fiber.new do
      Fiber.yield
    rescue KeyError => e
      e.message
    end
    fiber.resume
    assert_equal("in", fiber.raise(KeyError, "in"))
  end

  def test_transfer
    log = []
    other = nil
    main = Fiber.current
    first = Fiber.new { (log << 1) && other.transfer }
    other = Fiber.new { (log << 2) && main.transfer }
    first.transfer
    assert_equal([1, 2], log)
  end

  def test_other_thread
    fiber = Fiber.new { 1 }
    assert_raises(FiberError) { Thread.new { fiber.resume }.tap { |t| t.report_on_exception = false }.value }
  end

  def test_deep_stack
    depth = ->(n) { n.zero? ? 0 : 1 + depth.call(n - 1) }
    assert_equal(800, Fiber.new { depth.call(800) }.resume)
    deeper = ->(n) { deeper.call(n + 1) }
    assert_raises(SystemStackError) { Fiber.new { deeper.call(0) }.resume }
  end

  def test_collected_while_suspended
    200.times { Fiber.new { Fiber.yield("x" * 1000) }.resume }
    GC.start
    assert_equal(1, Fiber.new { 1 }.resume)
  end

  # A scheduler that only knows sleeping: fibers with the shortest time go first.
  class Sleepers
    def initialize
      @waiting = []
    end

    def fiber(&block)
      Fiber.new(blocking: false, &block).tap(&:resume)
    end

    def kernel_sleep(seconds)
      @waiting << [seconds, Fiber.current]
      Fiber.yield
    end

    def close
      run
    end

    def run
      until @waiting.empty?
        @waiting.sort_by!(&:first)
        @waiting.shift.last.resume
      end
    end

    def block(*)
      Fiber.yield
    end

    def unblock(*); end

    def io_wait(_io, events, _timeout)
      events
    end
  end

  def test_scheduler
    order = []
    Thread.new do
      Fiber.set_scheduler(Sleepers.new)
      [3, 1, 2].each { |i| Fiber.schedule { (sleep(i) || true) && (order << i) } }
    end.join
    assert_equal([1, 2, 3], order)
  end
end

# Enumerators, lazy and external.
class EnumeratorsTest < Minitest::Test
  def test_external
    enumerator = [1, 2].each
    assert_equal([1, 2], [enumerator.next, enumerator.next])
    assert_raises(StopIteration) { enumerator.next }
    enumerator.rewind
    assert_equal(1, enumerator.peek)
  end

  def test_generator
    fibonacci = Enumerator.new do |out|
      a = 0
      b = 1
      loop { (out << a) && (a, b = b, a + b) }
    end
    assert_equal([0, 1, 1, 2, 3, 5], fibonacci.take(6))
    assert_equal([0, 2, 8, 34], fibonacci.lazy.select(&:even?).first(4))
    assert_equal(610, fibonacci.each_with_index.find { |_, i| i == 15 }.first)
  end

  def test_size_and_feed
    assert_equal(2, [1, 2, 3].each_cons(2).size)
    mapping = [1, 2, 3].map
    mapping.next
    mapping.feed(:a)
    assert_equal(2, mapping.next)
  end

  def test_chain_and_product
    assert_equal([1, 2, 3, 4], ([1, 2].each + [3, 4]).to_a)
    assert_equal([[1, :a], [2, :b]], [1, 2].each.zip(%i[a b].each))
    assert_equal([1, 2, 4], Enumerator.produce(1) { |i| i * 2 }.take(3))
  end

  def test_lazy
    assert_equal([4, 16], (1..Float::INFINITY).lazy.map { |i| i * i }.reject(&:odd?).first(2))
    assert_equal({ false => [1, 3], true => [2] }, [1, 2, 3].group_by(&:even?))
  end

  def test_comparable
    version = Struct.new(:number) do
      include Comparable
      def <=>(other)
        number <=> other.number
      end
    end
    low = version.new(1)
    high = version.new(3)
    assert_operator(low, :<, high)
    assert(version.new(2).between?(low, high))
    assert_equal(high, version.new(9).clamp(low, high))
  end
end

# Ractors.
class RactorsTest < Minitest::Test
  def setup
    @warned = Warning[:experimental]
    Warning[:experimental] = false
  end

  def teardown
    Warning[:experimental] = @warned
  end

  def test_take
    assert_equal([1, 4, 9], [1, 2, 3].map { |i| Ractor.new(i) { |n| n * n } }.map(&:take))
  end

  def test_send_and_yield
    echo = Ractor.new { 2.times { Ractor.yield(Ractor.receive + 1) } }
    assert_equal([2, 3], [1, 2].map { |i| echo.send(i) && echo.take })
  end

  def test_error
    ractor = Ractor.new do
      Thread.current.report_on_exception = false
      raise ArgumentError, "inside"
    end
    error = assert_raises(Ractor::RemoteError) { ractor.take }
    assert_equal("inside", error.cause.message)
  end

  def test_shareable
    assert(Ractor.shareable?(Ractor.make_shareable({ "a" => ["b"] })))
    refute(Ractor.shareable?([+"a"]))
  end
end
