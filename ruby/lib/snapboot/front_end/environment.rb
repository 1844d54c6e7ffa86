# frozen_string_literal: true

# The environment: cleaned before the program boots, and after a thaw changed again as the boot had changed it.
class Environment
  # A hash with at least this share of the environment is a copy of it.
  ALIKE = 0.8
  # The environment that the program was booted with, as far as it has seen it.
  attr_reader :before

  # Removes the variables that only the freeze needs.
  def self.clean
    ENV.delete_if { |name, _| name.start_with?("SNAPBOOT_") }
    preload = ENV.fetch("LD_PRELOAD", "").split(/[ :]/).reject { |file| file.include?("snapboot_freezer") }
    preload.empty? ? ENV.delete("LD_PRELOAD") : ENV["LD_PRELOAD"] = preload.join(":")
  end

  # Remembers the environment at the boot. +directory+ is the control directory.
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

  # The program looks up a variable, and the freezer shows it, since ENV uses the C library. From now on it counts as if it
  # had been there from the start.
  def show(name)
    @before[name] = @get.call(name) if @hidden.delete(name)
  end

  # The program reads the whole environment, which the freezer does not see.
  def show_all
    (@hidden.keys - @volatile).each { |name| show(name) }
  end

  # The program sets a variable itself.
  def forget(name)
    @hidden.delete(name)
  end

  # Call right before the freeze: finds the program's changes (Bundler sets a dozen variables, for example).
  def record
    now = ENV.to_h
    # C code may have looked up more variables.
    @hidden.each { |name, place| @before[name] ||= now[name] if now.key?(name) && now[name].b == value(*place) }
    @changes = (now.keys | @before.keys).reject { |name| now[name] == @before[name] }
                                        .map { |name| [name, @before[name], now[name]] }
    @zone = now["TZ"]
    @copies = copies(now)
  end

  # Returns the hashes that #renew fills, and by name the other values that it sets.
  def kept
    set = @changes.to_h { |name, _, after| [name, after] }
    [@copies.map(&:first), { "ENV (set)" => set, "ENV (copies)" => @copies.map { |_, *differing| differing } }]
  end

  # Applies the same changes to the new process' environment, and fills the copies as an ordinary start would have.
  def renew
    started = ENV.to_h
    @copies.each { |copy, set, removed| copy.replace(started.except(*removed).merge(set)) }
    @changes.each { |name, before, after| ENV[name] = changed(ENV[name], before, after) }
    renew_zone
  end

  private

  # Returns hashes that are copies of the environment (Bundler keeps one for programs that it starts without its own
  # changes), and how each differs from that of the boot: values that were set, and names that were removed. +own+ is not a
  # copy.
  def copies(own)
    enough = @before.size * ALIKE
    found = ObjectSpace.each_object(Hash).select do |hash|
      plain?(hash) && hash.size >= enough && !hash.equal?(@before) && !hash.equal?(own) &&
        @before.count { |name, value| hash[name] == value } >= enough
    end
    found.map { |copy| [copy, copy.reject { |name, value| @before[name] == value }, @before.keys - copy.keys] }
  end

  # Whether reading a hash runs no code of the program, and the hash can be changed.
  def plain?(hash)
    hash.instance_of?(Hash) && !hash.default_proc && !hash.frozen?
  end

  # Returns a value that is shown on demand. Read only if it is already in this process.
  def value(size, offset)
    File.binread("#{@directory}/environment", size, offset).to_s
  end

  # Text that was put before or after a value (a PATH, a RUBYOPT) is put around the new value.
  def changed(current, before, after)
    return after if after.nil? || current.nil? || current == after || before.nil? || before.empty? || current == before

    at = after.index(before)
    at ? after[0, at] + current + after[(at + before.size)..] : after
  end

  # Assigning TZ makes Ruby read the time zone again.
  def renew_zone
    zone = ENV["TZ"]
    return if zone == @zone

    ENV["TZ"] = zone || ""
    ENV.delete("TZ") unless zone
  end
end
