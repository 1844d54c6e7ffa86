# frozen_string_literal: true

# The front end's end of the channel: its requests to the freezer, in this same process, and its reports to `snapboot
# freeze`.
#
# crates/channel defines it. The freezer intercepts the C library's `readlink` and answers for a name that no file has.
# Without a freezer, as in some tests, no request is answered.
module Channel
  NAME = "snapboot:"
  # The requests.
  PHASE, ENVIRONMENT, UNFREEZE, RESTARTS = %w[phase environment unfreeze restarts].freeze
  ARM, DISARM, IS_ARMED = %w[arm disarm is_armed].freeze
  ATTRIBUTES, RENEW, END_OF_PROCESS = %w[attributes renew end].freeze
  TRIAL, ASIDE, LOOK_UP, LOOKED_UP, KIND_ONLY = %w[trial aside look_up looked_up kind_only].freeze
  # The phases: who reads.
  OF_RUNTIME, OF_FRONT_END, OF_PROGRAM, OF_TRIAL = ["runtime", "front end", "program", "trial"].freeze
  # The kinds of events: what was read.
  VARIABLE, ALL_VARIABLES, EXECUTED, FACT, EARLY, FOREIGN = %w[variable variables executed fact early foreign].freeze
  # The fields of an event.
  EVENT = %w[kind phase subject reader place detail renewed].freeze
  # Bits of an answer about the locale.
  IS_C, IS_TARGET, IS_UTF8, HAS_OTHERS, IS_CHOSEN, COERCED = [1, 2, 4, 8, 16, 32].freeze
  READLINK = File.method(:readlink)
  private_constant :READLINK

  # Returns the answer, or nil if there is none.
  def self.call(request, argument = "")
    READLINK.call("#{NAME}#{request}=#{argument}")
  rescue SystemCallError
    nil
  end

  # Encodes several fields as the value of one entry.
  def self.record(*fields)
    fields.map { |field| field.to_s.b.delete("\0").then { |bytes| "#{bytes.bytesize}:".b << bytes } }.join
  end

  # Decodes the fields of such a value, as bytes. Drops a truncated field.
  def self.fields(record)
    found = []
    rest = record.b
    while (size = rest[/\A(\d+):/, 1]) && rest.bytesize > size.size + size.to_i
      found << rest.byteslice(size.size + 1, size.to_i)
      rest = rest.byteslice((size.size + 1 + size.to_i)..)
    end
    found
  end
end
