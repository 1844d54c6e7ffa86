# frozen_string_literal: true

# Facts that a process learns when it starts: read once while freezing, read again after the thaw.
class Context
  # The command line of this process; set by #renew.
  attr_reader :words

  # Records where the time of this start goes, for `snapboot explain`; or nil.
  attr_reader :spans

  # The umask that the program has set while it booted, or nil.
  attr_writer :umask
  # The Evidence.
  attr_writer :evidence

  # The SearchPath.
  attr_writer :search_path

  # The Locale, or nil.
  attr_writer :locale

  # The SecretValues that the program keeps, or nil.
  attr_writer :secrets

  # Create this right before the freeze. +seeding+ has watched the boot; +settings+ are settled.
  def initialize(request, environment, seeding, settings)
    @request = request
    @settings = settings
    @command_line_file = request.command_line_file
    @environment = environment
    @environment.record
    @stdio = Stdio.new
    @randomness = Randomness.new(seeding)
    # Where an entry is in its place, that leads there, and keeps the process's name.
    @interpreter = File.readlink("/proc/self/exe").delete_suffix(".snapboot")
    @encoding = Encoding.find("locale")
  end

  # Returns what the user should know.
  def warnings
    @randomness.warnings
  end

  # See Randomness.
  def random_position
    @randomness.position
  end

  # Reads the new command line. Starts the ordinary command instead if a standard stream is closed: Ruby fills such holes
  # when it starts.
  def read_command_line
    take_words(File.binread(@command_line_file))
    fall_back("a standard stream is closed") if hole?
  end

  # Runs the parts of a thaw that have no effect.
  def warm_up
    take_words(@settings.command_line)
    hole?
    main_words
    @warming = true
    renew
    @warming = false
  end

  # Brings signals, environment, streams and generators in line with the new process.
  def renew
    ignored = ENV.delete("SNAPBOOT_IGNORED") if ENV.key?("SNAPBOOT_IGNORED")
    ignored&.split(",")&.each { |signal| leave_ignored(signal.to_i) }
    @environment_renewed = true
    renew_locale
    @secrets&.renew { fall_back("a secret has another form than the one that the image was made with") } unless @warming
    @evidence.renew { |reason| fall_back(reason) } unless @warming
    @search_path.renew(@evidence) { |reason| fall_back(reason) } unless @warming
    @environment.renew
    @spans = Explained.begin if ENV.key?("SNAPBOOT_EXPLAIN")
    @stdio.renew
    @randomness.renew
    File.umask(@umask) if @umask
    @settings.renew_process
  end

  # The command line after the interpreter's options.
  def main_words
    @words[@request.main_index..]
  end

  # Gives ARGV its new content.
  def renew_arguments(arguments)
    Settings::ARGUMENTS.replace(arguments.each(&:freeze))
  end

  # Starts the original command the ordinary way. Does not return. Shows +reason+ in the words that crates/launcher
  # fallback.rs and context.py use.
  def fall_back(reason)
    refuse_rehearsal(reason) if ENV.key?("SNAPBOOT_REHEARSE")
    log("snapboot: #{reason}; starting the ordinary way\n") unless ["", "0"].include?(ENV.fetch("SNAPBOOT_LOG", ""))
    ENV.replace(started_with) if @environment_renewed
    ENV.delete("SNAPBOOT_IGNORED")
    exec([@interpreter, @words[0]], *@words[1..])
  end

  private

  # An ordinary start gets the environment without the changes of the boot.
  def started_with
    entries = File.binread("/proc/self/environ").split("\0").map { |entry| entry.split("=", 2) }
    entries.select { |_, value| value }.reverse.to_h
  end

  def take_words(line)
    @words = line.split("\0", -1)
    @words.pop
    @words.each { |word| word.force_encoding(@encoding) unless binary?(word) }
  end

  def renew_locale
    return @locale&.other? if @warming
    return if @locale.nil? || @locale.renew

    fall_back("the locale has another encoding than the one that the image was made in")
  end

  # A rehearsal by `snapboot freeze` runs nothing of the program.
  def refuse_rehearsal(reason)
    log("snapboot: #{reason}\n")
    exit!(125)
  end

  def log(line)
    STDERR.syswrite(line) unless STDERR.close_on_exec? # see #hole?
  rescue IOError, SystemCallError
    nil # nobody can read the message
  end

  # True if a standard stream was closed. Its number may by now belong to a descriptor that Ruby has opened for itself after
  # the fork. Such a descriptor is closed on exec; one that a process starts with is not.
  def hole?
    STDIN.close_on_exec? || STDOUT.close_on_exec? || STDERR.close_on_exec?
  rescue SystemCallError
    true
  rescue IOError
    false # the program closed it while freezing, as it would in each start
  end

  # Outside of ASCII, a word is binary to Ruby in an ASCII locale.
  def binary?(word)
    @encoding == Encoding::US_ASCII && !word.ascii_only?
  end

  # If the program set a handler while freezing, it would have replaced the inherited disposition; Ruby's own handlers do
  # not.
  def leave_ignored(signal)
    handler = trap(signal, "IGNORE")
    trap(signal, handler) if handler.is_a?(Proc)
  rescue ArgumentError
    nil # reserved by Ruby
  end
end
