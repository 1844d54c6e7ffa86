# frozen_string_literal: true

# Threads that a fork drops and that nothing starts again: a thaw would be without them.
module LostThreads
  # Where a library says of a thread that forks may drop it, as libraries do for servers that fork: a thread variable.
  FORK_SAFE = :fork_safe
  # How long threads get to end that have nothing left to do, and a child to say which it has (s).
  PATIENCE = 0.2
  ANSWER = 5
  STEP = 0.01
  # As it is before a trial counts the program's calls of it.
  FORK = Process.singleton_class.instance_method(:fork)
  # A name that no other thread has; the kernel keeps 15 bytes.
  MARK = "snapboot again"
  private_constant :FORK, :MARK

  class << self
    # What they are, as text. None of a recipe's: its after_thaw starts these.
    def all
      deadline = now + PATIENCE
      sleep STEP while running.any? && now < deadline
      lost = running.map { |thread| text(thread) }
      return lost if lost.empty?

      again = after_fork
      lost.reject { |text| (at = again.index(text)) && again.delete_at(at) }
    end

    # The kernel's number of a thread. Ruby does not know that of one for which it has used a native thread again.
    def number_of(thread)
      return thread.native_thread_id if thread.native_thread_id

      before = thread.name
      thread.name = MARK
      found = Dir.children("/proc/self/task").find { |number| File.read("/proc/self/task/#{number}/comm").chomp == MARK }
      thread.name = before
      found
    end

    # The file where a thread was started, as Ruby shows it.
    def place(thread)
      thread.inspect[/\A#<\S+ (.*) \S+>\z/m, 1].to_s.sub(/\A.*@/, "").sub(/:\d+\z/, "")
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def running
      threads = Thread.list
      return [] if threads.size == 1

      (threads - [Thread.current] - Recipes.threads).reject do |thread|
        thread.thread_variable_get(FORK_SAFE) || place(thread).end_with?(*Recipes.restarted_threads)
      end
    end

    def text(thread)
      shown = thread.inspect.sub(/:0x\h+/, "").sub(/ \S+>\z/, "").delete_prefix("#<").sub("@", " ")
      shown.sub(/\A(\S+) (.*)\z/m, 'a \1 (\2)')
    end

    # Those of a forked child, whose fork hooks may have started them again, as they would after a thaw.
    def after_fork
      answer, tell = IO.pipe
      child = FORK.bind_call(Process) do
        tell.syswrite(running.map { |thread| text(thread) }.join("\0"))
      ensure
        Process.exit!(true)
      end
      tell.close
      # Not wait_readable, which another library brings along before Ruby 3.2.
      has_answer = IO.select([answer], nil, nil, ANSWER) # rubocop:disable Lint/IncompatibleIoSelectWithFiberScheduler
      has_answer ? answer.read_nonblock(65_536).split("\0") : []
    rescue EOFError, SystemCallError
      []
    ensure
      [answer, tell].each { |stream| stream&.close }
      if child
        Process.kill(:KILL, child)
        Process.wait(child)
      end
    end
  end
end
