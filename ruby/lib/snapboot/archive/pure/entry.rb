# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # One entry of an archive, whose head, key and inputs have correct checksums.
      class Entry
        # One input: its kind, bytes (of a file or a value), mtime, ctime, digest and name (empty: the path in the key).
        Row = Struct.new(:kind, :bytes, :mtime, :ctime, :digest, :name)

        # Bytes of the key, and of the inputs as they lie in the file.
        attr_reader :key, :inputs_bytes, :inputs_count, :encoding, :plain_size, :payload_sum

        # The entry that starts at `start` of a window and ends before `limit`; nil when it is damaged.
        def self.read(window, start, limit)
          head = window.bytes(start, Records::ENTRY_HEAD_SIZE) or return
          fields = head.unpack(Records::ENTRY_HEAD)
          head_sum, _, key_size, inputs, inputs_size, _, payload, payload_size, plain_size = fields
          inner = Records::ENTRY_HEAD_SIZE + key_size + inputs_size
          return if inner > payload || payload % Records::ALIGNMENT != 0 || plain_size > Records::MAX_PAYLOAD
          return if start + payload + payload_size > limit || key_size < Records::KEY_PREFIX
          return if inputs * Records::INPUT_SIZE > inputs_size || window.crc32(start + 4, inner - 4) != head_sum

          new(window, start, fields)
        end

        def initialize(window, start, fields)
          _, @payload_sum, key_size, @inputs_count, inputs_size, @encoding, payload, @payload_size, @plain_size = fields
          @window = window
          bytes = window.bytes(start + Records::ENTRY_HEAD_SIZE, key_size + inputs_size)
          @key = bytes.byteslice(0, key_size)
          @inputs_bytes = bytes.byteslice(key_size, inputs_size)
          @payload_start = start + payload
        end

        # The name in the key.
        def name
          @key.byteslice(Records::KEY_PREFIX..)
        end

        # The name of one of its inputs: its own, or the path in the key.
        def name_of(row)
          row.name.empty? ? name : row.name
        end

        # The inputs as an Array of Row; nil when their sizes contradict each other.
        def rows
          at = @inputs_count * Records::INPUT_SIZE
          rows = Array.new(@inputs_count) do |number|
            kind, name_size, size, mtime, ctime, digest =
              @inputs_bytes.byteslice(number * Records::INPUT_SIZE, Records::INPUT_SIZE).unpack(Records::INPUT)
            name = @inputs_bytes.byteslice(at, name_size)
            at += name_size
            Row.new(kind, size, mtime, ctime, digest, name)
          end
          rows if at == @inputs_bytes.bytesize
        end

        # The payload as it is stored, or nil when it is damaged. Each call computes the checksum.
        def stored
          return unless @window.crc32(@payload_start, @payload_size) == @payload_sum

          @window.bytes(@payload_start, @payload_size)
        end

        # The payload, or nil when it is damaged or in a form that cannot be read here.
        def payload
          stored&.freeze if @encoding == Records::PLAIN && @plain_size == @payload_size
        end
      end
    end
  end
end
