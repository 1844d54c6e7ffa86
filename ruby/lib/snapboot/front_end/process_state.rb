# frozen_string_literal: true

# State of the whole process that a feature can change, as of the last look: if it does, it matters whether and when the
# program loads the feature.
class ProcessState
  DESCRIPTORS = "/proc/self/fd"
  # The original method, so that calls here do not count as the program's (early.rb).
  STAT = IO.instance_method(:stat)
  OF_A_START = ["a standard stream", "$0", "the umask", "the current directory", "the running threads",
                "the open files"].freeze
  # State that the main part may set before it loads a feature that sets it, too: with the pattern of its name in the text.
  SET_BY_MAIN = {
    "$VERBOSE or $DEBUG" => /\$(VERBOSE|DEBUG|-[vwWd])\b/n,
    "a separator" => %r{\$(-[0F]|[,;/\\]|\w*SEPARATOR)}n
  }.freeze

  # +main+: the text of the main part, or nil where it may be any.
  def initialize(main)
    @told = OF_A_START + SET_BY_MAIN.keys.select { |what| main.nil? || main.b.match?(SET_BY_MAIN[what]) }
    @last = now
    @gems = gems
  end

  # Returns the changes since the last look, in words. +is_always+: whether, as far as known, each start of the program makes
  # them; then only changes that differ in every start, or that the main part may also make, are returned.
  def changes(is_always)
    last = @last
    @last = now
    last.keys.reject { |what| last[what] == @last[what] || (is_always && !@told.include?(what)) }
  end

  # Returns the gems that were activated since the last look.
  def new_gems
    last = @gems
    @gems = gems
    @gems - last
  end

  private

  def now
    {
      "$LOAD_PATH" => $LOAD_PATH.dup,
      "a standard stream" => [$stdin, $stdout, $stderr].map(&:__id__) + Early::STREAMS.map { |stream| identity(stream) },
      "$0" => $0.dup,
      "$VERBOSE or $DEBUG" => [$VERBOSE, $DEBUG],
      "a separator" => [$;, $,, $/, $\],
      "which warnings are shown" => %i[deprecated experimental].map { |category| Warning[category] },
      "the default encodings" => [Encoding.default_external, Encoding.default_internal],
      "the umask" => File.umask,
      "the current directory" => folder,
      "the running threads" => LostThreads.all,
      "the open files" => open_files
    }
  end

  # Returns the highest number of open files. Files without references are closed when they are collected.
  def open_files
    count = Dir.children(DESCRIPTORS).size
    return @open ||= count if count <= (@open || count)

    GC.start
    @open = [@open, Dir.children(DESCRIPTORS).size].max
  end

  def identity(stream)
    status = STAT.bind_call(stream)
    [status.dev, status.ino]
  rescue IOError, SystemCallError
    nil # closed
  end

  def folder
    Dir.pwd
  rescue SystemCallError
    nil
  end

  def gems
    defined?(Gem.loaded_specs) ? Gem.loaded_specs.keys : []
  end
end
