# frozen_string_literal: true

# Runs a block in a forked child, which may load and change whatever it likes: nothing of that is left in this process, and
# nothing that it reads is an input.
module InChild
  # As it is before the program can put another in its place.
  FORK = Process.singleton_class.instance_method(:fork)
  private_constant :FORK

  # Returns whether the block has run to its end. +seconds+: of processor time that it may take, or nil.
  def self.run(seconds = nil)
    child = FORK.bind_call(Process) do
      Channel.call(Channel::ASIDE)
      limit(seconds) if seconds
      yield
      Process.exit!(true)
    ensure
      Process.exit!(false)
    end
    # Unlike Process.wait, leaves $? as it is.
    Process::Status.wait(child).success?
  end

  # Such a process has used none yet. It leaves no core.
  def self.limit(seconds)
    Process.setrlimit(:CORE, 0)
    Process.setrlimit(:CPU, seconds)
  end
  private_class_method :limit
end
