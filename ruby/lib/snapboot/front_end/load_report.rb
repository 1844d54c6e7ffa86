# frozen_string_literal: true

# Reports at the end of a thawed process what it has loaded that its image lacks, so that the next image has it.
#
# Only for images of the store. The report is appended to the file that the request names +profile+, entries as in train.rb;
# then +on_news+ is started, without waiting for it. If anything fails, nothing is reported: the program ends as it would
# without this.
class LoadReport
  MAX_SIZE = 1 << 20
  # Opening a FIFO must not wait for its other end.
  OPENING = File::RDWR | File::APPEND | File::CREAT | File::NOFOLLOW | File::NONBLOCK | File::NOCTTY | File::BINARY
  # Decides in each start which gems exist.
  BUNDLER = %r{/bundler/setup\.rb\z}
  INSTALLED = %r{/gems/[^/]+-\d[^/]*/|/vendor/bundle/|/lib/ruby/}
  # The methods before the program could change them.
  SPAWN = Process.method(:spawn)
  OPEN = File.method(:open)

  # The directory in which this process was started; nil if it has none.
  attr_reader :folder

  # +request+ names the file and the command.
  def initialize(request)
    @profile = request.value("profile")
    @checkouts = request.list("checkout").map { |folder| "#{folder}/" }
    @script = request.list("told_of").map { |script| "script=#{script}" }
    @on_news = request.list("on_news")
    # Features that were left out of the image on purpose are not reported.
    @left = request.records("learnt").map(&:first) + request.list("known")
    # By path: how many features were loaded when the loading of this one began.
    @begun = {}
  end

  # Records what is loaded, and from then on the order in which the loading of features begins, and where they are searched.
  # Call right before the freeze.
  def settle
    @known = $LOADED_FEATURES.dup
    @load_path = @searched = @initial = $LOAD_PATH.dup
    @activations = Activations.new
    @tracer = TracePoint.new(:script_compiled) do |event|
      record_begun(event.instruction_sequence.path) unless event.eval_script
    end
    @tracer.enable
  end

  # The archive of this process, whose +own+ files are not reported, is open, and reports each file instead: its code is not
  # used while compiling is traced.
  def listen_to_archive(own)
    @own = own
    return unless Snapboot::Archive.part?(:code)

    @tracer.disable
    Snapboot::Archive.on_event { |_, kind, path| record_begun(path) if kind == :code }
  end

  # Records the identity of this process, before the program can change it.
  def begin
    @process = Process.pid
    @variables = ENV.to_h
    @folder = Dir.pwd
  rescue SystemCallError
    @folder = nil
  end

  # Call last of all.
  def write_report
    return if $LOADED_FEATURES.size == @known.size || !mine? || killed?

    entries = new_entries
    start if !entries.empty? && append(entries)
  rescue StandardError, ScriptError
    nil # the program ends as without this
  end

  private

  # Records that the file of that path is about to run.
  def record_begun(path)
    @begun[path] ||= $LOADED_FEATURES.size
    record_searched unless $LOAD_PATH == @load_path
  end

  def record_searched
    @load_path = $LOAD_PATH.dup
    @searched |= @load_path.map { |folder| File.expand_path(folder) }
  end

  # Whether this is not a child that the program forked, and need not stay hidden.
  def mine?
    Process.pid == @process && @folder && Process.uid == Process.euid
  end

  def killed?
    !($!.nil? || $!.is_a?(StandardError) || $!.is_a?(ScriptError) || $!.is_a?(SystemExit))
  end

  # Whether it is a file of the user, which no image will have.
  def own_file?(path)
    path.start_with?(*@checkouts) && !path.match?(INSTALLED)
  end

  # Returns the entries to report; most starts have none.
  def new_entries
    new = ($LOADED_FEATURES - @known - @left).select do |path|
      path.start_with?("/") && !(@own && path.match?(@own)) && !own_file?(path) && File.file?(path)
    end
    return "" if new.empty? || new.any?(BUNDLER)

    now = ENV.to_h
    changed = (@variables.keys | now.keys).reject { |name| @variables[name] == now[name] }
    from = loaders
    record_searched
    entries = in_order(new).map { |path| "module=#{Channel.record(path, from[path])}" }
    entries += changed.sort.map { |name| "changed=#{name}" }
    entries += (@searched - @initial).map { |folder| "searched=#{folder}" }
    ran = (@begun.keys - $LOADED_FEATURES).select { |path| File.file?(path) }
    entries += ran.map { |path| "ran=#{File.realpath(path)}" }
    entries += @activations.early.map { |gem| "activated=#{gem}" }
    (@script + entries).map { |entry| "#{entry}\0".b }.join
  end

  # Sorts by the beginning of the loading. Libraries that are not written in Ruby come last.
  def in_order(paths)
    order = @begun.keys.each_with_index.to_h
    paths.each_with_index.sort_by { |path, index| [order.fetch(path, order.size), index] }.map(&:first)
  end

  # Returns by path the feature whose loading has loaded that one: the last of those that were begun before and not yet
  # loaded.
  def loaders
    places = $LOADED_FEATURES.each_with_index.to_h
    loading = []
    @begun.to_h do |path, count|
      loading.pop until loading.empty? || places[loading.last] >= count
      from = loading.last
      loading << path if places.key?(path)
      [path, from]
    end
  end

  # Appends the entries that the file lacks. Returns whether the file belongs to the user.
  def append(data)
    return false unless File.stat(File.dirname(@profile)).owned?

    OPEN.call(@profile, OPENING, 0o600) do |file|
      status = file.stat
      return false unless status.owned? && status.file? && status.size <= MAX_SIZE

      present = file.read
      # Ends an entry that was cut off.
      data = "\0#{data}" unless present.empty? || present.end_with?("\0")
      write(file, present.include?(data) ? "" : data, status.size)
    end
  end

  # Returns whether the file can be written.
  def write(file, data, size)
    limit, = Process.getrlimit(:FSIZE)
    return false if size + data.bytesize > limit

    # Data reported earlier but still missing from the image triggers `on_news` again.
    data.empty? ? File.utime(nil, nil, "/proc/self/fd/#{file.fileno}") : file.syswrite(data)
    true
  end

  # Starts the command with the environment and directory of this process' start.
  def start
    variables = File.binread("/proc/self/environ").split("\0").filter_map { |entry| entry.split("=", 2) if entry.index("=") }
    variables = variables.reverse.to_h.except("SNAPBOOT_IGNORED")
    program, *words = @on_news
    streams = $stdout, $stderr
    # Ruby flushes these, even if the program has replaced them. A closed one would fail.
    $stdout = STDOUT
    $stderr = STDERR
    alone = { unsetenv_others: true, pgroup: true, close_others: true, chdir: @folder }
    SPAWN.call(variables, [program, program], *words, in: File::NULL, out: File::NULL, err: File::NULL, **alone)
  ensure
    $stdout, $stderr = streams if streams
  end
end
