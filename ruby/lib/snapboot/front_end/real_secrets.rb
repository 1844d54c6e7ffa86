# frozen_string_literal: true

# The real values of secret variables, for a child of the boot: it ends after computing with them, and the process that is
# frozen never has them. `snapboot freeze` (crates/freeze programs/boot.rs) passes them in a nameless file.
module RealSecrets
  # Takes the place of the first descriptor that holds /dev/null in a boot.
  DESCRIPTOR = 3
  # The method before anybody counts the program's calls of it.
  FORK = Process.singleton_class.instance_method(:fork)
  SET = ENV.method(:[]=)
  private_constant :DESCRIPTOR, :FORK, :SET

  @names = []

  class << self
    # The names of the variables, set by the FreezeRun.
    attr_writer :names

    # Whether the boot has a made-up value for the variable +name+.
    def include?(name)
      @names.include?(name)
    end

    # Runs the block in a child that has the real values in ENV. Returns the block's String, or nil if it fails.
    def compute
      answer, tell = IO.pipe(binmode: true)
      child = FORK.bind_call(Process) do
        values.each { |name, value| SET.call(name, value) }
        tell.write(yield)
      ensure
        Process.exit!(true)
      end
      tell.close
      text = answer.read
      text unless text.empty?
    ensure
      [answer, tell].each { |stream| stream&.close }
      Process.wait(child) if child
    end

    # Closes the file, before the freeze: the descriptor holds /dev/null like those beside it.
    def close
      return if @names.empty?

      file = IO.for_fd(DESCRIPTOR, autoclose: false)
      File.open(File::NULL) { |nothing| file.reopen(nothing) }
      file.close_on_exec = false
    end

    private

    def values
      File.binread("/proc/self/fd/#{DESCRIPTOR}").split("\0").map { |entry| entry.split("=", 2) }
    end
  end
end
