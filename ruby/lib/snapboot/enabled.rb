# frozen_string_literal: true

# Continues a start of an enabled Ruby as `snapboot run` where the program has an image, or is started again and again. What
# `snapboot enable` has put into the Ruby evaluates this when RubyGems begins to load, before anything of the program, and
# calls it. The rules, and the files in the store's cache, are those of python/snapboot/archive/images.py.
#
# The entry in the place of a Ruby that belongs to no system (crates/entry) does the same without a Ruby, where the program
# has an image. What it is not certain of comes here.
#
# Nothing is required here, and no constant is left. RbConfig does not exist yet.
class HandOver
  # Options without a word of their own, and those that take one. With any other, such as -e, there is no program to freeze.
  PLAIN = /\A-[adlUvwy]+\z|\A-W\S*\z|\A--(?:enable|disable|yjit|jit|rjit)\S*\z|\A--verbose\z|\A-[IrEC]./
  WITH_WORD = /\A-[IrEC]\z/
  # Of a list of processes that were handed over (bytes): hundreds of them.
  MOST = 8192
  # FNV-1a of 64 bits (RFC 9923).
  BASIS = 0xcbf29ce484222325
  PRIME = 0x100000001b3
  # Ends the name of a Ruby in whose place an entry is.
  MOVED = ".snapboot"
  # What loads RubyGems. A file that the program itself requires is not the beginning of a start.
  BEGINNING = "<internal:gem_prelude>"

  # +snapboot+: the path of the command. +own+: the folder of Snapboot's files, whose scripts start programs by themselves.
  def initialize(snapboot, own)
    @snapboot = snapboot
    @own = own
  end

  # Executes `snapboot run` with this start, where that is due; otherwise returns.
  def call
    return if ENV.key?("SNAPBOOT_FREEZE_DIR") || ENV["SNAPBOOT"] == "off" || !caller.last&.start_with?(BEGINNING)

    @executable = File.readlink("/proc/self/exe")
    name, *words = File.binread("/proc/self/cmdline").split("\0", -1)[...-1]
    program = program_of(words)
    return if program.nil? || program.start_with?("#{@own}/") || !found?(name)

    place = cache
    return if place.nil?

    folder = File.join(place, ".starts")
    make(folder)
    starts = "#{folder}/#{number("#{@executable}\0#{program}")}"
    execute(starts, command(name, words)) if due?(starts) && !handed_over?("#{starts}.handed")
  end

  private

  # Returns the path of the script that a command line of Ruby starts; nil if that can have no image.
  def program_of(words)
    words = words.dup
    while (word = words.shift)
      return File.absolute_path(word) unless word.start_with?("-")

      words.shift if word.match?(WITH_WORD)
      return nil unless word.match?(WITH_WORD) || word.match?(PLAIN)
    end
  end

  # Whether a word names this interpreter: it is a path, or the first file of that name in PATH is this Ruby.
  def found?(name)
    return false unless File.basename(@executable).start_with?("ruby")
    return true if name.include?("/")

    path = ENV.fetch("PATH", "").split(":").map { |folder| "#{folder}/#{name}" }.find { |file| File.executable?(file) }
    !path.nil? && File.realpath(path) == @executable.delete_suffix(MOVED)
  end

  # Returns the folder of the store's images as location.rs of the store finds it; nil if there is none.
  def cache
    named = ENV.fetch("SNAPBOOT_STORE", nil)
    return (File.join(named, "cache") if named.start_with?("/")) if named

    place = ENV.fetch("XDG_CACHE_HOME", "")
    home = ENV.fetch("HOME", "")
    place = File.join(home, ".cache") if !place.start_with?("/") && home.start_with?("/")
    File.join(place, "snapboot/images") if place.start_with?("/")
  end

  # Makes a folder and those above it, for this user alone. Raises Errno::EPERM where it, or the one above, belongs to
  # others: nothing of anybody else is followed, and nothing is written for others to find.
  def make(path)
    unless File.directory?(path)
      above = File.dirname(path)
      make(above) unless File.directory?(above)
      own!(above)
      begin
        Dir.mkdir(path, 0o700)
      rescue Errno::EEXIST
        nil # by another start
      end
    end
    own!(path)
  end

  def own!(path)
    status = File.lstat(path)
    raise Errno::EPERM, path unless status.directory? && status.uid == Process.euid && (status.mode & 0o022).zero?
  end

  def number(text)
    hash = text.b.each_byte.inject(BASIS) { |value, byte| ((value ^ byte) * PRIME) & 0xffffffffffffffff }
    hash.to_s(16).rjust(16, "0")
  end

  # Whether `snapboot run` is to be asked: there is an image, or this is the second start without one, the fourth, the
  # eighth ...
  def due?(starts)
    names = begin
      Dir.children("#{starts}.folder")
    rescue Errno::ENOENT
      []
    end
    return true if names.any? { |name| name.end_with?(".img") }

    count = append(starts, ".")
    count > 1 && (count & (count - 1)).zero?
  end

  # Whether this process was handed over before; writes that it is now. An image that cannot serve a start may execute the
  # program in several ways, and none of them may lead here again and again. Number and time of its start identify a process.
  def handed_over?(file)
    begun = File.binread("/proc/self/stat").rpartition(") ").last.split[19]
    line = "#{Process.pid} #{begun}\n"
    told = File.file?(file) ? File.binread(file) : ""
    return true if told.lines.include?(line)

    append(file, line, told.bytesize > MOST ? File::TRUNC : 0)
    false
  end

  # Returns the file's size.
  def append(path, text, flags = 0)
    flags |= File::WRONLY | File::APPEND | File::CREAT | File::NOFOLLOW
    File.open(path, flags, 0o600) do |file|
      file.syswrite(text)
      file.stat.size
    end
  end

  # Returns the command line: without the interpreter, where the kernel has executed the script itself, which then names the
  # process. Before the script is one word at most then.
  def command(name, words)
    comm = File.binread("/proc/self/comm").chomp
    place = [0, 1].find do |index|
      script = words[index]
      next unless script && File.basename(script).b[0, 15] == comm && File.file?(script)

      line = File.binread(script, 256).lines.first.to_s
      line.start_with?("#!") && line[2..].strip.split(/\s+/, 2) == [name, *words[0...index]]
    end
    place ? words.drop(place) : [name, *words]
  end

  # Never returns, unless the command is gone: then it raises SystemCallError.
  def execute(starts, command)
    given = {}
    File.binread("/proc/self/environ").split("\0").each do |entry|
      variable, equals, value = entry.partition("=")
      given[variable] = value unless variable.empty? || equals.empty?
    end
    exec(given, [@snapboot, @snapboot], "run", "--starts", starts, "--", *command, unsetenv_others: true)
  end
end

self # the module in which this is evaluated, for whoever takes the class from it
