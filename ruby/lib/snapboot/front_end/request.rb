# frozen_string_literal: true

# The request of `snapboot freeze`: DIR/request, NUL-terminated key=value entries, a repeated key makes a list.
class Request
  attr_reader :directory

  # Reads the request in +directory+. Raises SystemCallError when it cannot be read.
  def initialize(directory)
    @directory = directory
    @entries = {}
    File.binread("#{directory}/request").split("\0").each do |entry|
      key, value = entry.split("=", 2)
      (@entries[key] ||= []) << text(value.to_s)
    end
  end

  # Returns the values of +key+, in order; an empty list if there are none.
  def list(key)
    @entries.fetch(key, [])
  end

  # Returns the fields of each record of +key+, in order.
  def records(key)
    list(key).map { |record| Channel.fields(record).map { |field| text(field) } }
  end

  # Like #records, for records that are used once: the image must not hold them.
  def take_records(key)
    records(key).tap { @entries.delete(key) }
  end

  # Returns the last value of +key+, or nil.
  def value(key)
    list(key).last
  end

  # Returns the kind of the main part: :bare, :script or :code.
  def main
    value("main").to_sym
  end

  # Returns the index in the command line of the first element after the interpreter's options.
  def main_index
    value("main_index").to_i
  end

  # The interpreter's options.
  def options
    list("argv")[1...main_index]
  end

  # The command's main part, read as the interpreter reads it.
  def command
    CommandLine.new(list("argv")[main_index..])
  end

  # Whether each start reads the script.
  def leaves_script?
    value("leaves_script") == "1"
  end

  # Returns the text of the main part as bytes; empty if the image gets it later.
  def main_source
    case main
    when :script then leaves_script? ? "" : File.binread(value("script"))
    when :code then command.code.to_s.b # none if options are combined with it, as in -ne
    else ""
    end
  end

  # The file from which the arguments of this process are read after a thaw. Tests without an image name a file of their own.
  def command_line_file
    value("test_command_line") || "/proc/self/cmdline"
  end

  # True in tests without an image, where the child of the fork simply goes on.
  def simulated?
    @entries.key?("test_command_line")
  end

  private

  # ASCII text has the encoding of Ruby's own source, in which programs name what they load; other text has that of the
  # locale.
  def text(bytes)
    bytes.force_encoding(bytes.ascii_only? ? Encoding::UTF_8 : Encoding.find("locale"))
  end
end
