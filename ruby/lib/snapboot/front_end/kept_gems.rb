# frozen_string_literal: true

# What RubyGems keeps of the specifications that it has listed: by one name, or of all gems once it has looked through all;
# and of the directories of the user.
class KeptGems
  # A time younger than this does not tell one change from the next (s).
  TICK = 0.02
  # Each is made from a variable of the XDG Base Directory Specification or HOME, when it is asked for, and kept.
  HOMES = %i[cache_home config_home data_home state_home].freeze
  OWN_FILE = "/rubygems/defaults.rb"
  private_constant :HOMES, :OWN_FILE

  # All of them, or nil.
  def all
    kept.first
  end

  # The names of which it has all; none where it has those of all names, or nobody knows.
  def names
    all, by_name = kept
    all || by_name.nil? ? [] : by_name.keys
  end

  # Notes when the folders were changed, before all gems in them are listed. They are opened, as for a list, because to look
  # at them would be another question.
  def note_times(directories)
    @times = directories.to_h do |directory|
      times = Dir.open(directory) { |folder| times_of(IO.for_fd(folder.fileno, autoclose: false).stat) }
      is_settled = Process.clock_gettime(Process::CLOCK_REALTIME) - times.last.to_f > TICK
      [directory, is_settled ? times : :unknown]
    rescue SystemCallError
      [directory, nil]
    end
  end

  # Has RubyGems forget all if a folder has changed since.
  def renew
    forget unless @times.all? { |directory, times| times == times_now(directory) }
  end

  # Has RubyGems make the directories of the user again when somebody asks: whether such a text is frozen tells whether its
  # variable is set. To be called before the freeze.
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
