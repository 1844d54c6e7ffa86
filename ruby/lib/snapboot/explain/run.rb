# frozen_string_literal: true

# Records where the time of an ordinary start goes, for `snapboot explain`.
#
# RUBYOPT names this file. It then removes itself, so that neither the program nor its children see it. It records a list of
# spans that begin and end, which the last exit handler writes to the file that SNAPBOOT_EXPLAIN names: entries that end with
# NUL, `begin=TIME KIND NAME` and `end=TIME DETAIL`, times in nanoseconds of the monotonic clock, and `collected=TIME` for
# garbage collection since the previous entry. If SNAPBOOT_EXPLAIN_COUNT is set, system calls are counted from outside: then
# each entry passes its number to the kernel, as a process that cannot exist.
#
# In a thawed process that should record the same, the front end evaluates this file (see explained.rb there).
#
# Ruby calls `load_iseq` when it has found the file of a feature, and raises an event when its code is compiled: in between
# it reads and decodes, after that it runs the body. The boot archive does not use its code if another method answers
# `load_iseq` or compiling is traced: if RUBYOPT names it next, it is switched on here, and reports its code itself.
trace = Module.new
trace.module_eval do
  # One start, from this file to the last exit handler.
  self::Run = Class.new do
    # No kernel gives a process so high a number.
    first_number = 1 << 30

    # Warnings and backtraces leave out frames of that name.
    name = "<internal:snapboot>"
    const_set(:WRAP, RubyVM::InstructionSequence.compile(File.read("#{__dir__}/wrappers.rb"), name, name).eval)

    # +own+: this file.
    define_method(:initialize) do |own|
      @begun = now
      @own = own
      @path = ENV.delete("SNAPBOOT_EXPLAIN")
      @counts = !ENV.delete("SNAPBOOT_EXPLAIN_COUNT").nil?
      @process = Process.pid
      @thread = Thread.current
      @spans = []
      @first = @counts && File.exist?(@path) ? File.binread(@path).count("\0") : 0
      @pending = nil
      @collected = 0
    end

    define_method(:number) do |index|
      Process.getpgid(first_number + @first + index)
    rescue SystemCallError
      nil
    end

    # Records an ordinary start, up to its last exit handler.
    def start
      archive = take_out
      return unless @path

      set_up
      if archive
        step(:archive, "opening the boot archive")
        require archive
        step(:other, "measuring: setting up")
      end
      leave_no_feature
      watch
      at_exit { write_all }
      step(:main, "__main__")
    end

    # Records a thaw, whose front end reports its steps and its end. Returns itself.
    def start_thawed
      set_up
      watch
      at_exit { end_main }
      step(:context, "standard streams, random state")
      self
    end

    # Ends the last step, and begins this one.
    def step(kind, name)
      leave
      enter(kind, name)
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end

    # Whether this thread is recorded: other threads have spans of their own, for which nobody waits.
    def here?
      @thread.equal?(Thread.current) && !@ended
    end

    def enter(kind, name, time = now)
      note_collected
      number(@spans.size / 3) if @counts
      @spans.push(time, kind, name)
    end

    def leave(detail = nil)
      note_collected
      number(@spans.size / 3) if @counts
      @spans.push(now, nil, detail)
    end

    # Records the load of a feature: one that is already loaded gets no span of its own, and only adds to its caller's time.
    # +asks_plain+: by RubyGems' require, which goes on to Ruby's own.
    def feature(name, asks_plain: false)
      size = @spans.size
      before = @asks_plain
      @asks_plain = asks_plain
      enter(:body, name)
      @body = @spans.size
      result = failed = yield
    ensure
      @asks_plain = before
      # An exception, or a feature that was already loaded.
      close_code
      if @spans.size == size + 3 && result == false
        @spans.pop(3)
      else
        leave(failed.nil? ? "failed" : nil)
      end
    end

    # Records that a file was found.
    def found(path)
      return unless here?

      close_code
      @pending = path
      enter(:code, path)
    end

    # Records that the boot archive has looked for its code, with the duration (ns). Missing code is compiled next. +found+:
    # whether the archive has found the file, too.
    def looked_up(event, path, took, found)
      return unless here?

      begun = now - took
      @missed = begun unless %i[hit revalidated].include?(event)
      search(begun) unless found
      enter(:stored, path, begun)
      leave(path)
    end

    # Records that Ruby has then read and compiled the missing code.
    def compiled_instead(path)
      return unless here? && @missed

      enter(:code, path, @missed)
      leave(path)
    end

    # Records another answer of the boot archive, with the duration (ns).
    def answered(name, took)
      return unless here?

      enter(:data, name, now - took)
      leave
    end

    # Records that its code is there.
    def compiled(instructions)
      close_code if here? && instructions.path == @pending
    end

    # Whether Ruby's own require is called for the feature that RubyGems' require was called for.
    def asked_for?
      asked = @asks_plain
      @asks_plain = false
      asked
    end

    def pending?
      @pending
    end

    def end_main
      return if @ending || Process.pid != @process

      close_code
      step(:exit, "exit handlers")
      @ending = true
    end

    # Ends the last step, and writes all spans. +executed+: the program that the process executes.
    def write_all(executed = nil)
      return if Process.pid != @process || @ended

      end_main
      step(:other, "measuring: writing")
      write(executed)
    end

    # Writes the spans before the block ends the process without its exit handlers, or executes another program; takes that
    # back if the process goes on.
    def write_before(executed = nil)
      return yield if Process.pid != @process || @ended

      size = @spans.size
      ending = @ending
      pending = @pending
      length = write_early(executed)
      begin
        yield
      ensure
        @spans.pop(@spans.size - size)
        @ending = ending
        @pending = pending
        @ended = false
        File.truncate(@path, length)
      end
    end

    private

    # The feature being loaded has been searching until then, if it has done nothing else.
    def search(ended)
      before = @body ? @spans[@body..] : nil
      return unless before && @spans[@body - 2] == :body && before.each_slice(3).all? { |_, kind| kind == :collected }

      enter(:search, @spans[@body - 1], @spans[@body - 3])
      @spans.push(ended, nil, nil)
    end

    # Ends all open spans, and writes them. Returns the position in the file.
    def write_early(executed)
      length = File.exist?(@path) ? File.size(@path) : 0
      close_code
      kinds = @spans.each_slice(3).map { |span| span[1] }
      (kinds.count { |kind| kind && kind != :collected } - kinds.count(nil)).times { leave }
      enter(:other, "measuring: writing")
      write(executed)
      length
    end

    def write(executed)
      @ended = true
      # A collection would walk over the whole program, which is ending.
      was_disabled = GC.disable
      File.open(@path, File::WRONLY | File::CREAT | File::APPEND, 0o600) do |file|
        file.sync = true
        file.write(entries)
        file.write("executed=#{executed}\0".b) if executed
        number(@spans.size / 3) if @counts
        file.write("end=#{now} \0")
      end
    ensure
      GC.enable unless was_disabled
    end

    # Removes this file from RUBYOPT. Returns the file that switches the boot archive on, if that comes next.
    def take_out
      option = "-r#{@own}"
      options = ENV.fetch("RUBYOPT", "")
      ENV["RUBYOPT"] = options == option ? nil : options.sub(/#{Regexp.escape(option)} ?/, "")
      ENV.fetch("RUBYOPT", "")[%r{\A-r(\S+/snapboot/archive/run\.rb)(?!\S)}, 1]
    end

    def set_up
      GC::Profiler.enable unless GC.respond_to?(:total_time)
      @collected = collected
      enter(:other, "measuring: setting up", @begun)
    end

    def close_code
      return unless @pending

      path = @pending
      @pending = nil
      leave(path)
    end

    # Returns the collector's total time so far (ns).
    def collected
      return GC.total_time if GC.respond_to?(:total_time)

      (GC::Profiler.total_time * 1e9).to_i
    end

    def note_collected
      total = collected
      return if total == @collected

      @spans.push(total - @collected, :collected, nil)
      @collected = total
    end

    # Ruby adds the feature when this file has been loaded.
    def leave_no_feature
      own = @own
      TracePoint.new(:c_return) do |event|
        event.disable if $LOADED_FEATURES.last == own && $LOADED_FEATURES.pop
      end.enable
    end

    def watch
      run = self
      archive = Snapboot::Archive if defined?(Snapboot::Archive) && Snapboot::Archive.enabled?
      has_code = archive&.part?(:code)
      self.class::WRAP.call(run, asks_for_code: !has_code)
      archive&.watch(run)
      return if has_code

      TracePoint.new(:script_compiled) do |event|
        run.compiled(event.instruction_sequence) if run.pending? && !event.eval_script
      end.enable
    end

    def entries
      entries = @spans.each_slice(3).map do |time, kind, name|
        case kind
        when nil then "end=#{time} #{name}\0"
        when :collected then "collected=#{time}\0"
        else "begin=#{time} #{kind} #{name}\0"
        end
      end
      entries.map(&:b).join
    end
  end
end
trace.module_eval { self::Run.new(__FILE__).start } unless defined?(thawed)
trace::Run
