# frozen_string_literal: true

require_relative "pure/records"
require_relative "pure/sums"
require_relative "pure/location"
require_relative "pure/identity"
require_relative "pure/entry"
require_relative "pure/reader"
require_relative "pure/freshness"
require_relative "pure/directories"
require_relative "pure/loaded"
require_relative "pure/load_path"
require_relative "pure/require"
require_relative "pure/endings"

module Snapboot
  module Archive
    # The back end in plain Ruby, over the same file as crates/archive: for TruffleRuby and JRuby, and for a CRuby without
    # the native part. It has no code cache. Only look-ups are loaded with the program; writing is loaded on demand.
    # native.rb documents arguments and results of the methods.
    module Pure
      POLICIES = { nil => :check, "" => :check, "check" => :check, "content" => :content, "trust" => :trust }.freeze
      # Identifiers of contexts: the first bytes of the SHA-256 of their descriptions.
      ANY = ["d6a7cd2a7371b1a1"].pack("H*").freeze
      HIT = 0
      MISS = 1
      STALE = 2
      REVALIDATED = 3
      private_constant :POLICIES, :ANY

      @counters = [0, 0, 0, 0]
      @contexts = { "any" => ANY }

      class << self
        # The archive's path, the application's root, and the numbers of hits, misses, stale and revalidated entries.
        attr_reader :place, :counters

        # Opens the archive of the program with that main script (nil: none), started in that folder (nil: the working
        # directory). Returns nil, or why there is none.
        def open(script, folder = nil)
          @sums = Sums.cheapest
          policy = POLICIES[ENV["SNAPBOOT_ARCHIVE_POLICY"]]
          return "SNAPBOOT_ARCHIVE_POLICY was expected to be check, content or trust" unless policy

          application = Application.new(ENV["BUNDLE_GEMFILE"], script, folder || Dir.pwd)
          @place = chosen_place(application) or return "neither HOME nor XDG_CACHE_HOME says where it could be"
          @root = Root.new(application.root)
          @freshness = Freshness.new(policy, @root, @sums)
          @reader = Reader.open(@place, @sums)
          @policy = policy
          Endings.install { flush } unless read_only?
          nil
        rescue Unusable => e
          e.message
        end

        # Serves require from the archive, if `lookups`. There is no code.
        def switch_on(_code, lookups)
          @directories = Directories.new(@root, @policy, @sums) { |*key| look_up(*key).last } if lookups
          Require.install(@directories && LoadPath.new(@directories))
          nil
        end

        # There are no look-ups of code to report.
        def tell_look_ups; end

        def await_file(name)
          Require.await(name)
        end

        # The application's root.
        def root
          @root&.path
        end

        def identity(path)
          Identity.read(path)
        end

        def fetch(kind, name, context)
          event, payload = look_up(kind, name, context)
          @counters[event] += 1
          [event, payload]
        end

        def store(kind, name, inputs, payload, context)
          return if read_only?

          batch.add(kind, name, inputs, payload, context_id(context), context)
          flush if batch.due?
          nil
        end

        # Writes the queue. Returns nil, or why nothing was written.
        def flush
          return if read_only?

          @directories&.store(batch, context_id("any"))
          return if batch.empty?

          megabytes = Integer(ENV["SNAPBOOT_ARCHIVE_MAX"] || "", exception: false)
          Writer.new(@place, @root, @sums, megabytes ? megabytes << 20 : Records::DEFAULT_BOUND).append(@batch.take)
          nil
        rescue StandardError, LoadError => e # the program has ended well
          e.message
        end

        private

        def chosen_place(application)
          named = ENV["SNAPBOOT_ARCHIVE"]
          return File.expand_path(named) if named && !named.empty?

          application.place(*ENV.values_at("XDG_CACHE_HOME", "HOME")) { |bytes| @sums.sha256(bytes) }
        end

        def look_up(kind, name, context)
          entry = @reader&.find([kind].pack("C") << context_id(context) << @root.name(name)) or return [MISS, nil]
          freshness = @freshness.check(entry, @reader.whole?)
          return [STALE, nil] if freshness == :stale

          payload = entry.payload or return [MISS, nil]
          return [HIT, payload] if freshness == :fresh

          batch.again(entry) unless read_only?
          [REVALIDATED, payload]
        end

        def context_id(context)
          @contexts[context] ||= @sums.sha256(context.b).byteslice(0, 8)
        end

        def read_only?
          ENV["SNAPBOOT_ARCHIVE_READONLY"] == "1"
        end

        # The queue of this process: its parent writes its own.
        def batch
          return @batch if @batch && @process == Process.pid

          require_relative "pure/segment"
          require_relative "pure/batch"
          require_relative "pure/writer"
          @process = Process.pid
          @batch = Batch.new(@root, @sums)
        end
      end
    end
  end
end
