# frozen_string_literal: true

module Snapboot
  # The boot archive of this program: what was worked out in earlier starts and still holds, because everything that it
  # was made of is unchanged. Before Snapboot::Archive.set_up, and where there is no archive, every method is a cheap
  # no-op.
  #
  # The environment has the settings: SNAPBOOT_ARCHIVE (a file, or `off`), SNAPBOOT_ARCHIVE_POLICY (`check`, `content`,
  # `trust`), SNAPBOOT_ARCHIVE_READONLY=1, SNAPBOOT_ARCHIVE_MAX (MB), SNAPBOOT_STATS=1, SNAPBOOT_LOG=1;
  # SNAPBOOT_ARCHIVE_BACK_END=pure has CRuby do without the native part. SNAPBOOT_ARCHIVE_CODE, SNAPBOOT_ARCHIVE_LOOKUPS,
  # SNAPBOOT_ARCHIVE_DATA and SNAPBOOT_ARCHIVE_GEMS are each `off` to leave out one of the PARTS.
  module Archive
    # Numbers of the kinds of entries in the file (docs/internals/archive-format.md).
    KINDS = { code: 1, data: 2, memo: 4 }.freeze
    private_constant :KINDS

    # Numbers of the kinds of inputs that a back end takes.
    INPUTS = { file: 0, directory: 1, absent: 2, variable: 3 }.freeze
    private_constant :INPUTS

    # What can happen at a look-up, in the order of the numbers that a back end answers with.
    EVENTS = %i[hit miss stale revalidated].freeze

    # What the archive is used for: compiled code, what names of features lead to (and other searches of directories), parsed
    # data files, and what RubyGems and Bundler find out.
    PARTS = %i[code lookups data gems].freeze

    # What a variable says of a part.
    SWITCH = { nil => true, "" => true, "on" => true, "1" => true, "off" => false, "0" => false }.freeze
    private_constant :SWITCH

    # For Thread.handle_interrupt. By identity, since Object would get a number from being hashed, which programs see.
    LATER = {}.compare_by_identity.tap { |mask| mask[Object] = :never }.freeze
    private_constant :LATER

    @back = nil
    @listeners = []
    @watcher = nil
    @waiting = {}

    class << self
      # Opens the archive, or gets ready to make it, and switches on what this runtime can take from it. Does nothing
      # the second time, or where there can be no archive. Raises nothing. Returns whether there is an archive.
      # +script+: the main script, or nil; +folder+: the working directory in which it was started, or nil for that of now.
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

      # Where the archive is, or nil.
      def place
        @back&.place
      end

      # What tells one state of the file or directory at `path` (a String) from another: a frozen String to be taken
      # BEFORE the file is read. nil where there is neither.
      def identity(path)
        @back&.identity(path)
      end

      # The payload of the entry of that kind (:code, :data, :memo) and name (mostly a path), if all that it was made of
      # is unchanged: a frozen binary String. nil otherwise. `context`: a String that describes what besides the inputs
      # has to be as it was when it was stored (runtime, version ...); nil: nothing.
      def fetch(kind, name, context: nil)
        return unless @back

        event, payload = @back.fetch(KINDS.fetch(kind), name, context || "any")
        @listeners.each { |listener| listener.call(EVENTS[event], kind, name) }
        payload
      end

      # Queues an entry, which is written soon, or by `flush`. `inputs`: what the payload (a String) was made of, as an Array
      # of [:file, path, identity], [:directory, path, identity], [:absent, path] and [:variable, name, value or nil],
      # paths absolute. An identity of nil, or a file that has changed by the time of writing, and nothing is stored.
      # Returns nil.
      def store(kind, name, inputs, payload, context: nil)
        return unless @back

        rows = inputs.map { |type, *rest| [INPUTS.fetch(type), *rest] }
        @back.store(KINDS.fetch(kind), name, rows, payload, context || "any")
        nil
      end

      # Writes what is queued, unless the archive is read-only. Returns nil.
      def flush
        reason = @back&.flush
        log("nothing was stored: #{reason}") if reason
        nil
      end

      # Whether list_tree and tree_state are there: they are part of the native back end alone.
      def trees?
        @back.respond_to?(:list_tree)
      end

      # Two frozen Strings for what the names below some directories depend on: the paths of these (absolute; an Array is
      # given) and of all directories below them, with `links` also of those that links lead to; and the state that they are
      # in. nil where nothing of it can be remembered: it has just changed, cannot be read, or the archive is not written.
      def list_tree(paths, links)
        @back.list_tree(paths, links)
      end

      # The state that the paths in the first String of list_tree are in, as a frozen String: another one as soon as a name
      # is added or removed, or another thing is at one of the paths. nil where that has just happened.
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

      # Calls the block when the file of that name (`psych.rb`) has been loaded by require, at once if it has been
      # already. Returns nil.
      def after_load(name, &block)
        return yield if $LOADED_FEATURES.any? { |feature| feature.end_with?("/#{name}") }

        @waiting[name] = block
        @back&.await_file(name)
        nil
      end

      # For `snapboot explain`. Calls `watcher.looked_up(event, path, took, found)` at every look-up of code, with :hit,
      # :miss, :stale or :revalidated, how long that took (ns), with decoding the code, and whether the archive has found
      # the file, too; `compiled_instead(path)` once Ruby has compiled what was not there; and `answered(name, took)` at
      # other answers. Returns nil.
      def watch(watcher)
        @watcher = watcher
        @back&.tell_look_ups
        nil
      end

      # For the back end: a look-up of code has taken place. Takes the number of the event, the path, how long it took
      # (ns), and whether the archive has found the file.
      def tell_code(event, path, took, found)
        @listeners.each { |listener| listener.call(EVENTS[event], :code, path) }
        @watcher&.looked_up(EVENTS[event], path, took, found)
      end

      # For the back end: Ruby has compiled the code that was not there.
      def tell_compiled(path)
        @watcher&.compiled_instead(path)
      end

      # Returns what the block gives: an answer out of the archive, or nil or `missing` where it has none. `name`: what it is
      # called where somebody watches.
      def answering(name, missing = nil)
        return yield unless @watcher

        begun = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        answer = yield
        took = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - begun
        @watcher.answered(name, took) unless answer.nil? || missing.equal?(answer)
        answer
      end

      # For the back end: the file of that name, which `after_load` waits for, has been loaded.
      def tell_loaded(name)
        @waiting.delete(name)&.call
      end

      # Numbers of look-ups so far by what became of them: a Hash from :hit, :miss, :stale and :revalidated.
      def counters
        EVENTS.zip(@back ? @back.counters : [0] * EVENTS.size).to_h
      end

      # Calls the block and returns what it gives, or `otherwise` if it fails: what goes wrong here must not reach a program
      # that can do without the archive. What another thread sends to this one (Thread#raise, Thread#kill, a timeout) is no
      # failure of the block, and comes when it is done. `what`: the file or feature in question, for the log.
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

      # The back end of this runtime: an object with the methods that native.rb describes. nil, with the reason logged,
      # where there is no archive.
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
          log("#{variable} was expected to be on or off, not #{value}: it counts as not set")
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
