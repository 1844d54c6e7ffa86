# frozen_string_literal: true

module Snapboot
  # The boot archive of this program: results of earlier starts that still hold, because nothing they were made from has
  # changed. Before Snapboot::Archive.set_up, and without an archive, every method is a cheap no-op.
  #
  # The environment has the settings: SNAPBOOT_ARCHIVE (a file, or `off`), SNAPBOOT_ARCHIVE_POLICY (`check`, `content`,
  # `trust`), SNAPBOOT_ARCHIVE_READONLY=1, SNAPBOOT_ARCHIVE_MAX (MB), SNAPBOOT_STATS=1, SNAPBOOT_LOG=1;
  # SNAPBOOT_ARCHIVE_BACK_END=pure makes CRuby work without the native part. SNAPBOOT_ARCHIVE_CODE, SNAPBOOT_ARCHIVE_LOOKUPS,
  # SNAPBOOT_ARCHIVE_DATA and SNAPBOOT_ARCHIVE_GEMS are each `off` to leave out one of the PARTS.
  module Archive
    # Numbers of the kinds of entries in the file (docs/internals/archive-format.md).
    KINDS = { code: 1, data: 2, memo: 4 }.freeze
    private_constant :KINDS

    # Numbers of the kinds of inputs that a back end takes.
    INPUTS = { file: 0, directory: 1, absent: 2, variable: 3 }.freeze
    private_constant :INPUTS

    # The outcomes of a look-up, in the order of the back end's numbers.
    EVENTS = %i[hit miss stale revalidated].freeze

    # The uses of the archive: compiled code, the files that names of features lead to (and other searches of directories),
    # parsed data files, and the results of RubyGems and Bundler.
    PARTS = %i[code lookups data gems].freeze

    # The values of a part's variable.
    SWITCH = { nil => true, "" => true, "on" => true, "1" => true, "off" => false, "0" => false }.freeze
    private_constant :SWITCH

    # For Thread.handle_interrupt. By identity, since hashing Object would give it a hash number, which programs can see.
    LATER = {}.compare_by_identity.tap { |mask| mask[Object] = :never }.freeze
    private_constant :LATER

    @back = nil
    @listeners = []
    @watcher = nil
    @waiting = {}

    class << self
      # Opens the archive, or prepares to create it, and switches on the parts that this runtime supports. Does nothing the
      # second time, or where no archive is possible. Raises nothing. Returns whether there is an archive. +script+: the main
      # script, or nil; +folder+: the working directory in which it was started, or nil for the current one.
      def set_up(script = $PROGRAM_NAME, folder = nil)
        return enabled? if @was_set_up

        @was_set_up = true
        @back = open_back(script == "-e" ? nil : script, folder)
        return false unless @back

        at_exit { finish }
        @parts = PARTS.select { |part| requested?(part) }
        reason = @back.switch_on(part?(:code), part?(:lookups))
        log("require is not served by the archive: #{reason}") if reason
        install_gems if RUBY_ENGINE == "ruby" && part?(:gems)
        true
      rescue StandardError, LoadError => e
        log("no archive: #{e.message} (#{e.class})")
        @back = nil
        false
      end

      # Whether there is an archive.
      def enabled?
        !@back.nil?
      end

      # Whether there is an archive, and one of the PARTS is switched on.
      def part?(name)
        enabled? && @parts.include?(name)
      end

      # The path of the archive, or nil.
      def place
        @back&.place
      end

      # Returns what distinguishes this state of the file or directory at `path` (a String) from others: a frozen String, to
      # be taken BEFORE the file is read. nil if neither exists.
      def identity(path)
        @back&.identity(path)
      end

      # Returns the payload of the entry of that kind (:code, :data, :memo) and name (mostly a path), a frozen binary String,
      # if nothing it was made from has changed; nil otherwise. `context`: a String that describes what besides the inputs
      # must be as it was when the payload was stored (runtime, version ...); nil: nothing.
      def fetch(kind, name, context: nil)
        return unless @back

        event, payload = @back.fetch(KINDS.fetch(kind), name, context || "any")
        @listeners.each { |listener| listener.call(EVENTS[event], kind, name) }
        payload
      end

      # Queues an entry, which is written soon, or by `flush`. `inputs`: what the payload (a String) was made from, as an
      # Array of [:file, path, identity], [:directory, path, identity], [:absent, path] and [:variable, name, value or nil],
      # paths absolute. If an identity is nil, or a file has changed by the time of writing, nothing is stored. Returns nil.
      def store(kind, name, inputs, payload, context: nil)
        return unless @back

        rows = inputs.map { |type, *rest| [INPUTS.fetch(type), *rest] }
        @back.store(KINDS.fetch(kind), name, rows, payload, context || "any")
        nil
      end

      # Writes the queue, unless the archive is read-only. Returns nil.
      def flush
        reason = @back&.flush
        log("nothing was stored: #{reason}") if reason
        nil
      end

      # Whether list_tree and tree_state are available: only the native back end has them.
      def trees?
        @back.respond_to?(:list_tree)
      end

      # Returns two frozen Strings for what the names below some directories depend on: the paths of these (absolute; an
      # Array is given) and of all directories below them, with `links` also of those that links lead to; and their state.
      # nil if none of it can be remembered: it has just changed, cannot be read, or the archive is not written.
      def list_tree(paths, links)
        @back.list_tree(paths, links)
      end

      # Returns the state of the paths in the first String of list_tree, as a frozen String. It differs as soon as a name is
      # added or removed, or a path leads to another file. nil if that has just happened.
      def tree_state(paths)
        @back.tree_state(paths)
      end

      # Calls the block at every look-up, with :hit, :miss, :stale or :revalidated, the kind and the name. Returns nil.
      def on_event(&block)
        raise ArgumentError, "Snapboot::Archive.on_event needs a block" unless block

        @listeners.push(block)
        @back&.tell_look_ups
        nil
      end

      # Calls the block when require has loaded the file of that name (`psych.rb`), at once if it was loaded earlier. Returns
      # nil.
      def after_load(name, &block)
        return yield if $LOADED_FEATURES.any? { |feature| feature.end_with?("/#{name}") }

        @waiting[name] = block
        @back&.await_file(name)
        nil
      end

      # For `snapboot explain`. Calls `watcher.looked_up(event, path, took, found)` at every look-up of code, with :hit,
      # :miss, :stale or :revalidated, how long that took (ns), including decoding, and whether the archive has found the
      # file, too; `compiled_instead(path)` once Ruby has compiled missing code; and `answered(name, took)` at other answers.
      # Returns nil.
      def watch(watcher)
        @watcher = watcher
        @back&.tell_look_ups
        nil
      end

      # For the back end: code was looked up. Takes the number of the event, the path, the duration (ns), and whether the
      # archive has found the file.
      def tell_code(event, path, took, found)
        @listeners.each { |listener| listener.call(EVENTS[event], :code, path) }
        @watcher&.looked_up(EVENTS[event], path, took, found)
      end

      # For the back end: Ruby has compiled the missing code.
      def tell_compiled(path)
        @watcher&.compiled_instead(path)
      end

      # Returns the block's result: an answer out of the archive, or nil or `missing` if it has none. `name`: its name for
      # the watcher.
      def answering(name, missing = nil)
        return yield unless @watcher

        begun = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        answer = yield
        took = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - begun
        @watcher.answered(name, took) unless answer.nil? || missing.equal?(answer)
        answer
      end

      # For the back end: the file of that name, which `after_load` waits for, was loaded.
      def tell_loaded(name)
        @waiting.delete(name)&.call
      end

      # Returns the numbers of look-ups so far by outcome: a Hash from :hit, :miss, :stale and :revalidated.
      def counters
        EVENTS.zip(@back ? @back.counters : [0] * EVENTS.size).to_h
      end

      # Calls the block and returns its result, or `otherwise` if it fails: an error here must not reach a program that can
      # work without the archive. An exception sent by another thread (Thread#raise, Thread#kill, a timeout) is no failure of
      # the block, and is delivered after it. `what`: the file or feature in question, for the log.
      def attempt(what, otherwise = nil)
        Thread.handle_interrupt(LATER) do
          yield
        rescue StandardError, ScriptError, SystemStackError => e
          log("#{what}: not from the archive: #{e.message} (#{e.class})")
          otherwise
        end
      end

      # Writes a line to standard error, if SNAPBOOT_LOG=1. Returns nil.
      def log(message)
        warn("snapboot: #{message}") if ENV["SNAPBOOT_LOG"] == "1"
      end

      private

      # Returns the back end of this runtime: an object with the methods that native.rb describes. nil, with the reason
      # logged, if there is no archive.
      def open_back(script, folder)
        return if ENV["SNAPBOOT_ARCHIVE"] == "off"

        back = native_back || pure_back or return
        reason = back.open(script, folder)
        reason ? log("no archive: #{reason}") : back
      end

      def native_back
        return unless RUBY_ENGINE == "ruby" && ENV["SNAPBOOT_ARCHIVE_BACK_END"] != "pure"

        require_relative "archive/native"
        reason = Native.load_library
        reason ? log("not the native back end: #{reason}") : Native
      end

      def pure_back
        return unless File.file?("#{__dir__}/archive/pure.rb")

        require_relative "archive/pure"
        Pure
      end

      def requested?(part)
        variable = "SNAPBOOT_ARCHIVE_#{part.upcase}"
        SWITCH.fetch(ENV[variable]) do |value|
          log("#{variable} was expected to be on or off, not #{value}: it is ignored")
          true
        end
      end

      def install_gems
        require_relative "archive/gems/install"
        Gems.install
      end

      def finish
        flush
        return unless ENV["SNAPBOOT_STATS"] == "1"

        require_relative "archive/stats"
        Stats.print
      end
    end
  end
end
