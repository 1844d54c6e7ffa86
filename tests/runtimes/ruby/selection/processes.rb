# frozen_string_literal: true

# rubocop:disable Lint/EmptyBlock

# Processes and signals.

require "open3"
require "rbconfig"
require "tempfile"

# Forked children.
class ForkTest < Minitest::Test
  # What the block writes to the pipe in a forked child that ends there.
  def in_child
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      writer.write(yield)
      writer.close
      exit!(0)
    end
    writer.close
    [reader.read, Process.wait2(pid).last]
  ensure
    reader.close
  end

  def test_fork
    output, status = in_child { "child of #{Process.ppid}" }
    assert_equal("child of #{Process.pid}", output)
    assert_predicate(status, :success?)
  end

  def test_fork_of_fork
    assert_equal("grandchild", in_child { in_child { "grandchild" }.first }.first)
  end

  def test_fork_hook
    seen = []
    hook = Module.new { define_method(:_fork) { super().tap { |pid| seen << (pid.zero? ? :child : :parent) } } }
    Process.singleton_class.prepend(hook)
    assert_equal("[:child]", in_child { seen.inspect }.first)
    assert_equal([:parent], seen)
  end

  def test_threads_in_child
    assert_equal("3", in_child { Array.new(3) { Thread.new { 1 } }.sum(&:value).to_s }.first)
  end

  def test_gc_in_child
    assert_equal("ok", in_child { GC.start.then { GC.compact && "ok" } }.first)
  end

  def test_random_differs_in_children
    refute_equal(*Array.new(2) { in_child { rand(1 << 60).to_s }.first })
  end

  def test_at_exit_in_child
    file = Tempfile.new
    pid = fork do
      at_exit { file.write("ended") && file.flush }
      exit(3)
    end
    assert_equal(3, Process.wait2(pid).last.exitstatus)
    assert_equal("ended", File.read(file.path))
  end

  def test_detach
    assert_equal(4, Process.detach(fork { exit!(4) }).value.exitstatus)
  end

  def test_exec
    reader, writer = IO.pipe
    pid = fork { exec({ "A" => "set" }, "sh", "-c", "echo $0 $A", "name", out: writer) }
    writer.close
    Process.wait(pid)
    assert_equal("name set\n", reader.read)
  end

  def test_daemon
    reader, writer = IO.pipe
    pid = fork do
      Process.daemon(true)
      writer.write(Process.getsid == Process.getpgrp ? "session of its own" : "the old session")
      exit!(0)
    end
    Process.wait(pid)
    writer.close
    assert_equal("session of its own", reader.read)
  end
end

# Other programs as children.
class SpawnTest < Minitest::Test
  RUBY = RbConfig.ruby

  def test_backticks_and_system
    assert_equal("hi\n", `echo hi`)
    assert_predicate($?, :success?)
    refute(system("exit 3"))
    assert_equal(3, $?.exitstatus)
    assert_nil(system("/nonexistent/command"))
  end

  def test_spawn_options
    reader, writer = IO.pipe
    pid = spawn({ "FOO" => "bar" }, "echo $FOO; pwd", out: writer, chdir: "/", unsetenv_others: true)
    writer.close
    Process.wait(pid)
    assert_equal("bar\n/\n", reader.read)
  end

  def test_environment_reaches_children
    ENV["SELECTION"] = "seen"
    assert_equal("seen\n", `echo $SELECTION`)
    ENV.delete("SELECTION")
    assert_equal("\n", `echo $SELECTION`)
  end

  def test_descriptors_are_not_inherited
    file = File.open(File::NULL)
    listed = IO.popen(%w[ls /proc/self/fd], close_others: false, &:read).split.map(&:to_i).sort
    assert_equal([0, 1, 2, 3], listed)
  ensure
    file.close
  end

  def test_popen
    IO.popen(["cat"], "r+") do |cat|
      cat.puts("round")
      cat.close_write
      assert_equal("round\n", cat.read)
    end
    assert_equal("from fork", IO.popen("-") { |io| io ? io.read : print("from fork") })
  end

  def test_open3
    output, errors, status = Open3.capture3(RUBY, "-e", "puts gets; warn 1; exit 5", stdin_data: "line\n")
    assert_equal(["line\n", "1\n", 5], [output, errors, status.exitstatus])
    assert_equal("A\n", Open3.pipeline_r("echo a", "tr a A") { |out, _| out.read })
    both, status = Open3.capture2e("echo a; echo b >&2; false")
    assert_equal(["a\nb\n", false], [both, status.success?])
  end

  def test_own_interpreter
    assert_equal(RUBY_VERSION, IO.popen([RUBY, "-e", "print RUBY_VERSION"], &:read))
  end

  def test_wait
    first = spawn("exit 1")
    second = spawn("exit 2")
    assert_equal([1, 2], [first, second].map { |pid| Process.wait2(pid).last.exitstatus })
    assert_raises(Errno::ECHILD) { Process.wait }
  end

  def test_signaled_child
    pid = spawn("sleep 60")
    Process.kill(:TERM, pid)
    assert_equal(15, Process.wait2(pid).last.termsig)
  end

  def test_limits
    soft, hard = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, soft - 1, hard)
    assert_equal((soft - 1).to_s, `sh -c 'ulimit -n'`.strip)
  ensure
    Process.setrlimit(:NOFILE, soft, hard)
  end

  def test_identity
    assert_equal(File.stat("/proc/self").uid, Process.euid)
    assert_equal(Process.pid.to_s, File.readlink("/proc/self"))
    assert_equal(Process.ppid, File.read("/proc/self/status")[/PPid:\s*(\d+)/, 1].to_i)
  end

  def test_title
    was = $PROGRAM_NAME
    $PROGRAM_NAME = "selection: a title longer than the name was"
    assert_match(/\Aselection: a title/, File.read("/proc/self/cmdline"))
  ensure
    $PROGRAM_NAME = was
  end
