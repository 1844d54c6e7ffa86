# frozen_string_literal: true

# The environment: cleaned before the program boots, and after a thaw given what the boot had changed in it.
class Environment
  # Removes what only the freeze needs.
  def self.clean
    ENV.delete_if { |name, _| name.start_with?("SNAPBOOT_") }
    preload = ENV.fetch("LD_PRELOAD", "").split(/[ :]/).reject { |file| file.include?("snapboot_freezer") }
    preload.empty? ? ENV.delete("LD_PRELOAD") : ENV["LD_PRELOAD"] = preload.join(":")
  end

  # Remembers the environment that the program is booted with.
  def initialize
    @before = ENV.to_h
  end

  # To be called right before the freeze: finds what the program changed (Bundler sets a dozen variables, for example).
  def record
    now = ENV.to_h
    @changes = (now.keys | @before.keys).reject { |name| now[name] == @before[name] }
                                        .map { |name| [name, @before[name], now[name]] }
    @zone = now["TZ"]
  end

  # Gives the new process' environment the same changes.
  def refresh
    @changes.each { |name, before, after| ENV[name] = changed(ENV[name], before, after) }
    refresh_zone
  end

  private

  # What was put before or after a value (a PATH, a RUBYOPT) is put around the new value.
  def changed(current, before, after)
    return after if after.nil? || current.nil? || current == after || before.nil? || before.empty? || current == before

    at = after.index(before)
    at ? after[0, at] + current + after[(at + before.size)..] : after
  end

  # Assigning TZ is what makes Ruby read the time zone again.
  def refresh_zone
    zone = ENV["TZ"]
    return if zone == @zone

    ENV["TZ"] = zone || ""
    ENV.delete("TZ") unless zone
  end
end
