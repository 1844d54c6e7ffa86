# frozen_string_literal: true

# The kernel's attributes of this process (limits, directory, rights, ...): finds those that the boot has changed, and
# repeats the changes after a thaw.
#
# The freezer, in this same process, reads and sets them (crates/freezer sys/attributes.rs); Ruby has no call for most.
class ProcessAttributes
  # Returns the names of attributes that have changed since the last look, as far as that is cheap to find out, without
  # prefix.
  def look
    all("look").map { |name| name[1..] }
  end

  # Returns the names of attributes that differ from those at the process' start: prefixed with + if a thaw sets the
  # attribute again, with - if its change forbids a freeze.
  def changed
    all("changed")
  end

  # Whether an attribute has changed for which a freeze is refused.
  def refused?
    changed.any? { |name| name.start_with?("-") }
  end

  # Sets the attributes as the boot has set them. Returns nil; or the name of the first that this process cannot set, and
  # then sets none.
  def repeat
    name = ask("repeat")
    name[1..] unless name.empty?
  end

  # Returns the current directory; nil if it is gone.
  def current_directory
    Dir.pwd
  rescue SystemCallError
    nil
  end

  # If the boot went to another directory, Ruby still looks for the script relative to the one that the start was in: the
  # process goes back there (+started_in+, or nil) until the first line of the main part runs. +own_directory+: that of the
  # front end, whose lines do not count.
  def start_main_in(started_in, own_directory)
    own = current_directory
    return if started_in.nil? || own == started_in

    Dir.chdir(started_in)
    trace = TracePoint.new(:line) do |event|
      next if event.path.start_with?(own_directory, "<internal:") || Thread.current != Thread.main

      trace.disable
      Dir.chdir(own)
    end
    trace.enable
  end

  private

  def all(word)
    found = []
    while (name = ask(word)) != ""
      found << name
    end
    found
  end

  # Returns the freezer's next answer; empty at the end.
  def ask(word)
    Channel.call(Channel::ATTRIBUTES, word).to_s
  end
end
