# frozen_string_literal: true

# Remembers where descriptors were opened. Used only in the second, diagnosing run after a refusal: it is slow.
class Origins
  OPENERS = /\A(new|initialize|open|sysopen|for_fd|popen|pipe|pair|socketpair|dup|accept|connect)|open/

  def initialize(front_end_directory)
    @front_end = front_end_directory
    @library = RbConfig::CONFIG["rubylibdir"]
    @found = {}
  end

  # Starts watching.
  def watch
    @known = descriptors
    @trace = TracePoint.new(:c_return) { |event| note if event.method_id.to_s.match?(OPENERS) }
    @trace.enable
  end

  # Stops watching and adds what was found to +report+.
  def report_to(report)
    @trace.disable
    @found.each { |number, place| report.add("fd_origin", "#{number}:#{place}") }
  end

  private

  def note
    now = descriptors
    opened = now - @known
    @known = now
    place = opened.empty? ? nil : caller_outside
    opened.each { |number| @found[number] = place if place }
  end

  # The innermost frame outside the standard library, or the innermost at all.
  def caller_outside
    frames = caller_locations.reject { |frame| front_end?(frame) || frame.path.start_with?("<internal:") }
    frame = frames.find { |candidate| !candidate.path.start_with?(@library) } || frames.first
    frame && "#{frame.absolute_path || frame.path}:#{frame.lineno}"
  end

  def front_end?(frame)
    frame.path.start_with?(@front_end)
  end

  # Open descriptors without the one used for listing.
  def descriptors
    Dir.children("/proc/self/fd").select { |name| File.symlink?("/proc/self/fd/#{name}") }.map(&:to_i)
  end
end
