# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # The names in the directories of the load path, remembered from one start to the next in one entry (kind memo), since
      # a look-up for each would take as long as listing it. A listing is valid while the directory's ctime is unchanged:
      # every change of a directory changes that, and no program can choose it.
      #
      # The payload: for each directory its name in the archive, ctime (nanoseconds, decimal) and names, each but the last
      # followed by a slash; all separated by zero bytes.
      class Directories
        NAME = "load path 1"
        CONTEXT = "any"
        MEMO = 4
        private_constant :NAME, :CONTEXT, :MEMO

        # The names in a directory with a slash before and behind each, and the ctime then (nil: it may have changed just
        # now).
        Listing = Struct.new(:names, :ctime)
        ABSENT = Listing.new("/", nil).freeze
        # The listing of a directory that cannot be listed: only the runtime can search it.
        CLOSED = Listing.new("/", nil).freeze

        # policy: see Freshness. The block returns the stored payload, or nil.
        def initialize(root, policy, sums)
          @root = root
          @quick = sums if sums.respond_to?(:ctime)
          @policy = policy
          @known = {}
          parts = (yield(MEMO, NAME, CONTEXT) || "").split("\0")
          parts.each_slice(3) { |name, ctime, names| @known[name] = Listing.new("/#{names}/", ctime.to_i) if names }
          @is_new = false
        end

        # Returns the current listing of a directory, checked again. A path that is no directory is ABSENT, or CLOSED if that
        # is uncertain.
        def look(path)
          name = @root.name(path)
          known = @known[name]
          return known if known && @policy == :trust

          return known if known && known.ctime == ctime(path) && @policy != :content

          list(path, name, known)
        rescue Errno::ENOENT, Errno::ENOTDIR, ArgumentError
          ABSENT
        rescue SystemCallError
          CLOSED
        end

        # Queues the new listings.
        def store(batch, context_id)
          return unless @is_new

          kept = @known.select { |name, listing| listing.ctime && File.directory?(@root.join(name)) }
          payload = kept.flat_map { |name, listing| [name, listing.ctime.to_s, listing.names[1...-1]] }.join("\0".b)
          batch.add(MEMO, NAME, [], payload, context_id, CONTEXT)
        end

        private

        def list(path, name, known)
          before = ctime(path)
          names = "/#{Dir.children(path).map(&:b).join("/")}/".b
          ctime = before if before < Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond) - Records::SETTLING
          return known if known && known.names == names && known.ctime == ctime

          @is_new = true
          if known && known.names == names
            known.ctime = ctime
            return known
          end

          @known[name] = Listing.new(names, ctime)
        end

        def ctime(path)
          quick = @quick&.ctime(path) and return quick

          time = File.ctime(path)
          (time.to_i * 1_000_000_000) + time.nsec
        end
      end
    end
  end
end
