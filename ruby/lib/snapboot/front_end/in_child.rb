# frozen_string_literal: true

# Runs a block in a forked child, which may load and change whatever it likes: nothing of that is left in this process.
module InChild
  # As it is before the program can put another in its place.
  FORK = Process.singleton_class.instance_method(:fork)
  private_constant :FORK

  # Returns whether the block has run to its end.
  def self.run
    child = FORK.bind_call(Process) do
      yield
      Process.exit!(true)
    ensure
      Process.exit!(false)
    end
    # Unlike Process.wait, leaves $? as it is.
    Process::Status.wait(child).success?
  end
end
