# frozen_string_literal: true

# The kernel's attributes of this process (limits, directory, rights, ...): what the boot has changed of them, and doing it
# again after a thaw.
#
# The freezer, in this same process, reads and sets them (crates/freezer sys/attributes.rs); Ruby has no call for most.
class ProcessAttributes
  # The names of those that have changed since the last look, as far as that is cheap to tell, without their sign.
  def look
    all("look").map { |name| name[1..] }
  end

  # The names of those that are not as they were when the process started: with + in front those that a thaw sets again, with
  # - those that forbid a freeze.
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
    name = ask("repeat")
    name[1..] unless name.empty?
  end

  private

  def all(word)
    found = []
    while (name = ask(word)) != ""
      found << name
    end
    found
  end

  # The next one; empty where there is none.
  def ask(word)
    Channel.call(Channel::ATTRIBUTES, word).to_s
  end
end
