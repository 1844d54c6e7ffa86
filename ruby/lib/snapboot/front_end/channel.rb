# frozen_string_literal: true

# The front end's end of the channel: what it asks of the freezer, in this same process, and how it reports to
# `snapboot freeze`.
#
# Defined in crates/channel. The freezer stands in front of the C library's `readlink` and answers for a name that no file
# has; where there is no freezer, as in some tests, there is no answer.
module Channel
  NAME = "snapboot:"
  # What is asked.
  PHASE, ENVIRONMENT, UNFREEZE, RESTARTS = %w[phase environment unfreeze restarts].freeze
  ARM, DISARM, IS_ARMED = %w[arm disarm is_armed].freeze
  ATTRIBUTES, RENEW, END_OF_PROCESS = %w[attributes renew end].freeze
  TRIAL, ASIDE, LOOK_UP, LOOKED_UP = %w[trial aside look_up looked_up].freeze
  # Who reads.
  OF_RUNTIME, OF_FRONT_END, OF_PROGRAM, OF_TRIAL = ["runtime", "front end", "program", "trial"].freeze
  # What was read.
  VARIABLE, ALL_VARIABLES, EXECUTED, FACT, EARLY, FOREIGN = %w[variable variables executed fact early foreign].freeze
  # The fields of an event.
  EVENT = %w[kind phase subject reader place detail renewed].freeze
  # Bits of an answer about the locale.
  IS_C, IS_TARGET, IS_UTF8, HAS_OTHERS, IS_CHOSEN, COERCED = [1, 2, 4, 8, 16, 32].freeze
  READLINK = File.method(:readlink)
  private_constant :READLINK

  # The answer; nil where there is none.
  def self.call(request, argument = "")
    READLINK.call("#{NAME}#{request}=#{argument}")
  rescue SystemCallError
    nil
  end

  # The value of an entry with several fields.
  def self.record(*fields)
    fields.map { |field| field.to_s.b.delete("\0").then { |bytes| "#{bytes.bytesize}:".b << bytes } }.join
  end

  # The fields of such a value, as bytes. What is cut off is left out.
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
