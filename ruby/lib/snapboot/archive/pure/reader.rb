# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # Why an archive cannot be used, for people.
      class Unusable < StandardError; end

      # Parts of an open archive: bytes below its end never change.
      class Window
        # Bytes in the file when it was opened.
        attr_reader :size

        def initialize(file, sums)
          @file = file
          @sums = sums
          @size = file.size
          @beside = sums.of_file(file)
        end

        # Returns `size` bytes from `offset` on; nil if the file ends before.
        def bytes(offset, size)
          return if offset + size > @size
          return +"".b if size.zero?

          bytes = @file.pread(size, offset)
          bytes if bytes.bytesize == size
        rescue EOFError
          nil
        end

        # Returns the checksum of `size` bytes from `offset` on; nil if the file ends before.
        def crc32(offset, size)
          return if offset + size > @size
          return 0 if size.zero?
          return @beside.crc32(offset, size) if @beside

          part = bytes(offset, size)
          part && @sums.crc32(part)
        end
      end

      # An archive as of its opening.
      class Reader
        # A segment: where it starts, its bytes, its index (bytes; nil when that is damaged), and where the index starts.
        Segment = Struct.new(:start, :bytes, :index, :index_start) do
          # The offsets at which entries with this checksum may start, in the order of the search.
          def places(sum)
            slots = index.bytesize / Records::SLOT_SIZE
            found = []
            slots.times do |step|
              at = ((sum + step) & (slots - 1)) * Records::SLOT_SIZE
              key_sum, place = index.byteslice(at, Records::SLOT_SIZE).unpack(Records::SLOT)
              return found if place.zero?

              found << offset(place) if key_sum == sum
            end
            found
          end

          # The offsets at which all entries start, in order.
          def all_places
            index.unpack("L<*").each_slice(2).map(&:last).reject(&:zero?).sort.map { |place| offset(place) }
          end

          private

          def offset(place)
            start + (place * Records::ALIGNMENT)
          end
        end

        # Flags for opening: a pipe does not block, and a link is not followed (if Ruby can request that).
        FLAGS = File::NONBLOCK | (File.const_defined?(:NOFOLLOW) ? File::NOFOLLOW : 0)
        TRIES = 20 # to open a file that others keep replacing

        class << self
          # Opens the archive at that path; nil if there is none. Raises Unusable.
          def open(path, sums)
            file = open_file(path, File::RDONLY)
            reader = new(file, sums)
            case reader.kind
            when :archive then reader
            when :other then raise Unusable, "#{path} is no boot archive: remove it, or name another in SNAPBOOT_ARCHIVE"
            end
          rescue Errno::ENOENT, Errno::ENOTDIR
            nil
          end

          # Opens the file of an archive, and checks its type and owner. Raises Unusable, and ENOENT and ENOTDIR if there is
          # none (EEXIST if there must be none).
          def open_file(path, flags, tries = TRIES)
            file = File.open(path, flags | FLAGS, 0o600)
            file.binmode
            check(path, file.stat)
            return file if there?(path, file.stat)

            # A link was followed; or a writer has just replaced the file, and the new one should be opened.
            raise Unusable, "#{path} is not a regular file" unless File.lstat(path).file?
            raise Unusable, "#{path} keeps being replaced" unless tries.positive?

            file.close
            open_file(path, flags, tries - 1)
          rescue Errno::ENOENT, Errno::ENOTDIR, Errno::EEXIST
            raise
          rescue SystemCallError => e
            raise Unusable, "#{path} cannot be opened: #{e.message}"
          rescue Unusable
            file.close
            raise
          end

          # Whether the path still leads to this open file.
          def there?(path, stat)
            there = File.lstat(path)
            there.ino == stat.ino && there.dev == stat.dev
          rescue SystemCallError
            false
          end

          private

          def check(path, stat)
            raise Unusable, "#{path} is not a regular file" unless stat.file?
            raise Unusable, "#{path} belongs to user #{stat.uid}" unless [0, Process.euid].include?(stat.uid)
            raise Unusable, "#{path} can be written by others (#{stat.mode.to_s(8)}): chmod 600" if stat.mode.anybits?(0o022)
          end
        end

        # Where the chain of segments ends, and their number.
        attr_reader :chain_end, :segments

        def initialize(file, sums)
          @file = file # kept open for the window
          @sums = sums
          @window = Window.new(file, sums)
          @segments = []
          @chain_end = Records::FIRST_SEGMENT
          while (segment = read_segment(@chain_end))
            @segments << segment
            @chain_end += segment.bytes
          end
        end

        # Returns the type of the file: :archive, :version (of another version), :nothing (empty), :damaged or :other.
        def kind
          return :nothing if @window.size.zero?

          magic, version, sum = @window.bytes(0, Records::HEADER_SIZE)&.unpack(Records::HEADER)
          if magic == Records::MAGIC && @window.crc32(0, Records::HEADER_SIZE - 4) == sum
            return version == Records::VERSION ? :archive : :version
          end

          magic == Records::MAGIC || @segments.any? ? :damaged : :other
        end

        # Bytes in the file when it was opened.
        def size
          @window.size
        end

        # Whether the file consists of whole segments up to its end.
        def whole?
          @chain_end == size && @segments.all?(&:index)
        end

        # The newest entry of a key, or nil.
        def find(key)
          sum = @sums.crc32(key)
          @segments.reverse_each do |segment|
            next unless segment.index

            segment.places(sum).each do |place|
              entry = Entry.read(@window, place, segment.index_start)
              return entry if entry.nil? || entry.key == key # the damaged one may have been the newest
            end
          end
          nil
        end

        # The newest whole entry of each key, oldest first.
        def live
          newest = {}
          @segments.each do |segment|
            next unless segment.index

            segment.all_places.each do |place|
              entry = Entry.read(@window, place, segment.index_start) or next
              newest.delete(entry.key)
              newest[entry.key] = entry
            end
          end
          newest.values
        end

        private

        def read_segment(start)
          head = @window.bytes(start, Records::SEGMENT_HEAD_SIZE) or return
          magic, head_sum, size, index_offset, slots, index_sum, = head.unpack(Records::SEGMENT_HEAD)
          return unless magic == Records::SEGMENT_MAGIC && @sums.crc32(head.byteslice(8..)) == head_sum
          return if start + size > @window.size || size % Records::ALIGNMENT != 0
          return unless index_offset.between?(head.bytesize, size)

          possible = slots.positive? && slots.nobits?(slots - 1) && index_offset + (slots * Records::SLOT_SIZE) <= size
          index = @window.bytes(start + index_offset, slots * Records::SLOT_SIZE) if possible
          index = nil unless index && @window.crc32(start + index_offset, index.bytesize) == index_sum
          Segment.new(start, size, index, start + index_offset)
        end
      end
    end
  end
end
