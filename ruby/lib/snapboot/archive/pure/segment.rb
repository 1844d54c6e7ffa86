# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # An entry in its written parts.
      Raw = Struct.new(:key, :inputs_count, :inputs_bytes, :encoding, :plain_size, :payload, :payload_sum) do
        # Returns an entry of an archive as it is; nil if its payload is damaged, or packed in its segment.
        def self.from_entry(entry)
          payload = entry.payload or return
          inputs = [entry.inputs_count, entry.inputs_bytes]
          new(entry.key, *inputs, entry.encoding, entry.plain_size, payload, entry.payload_sum)
        end

        # Its size in a file, index included (bytes).
        def size
          inner = Records.aligned(Records::ENTRY_HEAD_SIZE + key.bytesize + inputs_bytes.bytesize)
          Records.aligned(inner + payload.bytesize) + (4 * Records::SLOT_SIZE)
        end
      end

      # Builds segments.
      class SegmentBuilder
        def initialize(sums)
          @sums = sums
        end

        # The first page of an archive.
        def first_page
          fields = [Records::MAGIC, Records::VERSION].pack("a8L<")
          [Records::MAGIC, Records::VERSION, @sums.crc32(fields)].pack(Records::HEADER).ljust(Records::FIRST_SEGMENT, "\0")
        end

        # Returns a segment with these entries; of two with one key, only the later one.
        def build(raws)
          latest = raws.to_h { |raw| [raw.key, raw] }.values
          bytes = ("\0" * Records::SEGMENT_HEAD_SIZE).b
          things = latest.map do |raw|
            place = bytes.bytesize / Records::ALIGNMENT
            append(bytes, raw)
            [@sums.crc32(raw.key), place]
          end
          index_offset = bytes.bytesize
          index = index(things)
          bytes << index
          align(bytes)
          slots = index.bytesize / Records::SLOT_SIZE
          fields = [bytes.bytesize, index_offset, slots, @sums.crc32(index), things.size, 0, Time.now.to_i]
          rest = fields.pack(Records::SEGMENT_HEAD.delete_prefix("a4L<"))
          bytes[0, Records::SEGMENT_HEAD_SIZE] = [Records::SEGMENT_MAGIC, @sums.crc32(rest)].pack("a4L<") + rest
          bytes
        end

        private

        def append(bytes, raw)
          inner = Records::ENTRY_HEAD_SIZE + raw.key.bytesize + raw.inputs_bytes.bytesize
          fields = [
            raw.payload_sum, raw.key.bytesize, raw.inputs_count, raw.inputs_bytes.bytesize, raw.encoding,
            Records.aligned(inner), raw.payload.bytesize, raw.plain_size
          ]
          head = fields.pack("L<8") << raw.key << raw.inputs_bytes
          bytes << [@sums.crc32(head)].pack("L<") << head
          align(bytes)
          bytes << raw.payload
          align(bytes)
        end

        # Returns a table with room for twice as many items, each [checksum, place].
        def index(things)
          slots = 4
          slots *= 2 while slots < things.size * 2
          table = Array.new(slots)
          things.each do |sum, place|
            at = sum & (slots - 1)
            at = (at + 1) & (slots - 1) while table[at]
            table[at] = [sum, place]
          end
          table.map { |thing| (thing || [0, 0]).pack(Records::SLOT) }.join
        end

        def align(bytes)
          bytes << ("\0" * (-bytes.bytesize % Records::ALIGNMENT))
        end
      end
    end
  end
end
