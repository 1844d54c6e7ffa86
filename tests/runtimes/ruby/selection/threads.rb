# frozen_string_literal: true

# Threads and what keeps them apart.

require "monitor"
require "timeout"

# Threads.
class ThreadsTest < Minitest::Test
  def test_values_and_join
    before = Thread.list
    assert_equal([0, 1, 4, 9, 16], Array.new(5) { |i| Thread.new { i * i } }.map(&:value))
    assert_equal(before, Thread.list)
  end

  def test_many
    count = 0
    lock = Mutex.new
    Array.new(60) { Thread.new { 50.times { lock.synchronize { count += 1 } } } }.each(&:join)
    assert_equal(3000, count)
  end

  def test_main_thread
    assert_same(Thread.main, Thread.current)
    assert_equal("run", Thread.main.status)
  end

  def test_status
    stop = Queue.new
    thread = Thread.new { stop.pop }
    Thread.pass until thread.stop?
    assert_equal("sleep", thread.status)
    stop << 1
    thread.join
    refute(thread.status)
  end

  def test_raise_across
    ready = Queue.new
    thread = Thread.new do
      ready << 1
      sleep
    rescue ArgumentError => e
      e.message
    end
    ready.pop
    Thread.pass until thread.stop?
    thread.raise(ArgumentError, "from outside")
    assert_equal("from outside", thread.value)
  end

  def test_kill_runs_ensure
    seen = Queue.new
    thread = Thread.new do
      seen << :begun
      sleep
    ensure
      seen << :ended
    end
    assert_equal(:begun, seen.pop)
    thread.kill.join
    assert_equal(:ended, seen.pop)
  end

  def test_exception_in_join
    thread = Thread.new { raise IOError, "boom" }
    thread.report_on_exception = false
    assert_raises(IOError) { thread.join }
  end

  def test_abort_on_exception
    code = "Thread.abort_on_exception = true; Thread.report_on_exception = false; Thread.new { raise 'x' }; sleep 600"
    refute(system(RbConfig.ruby, "-e", code, err: File::NULL))
  end

  def test_handle_interrupt
    log = []
    ready = Queue.new
    thread = Thread.new do
      Thread.handle_interrupt(RuntimeError => :never) do
        ready << 1
        Thread.pass until Thread.pending_interrupt?
        log << :safe
      end
    rescue RuntimeError
      log << :raised
    end
    ready.pop
    thread.raise("now")
    thread.join
    assert_equal(%i[safe raised], log)
  end

  def test_locals
    Thread.current[:of_fiber] = 1
    Thread.current.thread_variable_set(:of_thread, 2)
    assert_equal([nil, 2], Fiber.new { [Thread.current[:of_fiber], Thread.current.thread_variable_get(:of_thread)] }.resume)
  end

  def test_queue
    queue = Queue.new
    consumer = Thread.new { Array.new(3) { queue.pop } }
    [1, 2, 3].each { |i| queue << i }
    assert_equal([1, 2, 3], consumer.value)
    assert_raises(ThreadError) { queue.pop(true) }
    queue.close
    assert_nil(queue.pop)
    assert_raises(ClosedQueueError) { queue << 1 }
  end

  def test_sized_queue_blocks
    queue = SizedQueue.new(1)
    producer = Thread.new { 3.times { |i| queue << i } }
    Thread.pass until producer.stop?
    assert_equal(1, queue.num_waiting)
    assert_equal([0, 1, 2], Array.new(3) { queue.pop })
    producer.join
  end

  def test_condition_variable
    lock = Mutex.new
    condition = ConditionVariable.new
    ready = false
    waiter = Thread.new { lock.synchronize { condition.wait(lock) until ready } }
    Thread.pass until waiter.stop?
    lock.synchronize do
      ready = true
      condition.broadcast
    end
    assert_same(waiter, waiter.join(10))
  end

  def test_mutex_rules
    lock = Mutex.new
    lock.lock
    assert_raises(ThreadError) { lock.lock }
    refute(Thread.new { lock.try_lock }.value)
    assert(lock.owned?)
    lock.unlock
    assert_raises(ThreadError) { lock.unlock }
  end

  def test_monitor
    monitor = Monitor.new
    assert_equal(:in, monitor.synchronize { monitor.synchronize { :in } })
    condition = monitor.new_cond
    filled = []
    reader = Thread.new do
      monitor.synchronize do
        condition.wait_while { filled.empty? }
        filled.first
      end
    end
    Thread.pass until reader.stop?
    monitor.synchronize do
      filled << 7
      condition.signal
    end
    assert_equal(7, reader.value)
  end

  def test_timeout
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { sleep } }
    assert_in_delta(0.05, Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, 60)
    assert_equal(1, Timeout.timeout(60) { 1 })
    assert_raises(IOError) { Timeout.timeout(0.05, IOError) { loop { 1 + 1 } } }
  end

  def test_timeout_in_thread
    thread = Thread.new { Timeout.timeout(0.05) { sleep } }
    thread.report_on_exception = false
    assert_raises(Timeout::Error) { thread.value }
  end

  def test_timer_switches_busy_threads
    turns = [0, 0]
    busy = Array.new(2) { |i| Thread.new { loop { turns[i] += 1 } } }
    sleep(0.05) until turns.min.positive?
    busy.each(&:kill).each(&:join)
  end

  def test_deadlock_is_found
    assert_raises(fatal) { Queue.new.pop }
  end

  def test_group
    group = ThreadGroup.new
    stop = Queue.new
    group.add(thread = Thread.new { stop.pop })
    assert_equal([thread], group.list)
    stop << 1
    thread.join
  end

  def test_sleep_and_wakeup
    thread = Thread.new { sleep && :woken }
    Thread.pass until thread.stop?
    thread.wakeup
    assert_equal(:woken, thread.value)
  end

  def test_backtrace
    thread = Thread.new { sleep }
    Thread.pass until thread.stop?
    assert_match(/sleep/, thread.backtrace.first)
    thread.kill.join
  end

  def test_priority_and_name
    Thread.new { sleep }.tap do |thread|
      thread.name = "reader"
      thread.priority = 2
      assert_equal(["reader", 2], [thread.name, thread.priority])
      assert_includes(thread.inspect, "reader")
      thread.kill.join
    end
  end

  def test_deep_stack_in_thread
    depth = ->(n) { n.zero? ? 0 : 1 + depth.call(n - 1) }
    assert_equal(1500, Thread.new { depth.call(1500) }.value)
  end

  private

  def fatal
    ObjectSpace.each_object(Class).find { |c| c < Exception && c.name == "fatal" }
  end
end
