# frozen_string_literal: true

# What the process itself holds and no object leads to, for ObjectPaths. Use this only in a process that is not frozen:
# reading some of it changes it.
module ProcessRoots
  # The place of the nice value among the fields behind the process' name: see proc_pid_stat(5).
  NICE = 16

  # Returns the values by name. +umask+: the one that the program has set, or nil.
  def self.all(umask)
    {
      "the umask" => umask,
      "the encodings" => [Encoding.default_external, Encoding.default_internal],
      # Not Process.getrlimit and getpriority: to the recorder these would be reads of the program.
      "the limits" => File.read("/proc/self/limits"),
      "the nice value" => File.read("/proc/self/stat").rpartition(")").last.split[NICE],
      "the collector" => [GC.stress, GC.disable],
      "the descriptors" => descriptors,
      "threads" => [Thread.abort_on_exception, Thread.report_on_exception],
      "compile_option" => RubyVM::InstructionSequence.compile_option,
      "the signals" => signals
    }
  ensure
    GC.enable
  end

  # Returns what is open besides the standard streams, and the position, by number. Asking the streams would change their
  # state.
  def self.descriptors
    Dir.children("/proc/self/fd").grep_v(/\A[012]\z/).to_h { |number| [number, link(number)] }
  end

  def self.link(number)
    [File.readlink("/proc/self/fd/#{number}"), File.read("/proc/self/fdinfo/#{number}")[/^pos:\s*\d+/]]
  rescue SystemCallError
    nil # the descriptor of the listing itself
  end

  # Returns handlers by signal, without the signal for forbidden system calls.
  def self.signals
    (Signal.list.keys - %w[KILL STOP SYS]).to_h { |name| [name, handler(name)] }
  end

  def self.handler(name)
    trap(name, "DEFAULT")
  rescue ArgumentError
    nil # Ruby's own
  end
  private_class_method :descriptors, :link, :signals, :handler
end
