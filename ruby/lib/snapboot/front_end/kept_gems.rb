# frozen_string_literal: true

# What RubyGems keeps of the specifications that it has listed: by single names, or of all gems once it has looked through
# all; and the user's directories that it has computed.
class KeptGems
  # Two changes within this time may show the same timestamp (s).
  TICK = 0.02
  # Each is made from a variable of the XDG Base Directory Specification or HOME on first use, and kept.
  HOMES = %i[cache_home config_home data_home state_home].freeze
  OWN_FILE = "/rubygems/defaults.rb"
  private_constant :HOMES, :OWN_FILE

  # Returns all specifications, or nil.
  def all
    kept.first
  end

  # Returns the names of gems whose specifications RubyGems has listed by name. Empty if it has listed all, or if unknown.
  def names
    all, by_name = kept
    all || by_name.nil? ? [] : by_name.keys
  end

  # Records when the folders were changed, before all gems in them are listed. Opens them, as a listing does, because a
  # `stat` would be another question to the recorder.
  def remember_times(directories)
    @times = directories.to_h do |directory|
      times = Dir.open(directory) { |folder| times_of(IO.for_fd(folder.fileno, autoclose: false).stat) }
      is_settled = Process.clock_gettime(Process::CLOCK_REALTIME) - times.last.to_f > TICK
      [directory, is_settled ? times : :unknown]
    rescue SystemCallError
      [directory, nil]
    end
  end

  # Makes RubyGems forget all specifications if a folder has changed since.
  def renew
    forget unless @times.all? { |directory, times| times == times_now(directory) }
  end

  # Makes RubyGems compute the user's directories again on demand: whether such a text is frozen shows whether its variable
  # is set. Call before the freeze.
  def forget_homes
    HOMES.each do |name|
      next unless Gem.respond_to?(name) && Gem.method(name).source_location&.first&.end_with?(OWN_FILE)

      Gem.remove_instance_variable("@#{name}") if Gem.instance_variable_defined?("@#{name}")
    end
  end

  private

  # In an object of its own since 3.6.
  def kept
    return [record.instance_variable_get(:@stubs), record.instance_variable_get(:@stubs_by_name)] if record
    return [] unless Gem::Specification.class_variable_defined?(:@@stubs_by_name)

    %i[@@stubs @@stubs_by_name].map { |name| Gem::Specification.class_variable_get(name) }
  end

  def record
    Gem::Specification.instance_variable_get(:@specification_record)
  end

  def times_now(directory)
    times_of(File.stat(directory))
  rescue SystemCallError
    nil
  end

  def times_of(status)
    [status.mtime, status.ctime]
  end

  def forget
    return Gem::Specification.instance_variable_set(:@specification_record, nil) if record

    Gem::Specification.__send__(:clear_specs)
  end
end
