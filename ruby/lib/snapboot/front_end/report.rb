# frozen_string_literal: true

# The front end's report to `snapboot freeze`: DIR/report, entries as in the request.
class Report
  # Exit statuses of the freezing process.
  WRITTEN = 0
  PROGRAM_FAILED = 1
  USER_MISTAKE = 2
  REFUSED = 3
  NOT_WRITTEN = 5

  # The active recorder, or nil: its events belong to the report of a failed boot, too.
  attr_writer :reads
  # The ProcessAttributes.
  attr_writer :attributes

  def initialize(directory)
    @path = "#{directory}/report"
    @entries = []
    add("runtime", "CRuby #{RUBY_VERSION}p#{RUBY_PATCHLEVEL}")
  end

  # Adds one entry.
  def add(key, value)
    @entries << "#{key}=#{value}\0".b
  end

  # Adds one entry with several fields.
  def add_record(key, *fields)
    add(key, Channel.record(*fields))
  end

  # Adds the entries to a file of that name beside the report.
  def append_to(name)
    File.binwrite("#{File.dirname(@path)}/#{name}", @entries.join, mode: "a")
  end

  # Writes the report and leaves the process with +status+, running none of the program's exit handlers: those belong
  # to the thawed processes.
  def finish(status)
    @reads&.report_to(self)
    @attributes&.changed.to_a.each { |name| add("attribute", name[1..]) }
    status = NOT_WRITTEN unless written?
    flush
    exit!(status)
  end

  # Reports a mistake of the user in full and leaves.
  def user_mistake(message)
    add("error", message)
    finish(USER_MISTAKE)
  end

  # Ends the freezing process if the program has made a change that a thaw cannot repeat: the process may no longer be able
  # to read its own files.
  def check_attributes
    finish(REFUSED) if @attributes&.refused?
  end

  # Reports an error of the front end's own code, which the program has not caused, and ends.
  # crates/freeze programs/report.rs words
  # it.
  def unexpected(error, front_end_directory)
    add("unexpected", self.class.described(error, front_end_directory))
    finish(USER_MISTAKE)
  end

  # Describes an error of the front end's own code: the error, where it was raised, and the callers in the front end.
  def self.described(error, front_end_directory)
    frames = error.backtrace.to_a
    own = frames.find { |frame| frame.start_with?(front_end_directory) }
    places = [frames.first, own].compact.uniq.map { |frame| frame[/\A.*?:\d+/] }
    "#{error.class}: #{error.message.lines.first.to_s.chomp} (#{places.join(", called by ")})"
  end

  # Shows that the program itself failed, without the front end's own frames, and ends. +text+: added to the message.
  def program_failed(error, front_end_directory, text = nil)
    check_attributes
    add("error", text) if text
    trace = error.backtrace&.reject { |frame| frame.start_with?(front_end_directory) }
    error.set_backtrace(trace) if trace
    # Without a place outside the front end it is the parser's error, whose message names the place.
    from_parser = trace.nil? || trace.empty?
    $stderr.write(from_parser ? "#{error.message}\n" : error.full_message(highlight: $stderr.tty?, order: :top))
    finish(PROGRAM_FAILED)
  end

  private

  def written?
    File.binwrite(@path, @entries.join)
  rescue SystemCallError
    false
  end

  def flush
    [STDOUT, STDERR, $stdout, $stderr].uniq.each do |stream|
      stream.flush
    rescue StandardError
      nil # nobody reads, or it is no stream: the status shows it
    end
  end
end