end

# Signals.
class SignalsTest < Minitest::Test
  def test_trap
    caught = Queue.new
    was = trap(:USR1) { |number| caught << number }
    Process.kill(:USR1, Process.pid)
    assert_equal(Signal.list["USR1"], caught.pop)
  ensure
    trap(:USR1, was)
  end

  def test_previous_handlers
    assert_equal("DEFAULT", trap(:USR2, "IGNORE"))
    assert_equal("IGNORE", trap(:USR2, "DEFAULT"))
    assert_raises(ArgumentError, SystemCallError) { trap(:KILL) {} }
    assert_raises(ArgumentError) { trap(:VTALRM) {} }
  end

  def test_interrupt
    assert_raises(Interrupt) do
      Process.kill(:INT, Process.pid)
      sleep(600)
    end
  end

  def test_terminate
    error = assert_raises(SignalException) do
      Process.kill(:TERM, Process.pid)
      sleep(600)
    end
    assert_equal("SIGTERM", error.message)
  end

  def test_interrupts_a_read
    reader, = IO.pipe
    trap(:ALRM) { raise IOError, "alarm" }
    pid = nil
    assert_raises(IOError) do
      pid = spawn("sleep 0.1; kill -ALRM #{Process.pid}")
      reader.read
    end
    Process.wait(pid)
  ensure
    trap(:ALRM, "DEFAULT")
  end

  def test_in_a_busy_loop
    done = false
    trap(:USR1) { done = true }
    pid = spawn("sleep 0.1; kill -USR1 #{Process.pid}")
    i = 0
    i += 1 until done
    Process.wait(pid)
    assert(done)
  ensure
    trap(:USR1, "DEFAULT")
  end

  def test_child_signal
    ended = Queue.new
    was = trap(:CLD) { ended << 1 }
    Process.wait(spawn("true"))
    assert_equal(1, ended.pop)
  ensure
    trap(:CLD, was)
  end

  def test_ignored_by_children
    trap(:USR1, "IGNORE")
    assert(system("kill -USR1 $$"))
  ensure
    trap(:USR1, "DEFAULT")
  end

  def test_stop_and_continue
    pid = spawn("sleep 60")
    Process.kill(:STOP, pid)
    assert_predicate(Process.wait2(pid, Process::WUNTRACED).last, :stopped?)
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def test_default_handlers
    assert_equal("DEFAULT", trap(:INT, "DEFAULT"))
    assert_equal("IGNORE", trap(:USR1, "SYSTEM_DEFAULT").then { trap(:USR1, "IGNORE") && trap(:USR1, "DEFAULT") })
  end

  def test_broken_pipe
    reader, writer = IO.pipe
    reader.close
    assert_raises(Errno::EPIPE) { writer.write("x") }
  end
end
# rubocop:enable Lint/EmptyBlock
