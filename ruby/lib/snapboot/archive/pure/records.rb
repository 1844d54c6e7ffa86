# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # The records and numbers of the format, as in docs/internals/archive-format.md; a test compares both.
      module Records
        VERSION = 1
        FIRST_SEGMENT = 4096
        ALIGNMENT = 16
        MAX_SEGMENTS = 8
        MAX_PAYLOAD = 1 << 30
        DEFAULT_BOUND = 256 << 20
        SETTLING = 20_000_000 # nanoseconds

        MAGIC = "\x89SNAPAR\n".b.freeze
        SEGMENT_MAGIC = "SEGM".b.freeze

        # How each record is packed, and its size (bytes).
        HEADER = "a8L<L<"
        HEADER_SIZE = 16
        SEGMENT_HEAD = "a4L<Q<Q<L<L<L<L<q<" # magic head_sum size index_offset slots index_sum entries reserved written
        SEGMENT_HEAD_SIZE = 48
        SLOT = "L<L<" # key_sum place
        SLOT_SIZE = 8
        ENTRY_HEAD = "L<9" # head_sum payload_sum key_size inputs inputs_size encoding payload_offset payload_size plain_size
        ENTRY_HEAD_SIZE = 36
        INPUT = "L<L<Q<q<q<a32" # kind name_size size mtime ctime digest
        INPUT_SIZE = 64

        PLAIN = 0 # the only readable encoding: Ruby's library has no Zstandard

        CONTEXT_KIND = 5
        KEY_PREFIX = 9 # bytes of a key before its name

        # Numbers of inputs.
        FILE = 1
        DIRECTORY = 2
        ABSENT = 3
        VARIABLE = 4
        UNSET = 5

        # Numbers of the kinds of names in a directory, for its digest.
        NAME_KINDS = { "file" => 1, "directory" => 2, "link" => 3 }.freeze
        OTHER_NAME = 4

        NO_DIGEST = ("\0" * 32).b.freeze

        # Rounds the size up to a multiple of ALIGNMENT.
        def self.aligned(size)
          (size + ALIGNMENT - 1) & -ALIGNMENT
        end
      end
    end
  end
end
