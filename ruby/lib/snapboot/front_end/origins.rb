# frozen_string_literal: true

# Records where descriptors were opened, names were created in some folders, and attributes of the process were changed. Used
# only in the diagnosing run after a refusal: it is slow.
class Origins
  OPENERS =
    /\A(new|initialize|open|sysopen|for_fd|popen|pipe|pair|socketpair|dup|accept|connect|bind)|open|mkdir|mkfifo|link|rename/
  SETTERS = /set|chdir|chroot|umask|groups|change_privilege|grant|eid|switch|syscall|call|daemon|maxgroups/
  # The least number of the descriptor that stays open, so that the program's descriptors have the same numbers as in the
  # refused boot. Where the limit does not allow this number, the numbers differ, and their places are not reported.
  OUT_OF_THE_WAY = 500
  # From <fcntl.h>.
  F_DUPFD_CLOEXEC = 1030
  # The original method: the program's calls of it are watched.
  LOCATIONS = Kernel.instance_method(:caller_locations)

  def initialize(front_end_directory, request, attributes)
    @front_end = front_end_directory
    @folders = request.list("origins_in")
    @attributes = attributes
    # Opened at the start: a program that gives up its rights could not open it any more.
    @changes = out_of_the_way(File.open("#{request.directory}/attribute_origins", "wb"))
    @library = RbConfig::CONFIG["rubylibdir"]
    @found = {}
    @made = {}
  end

  # Starts watching.
  def watch
    @known = descriptors
    @names = names
    @attributes.look
    @trace = TracePoint.new(:c_return) do |event|
      name = event.method_id.to_s
      record if name.match?(OPENERS)
      note_attributes if name.match?(SETTERS)
    end
    @trace.enable
  end

  # Stops watching and adds what was found to +report+.
  def report_to(report)
    @trace.disable
    @found.each { |number, place| report.add("fd_origin", "#{number}:#{place}") }
    @made.each { |path, place| report.add("made_origin", "#{path}:#{place}") if File.symlink?(path) || File.exist?(path) }
  end

  private

  def out_of_the_way(file)
    IO.for_fd(file.fcntl(F_DUPFD_CLOEXEC, OUT_OF_THE_WAY), "wb").tap { file.close }
  rescue SystemCallError
    file
  end

  def record
    now = descriptors
    opened = now - @known
    @known = now
    there = names
    made = there - @names
    @names = there
    place = caller_outside unless opened.empty? && made.empty?
    return unless place

    opened.each { |number| @found[number] = place }
    made.each { |path| @made[path] = place }
  end

  def note_attributes
    changed = @attributes.look
    return if changed.empty?

    place = caller_outside
    changed.each { |name| @changes.syswrite("attribute_origin=#{name}:#{place}\0") }
  end

  # Returns the innermost frame outside the standard library, or the innermost of all.
  def caller_outside
    frames = LOCATIONS.bind_call(self).reject { |frame| front_end?(frame) || frame.path.start_with?("<internal:") }
    frame = frames.find { |candidate| !candidate.path.start_with?(@library) } || frames.first
    frame && "#{frame.absolute_path || frame.path}:#{frame.lineno}"
  end

  def front_end?(frame)
    frame.path.start_with?(@front_end)
  end

  # Returns the names in the folders.
  def names
    @folders.flat_map { |folder| File.directory?(folder) ? Dir.children(folder).map { |name| File.join(folder, name) } : [] }
  end

  # Open descriptors without the one used for listing.
  def descriptors
    Dir.children("/proc/self/fd").select { |name| File.symlink?("/proc/self/fd/#{name}") }.map(&:to_i)
  end
end
