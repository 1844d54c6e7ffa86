# frozen_string_literal: true

# Makes STDIN, STDOUT and STDERR fit the descriptors 0 to 2 of the new process.
#
# Ruby examines a standard stream once, when it starts, and remembers whether it is a terminal (which flushes line by line).
# The objects must stay the same, so the differences are copied from a fresh object for the same descriptor.
class Stdio
  STREAMS = [[STDIN, "r"], [STDOUT, "w"], [STDERR, "w"]].freeze

  # Remembers what the streams are while freezing.
  def initialize
    @terminal = STREAMS.map { |stream, _| !stream.closed? && stream.tty? }
    # A cached terminal of this session is not the new process' terminal.
    IO.console(:close) if IO.respond_to?(:console)
  end

  # Adapts the streams after a thaw.
  def renew
    STREAMS.each_with_index do |(stream, mode), index|
      next if stream.closed? || stream.tty? == @terminal[index]

      reopen(stream, mode)
    rescue SystemCallError
      next # opened for the other direction: Ruby reports that on the first use
    end
  end

  private

  # Keeps the descriptor: nothing is opened or duplicated, only the mode is copied. Encodings stay; the program's other
  # changes of the stream do not, including its singleton methods.
  def reopen(stream, mode)
    fresh = IO.for_fd(stream.fileno, mode, autoclose: false)
    sync = stream.sync
    binary = stream.binmode?
    line = stream.lineno if mode == "r"
    encodings = stream.external_encoding, stream.internal_encoding
    if stream.singleton_methods.empty?
      stream.reopen(fresh)
    else
      ObjectHeader.keep_class(stream) { stream.reopen(fresh) }
    end
    stream.sync = sync
    stream.lineno = line if line
    stream.binmode if binary
    # From Ruby 3.4 on, a reopened stream has the encodings of the other one.
    is_kept = encodings == [stream.external_encoding, stream.internal_encoding]
    stream.set_encoding(*encodings) if encodings.first && !is_kept
  end
end
