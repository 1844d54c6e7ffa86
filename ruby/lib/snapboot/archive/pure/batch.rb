# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # Entries to be appended: the newest of each key.
      class Batch
        # Numbers of the inputs of Snapboot::Archive.
        GIVEN_FILE = 0
        GIVEN_DIRECTORY = 1
        GIVEN_ABSENT = 2
        private_constant :GIVEN_FILE, :GIVEN_DIRECTORY, :GIVEN_ABSENT

        # After this many seconds, the next entry makes the queue be written. Doubled each time, since each write adds a
        # segment.
        LONGEST = 4
        private_constant :LONGEST

        def initialize(root, sums)
          @root = root
          @sums = sums
          @longest = LONGEST
          @contexts = {}
          @items = {}
          @lock = Mutex.new
        end

        # Queues an entry: number of its kind, name, inputs as rows of Snapboot::Archive.store, payload, and the context's id
        # and description. Leaves out entries with inputs that have not settled.
        def add(kind, name, inputs, payload, context_id, context)
          return if payload.bytesize > Records::MAX_PAYLOAD
          return unless inputs.all? { |number, _, identity| number > GIVEN_DIRECTORY || settled?(identity) }

          key = [kind].pack("C") << context_id << @root.name(name)
          rows = inputs.map { |row| row.map { |part| part.is_a?(String) ? part.dup.freeze : part } }
          @lock.synchronize do
            @contexts[context_id] = context
            @first ||= now
            @items[key] = [key, name.b, rows, payload.b]
          end
        end

        # Queues an entry once more whose inputs differ only in their times.
        def again(entry)
          @lock.synchronize { @items[entry.key] = entry }
        end

        # Whether it is time to write the queue: true once.
        def due?
          return false unless @first && now - @first > @longest

          @longest *= 2
          true
        end

        # Whether nothing is queued.
        def empty?
          @items.empty?
        end

        # Takes the queue: an Array of Raw with the digests of their inputs, without those whose inputs have changed.
        def take
          items, contexts = @lock.synchronize do
            [@items.values, @contexts].tap do
              @first = nil
              @items = {}
              @contexts = {}
            end
          end
          entries = [context_entry([Records::CONTEXT_KIND].pack("C") << ("\0" * 8) << "root", @root.path)]
          entries += contexts.map { |id, text| context_entry([Records::CONTEXT_KIND].pack("C") << id, text) }
          entries + items.map { |item| item.is_a?(Entry) ? raw_again(item) : raw(*item) }.compact
        end

        private

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        def settled?(identity)
          identity && Identity.settled?(identity)
        end

        def context_entry(key, text)
          raw_of(key, [], text.b)
        end

        def raw(key, name, inputs, payload)
          rows = inputs.map { |input| row(input, name) || (return nil) }
          raw_of(key, rows, payload)
        end

        def raw_again(entry)
          payload = entry.stored or return
          rows = entry.rows or return
          rows.each { |row| renew(row, entry) || (return nil) if row.kind <= Records::DIRECTORY }
          Raw.new(entry.key, rows.size, pack(rows), entry.encoding, entry.plain_size, payload, entry.payload_sum)
        end

        def raw_of(key, rows, payload)
          Raw.new(key, rows.size, pack(rows), Records::PLAIN, payload.bytesize, payload, @sums.crc32(payload))
        end

        # Returns the row of an input; nil if its state differs from what the maker saw.
        def row(input, name)
          number, path, rest = input
          case number
          when GIVEN_FILE, GIVEN_DIRECTORY
            identity, digest = Content.read(path, @sums)
            file_row(identity, digest, input_name(path, name)) if identity && Identity.same?(identity, rest)
          when GIVEN_ABSENT then Entry::Row.new(Records::ABSENT, 0, 0, 0, Records::NO_DIGEST, input_name(path, name))
          else variable_row(path.b, rest&.b)
          end
        end

        def variable_row(name, value)
          return Entry::Row.new(Records::UNSET, 0, 0, 0, Records::NO_DIGEST, name) unless value

          Entry::Row.new(Records::VARIABLE, value.bytesize, 0, 0, @sums.sha256(value), name)
        end

        def file_row(identity, digest, name)
          directory, size, mtime, ctime = Identity.unpack(identity)
          Entry::Row.new(directory ? Records::DIRECTORY : Records::FILE, size, mtime, ctime, digest, name)
        end

        # Updates the times of a row. Returns whether the rest is unchanged.
        def renew(row, entry)
          identity, digest = Content.read(@root.join(entry.name_of(row)), @sums)
          return unless identity && Identity.settled?(identity) && digest == row.digest

          directory, _, row.mtime, row.ctime = Identity.unpack(identity)
          directory == (row.kind == Records::DIRECTORY)
        end

        def input_name(path, name)
          path.b == name ? "".b : @root.name(path)
        end

        def pack(rows)
          fields = rows.map do |row|
            [row.kind, row.name.bytesize, row.bytes, row.mtime, row.ctime, row.digest].pack(Records::INPUT)
          end
          (fields + rows.map(&:name)).join.b
        end
      end
    end
  end
end
