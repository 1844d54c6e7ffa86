# frozen_string_literal: true

# The environment: cleaned before the program boots, and after a thaw given what the boot had changed in it.
class Environment
  # A hash that has so much of the environment is a copy of it.
  ALIKE = 0.8
  # What the program was booted with, as far as it was shown that.
  attr_reader :before

  # Removes what only the freeze needs.
  def self.clean
    ENV.delete_if { |name, _| name.start_with?("SNAPBOOT_") }
    preload = ENV.fetch("LD_PRELOAD", "").split(/[ :]/).reject { |file| file.include?("snapboot_freezer") }
    preload.empty? ? ENV.delete("LD_PRELOAD") : ENV["LD_PRELOAD"] = preload.join(":")
  end

  # Remembers the environment that the program is booted with. +directory+ is the control directory.
  def initialize(directory)
    @before = ENV.to_h
    @directory = directory
    @hidden = {}
    @volatile = []
    File.binread("#{directory}/on_demand").split("\0").each do |entry|
      key, entry = entry.force_encoding(Encoding.find("locale")).split("=", 2)
      offset, size, name = entry.split(",", 3)
      @hidden[name] = [size.to_i, offset.to_i]
      @volatile << name if key == "volatile"
    end
    @get = ENV.method(:[])
  end

  # The program looks up a variable. The freezer shows it, since ENV goes through the C library. From now on it is as if it
  # had been there from the start.
  def show(name)
    @before[name] = @get.call(name) if @hidden.delete(name)
  end

  # The program reads all of them, which the freezer does not see.
  def show_all
    (@hidden.keys - @volatile).each { |name| show(name) }
  end

  # The program sets a variable itself.
  def forget(name)
    @hidden.delete(name)
  end

  # To be called right before the freeze: finds what the program changed (Bundler sets a dozen variables, for example).
  def record
    now = ENV.to_h
    # C code may have looked up more.
    @hidden.each { |name, place| @before[name] ||= now[name] if now.key?(name) && now[name].b == value(*place) }
    @changes = (now.keys | @before.keys).reject { |name| now[name] == @before[name] }
                                        .map { |name| [name, @before[name], now[name]] }
    @zone = now["TZ"]
    @copies = copies(now)
  end

  # Hashes that #renew fills, and by name the rest of what it puts in place.
  def kept
    set = @changes.to_h { |name, _, after| [name, after] }
    [@copies.map(&:first), { "ENV (set)" => set, "ENV (copies)" => @copies.map { |_, *differing| differing } }]
  end

  # Gives the new process' environment the same changes, and copies of the environment what they would have been in it.
  def renew
    started = ENV.to_h
    @copies.each { |copy, set, removed| copy.replace(started.except(*removed).merge(set)) }
    @changes.each { |name, before, after| ENV[name] = changed(ENV[name], before, after) }
    renew_zone
  end

  private

  # Hashes that were made of the environment (Bundler keeps one for programs that are started without it), and what differs
  # in each from what the program was booted with: values that were set, and names that were removed. +own+ is none of them.
  def copies(own)
    enough = @before.size * ALIKE
    found = ObjectSpace.each_object(Hash).select do |hash|
      plain?(hash) && hash.size >= enough && !hash.equal?(@before) && !hash.equal?(own) &&
        @before.count { |name, value| hash[name] == value } >= enough
    end
    found.map { |copy| [copy, copy.reject { |name, value| @before[name] == value }, @before.keys - copy.keys] }
  end

  # Whether looking into a hash runs nothing of the program's, and it can be changed.
  def plain?(hash)
    hash.instance_of?(Hash) && !hash.default_proc && !hash.frozen?
  end

  # A value that is shown on demand. Read only where it is in this process anyway.
  def value(size, offset)
    File.binread("#{@directory}/environment", size, offset).to_s
  end

  # What was put before or after a value (a PATH, a RUBYOPT) is put around the new value.
  def changed(current, before, after)
    return after if after.nil? || current.nil? || current == after || before.nil? || before.empty? || current == before

    at = after.index(before)
    at ? after[0, at] + current + after[(at + before.size)..] : after
  end

  # Assigning TZ is what makes Ruby read the time zone again.
  def renew_zone
    zone = ENV["TZ"]
    return if zone == @zone

    ENV["TZ"] = zone || ""
    ENV.delete("TZ") unless zone
  end
end
