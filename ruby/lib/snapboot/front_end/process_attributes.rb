# frozen_string_literal: true

# The kernel's attributes of this process (limits, directory, rights, ...): what the boot has changed of them, and doing it
# again after a thaw.
#
# The freezer, in this same process, reads and sets them (crates/freezer sys/attributes.rs); Ruby has no call for most. It is
# asked by setting a variable, which is not set by that: the call fails, and its error number tells which attribute it is.
class ProcessAttributes
  NAME = "SNAPBOOT_ATTRIBUTES"
  # See crates/freezer sys/attributes.rs.
  FIRST = 60
  SET = ENV.method(:[]=)
  private_constant :NAME, :FIRST, :SET

  # +names+: what they are called, by their number; with + in front those that a thaw sets again, with - those that forbid a
  # freeze.
  def initialize(names)
    @names = names
  end

  # The names of those that have changed since the last look, as far as that is cheap to tell, without their sign.
  def look
    all("look").map { |name| name[1..] }
  end

  # The names of those that are not as they were when the process started, with their sign.
  def changed
    all("changed")
  end

  # Whether one has changed for which a freeze is refused.
  def refused?
    changed.any? { |name| name.start_with?("-") }
  end

  # Sets again what the boot has set. Returns the name of the first that cannot be set in this process, and then none is; or
  # nil.
  def repeat
    number = @names.empty? ? 0 : ask("repeat")
    @names[number - FIRST][1..] unless number.zero?
  end

  private

  def all(word)
    found = []
    return found if @names.empty?

    while (number = ask(word)).between?(FIRST, FIRST + @names.size - 1)
      found << @names[number - FIRST]
    end
    found
  end

  def ask(word)
    SET.call(NAME, word)
    0
  rescue SystemCallError => e
    e.errno
  end
end
