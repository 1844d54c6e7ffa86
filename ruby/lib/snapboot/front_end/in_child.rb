# frozen_string_literal: true

# Runs a block in a forked child, which may load and change anything: this process stays as it is, and the child's reads are
# no inputs.
module InChild
  # The method before the program can replace it.
  FORK = Process.singleton_class.instance_method(:fork)
  private_constant :FORK

  # Returns whether the block has run to its end. +seconds+: processor time that it may take, or nil.
  def self.run(seconds = nil)
    child = FORK.bind_call(Process) do
      Channel.call(Channel::ASIDE)
      limit(seconds) if seconds
      yield
      Process.exit!(true)
    ensure
      Process.exit!(false)
    end
    # Unlike Process.wait, leaves $? unchanged.
    Process::Status.wait(child).success?
  end

  # The child starts at zero processor time. It leaves no core file.
  def self.limit(seconds)
    Process.setrlimit(:CORE, 0)
    Process.setrlimit(:CPU, seconds)
  end
  private_class_method :limit
end
