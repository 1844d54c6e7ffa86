# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # Distinguishes states of a file or directory without reading it: a frozen String that packs whether it is a directory,
      # size (0 for a directory), mtime and ctime (nanoseconds since 1970), and whether it has settled.
      module Identity
        PACKED = "CQ<q<q<C"
        SAME = 25 # bytes that distinguish states
        private_constant :PACKED, :SAME

        class << self
          # Returns the identity at the path, through links; nil if there is neither a file nor a directory.
          def read(path)
            pack(File.stat(path))
          rescue SystemCallError, ArgumentError
            nil
          end

          # Whether nothing exists at the path, for sure.
          def absent?(path)
            File.stat(path)
            false
          rescue Errno::ENOENT, Errno::ENOTDIR
            true
          rescue SystemCallError
            false
          end

          # Returns the identity in a File::Stat.
          def pack(stat)
            directory = stat.directory?
            return unless directory || stat.file?

            changed = nanoseconds(stat.ctime)
            # Every change sets ctime, which no program can choose.
            settled = changed < Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond) - Records::SETTLING
            fields = [directory ? 1 : 0, directory ? 0 : stat.size, nanoseconds(stat.mtime), changed, settled ? 1 : 0]
            fields.pack(PACKED).freeze
          end

          # [directory?, size, mtime, ctime] of an identity.
          def unpack(identity)
            directory, *rest = identity.unpack(PACKED)
            [directory == 1, *rest[0, 3]]
          end

          # Whether any later change will show.
          def settled?(identity)
            identity.getbyte(-1) == 1
          end

          # Whether both are of the same state.
          def same?(one, other)
            one.byteslice(0, SAME) == other.byteslice(0, SAME)
          end

          private

          def nanoseconds(time)
            (time.to_i * 1_000_000_000) + time.nsec
          end
        end
      end

      # The content of a file or directory: its identity and digest, or nil if it changed meanwhile or cannot be read.
      module Content
        class << self
          def read(path, sums)
            before = Identity.read(path) or return
            digest = sums.sha256(before.getbyte(0) == 1 ? listing(path) : File.binread(path))
            after = Identity.read(path)
            [before, digest] if after && Identity.same?(before, after)
          rescue SystemCallError, IOError
            nil
          end

          private

          # The digest of a directory's content (docs/internals/archive-format.md).
          def listing(path)
            Dir.children(path).map(&:b).sort.each_with_object(+"".b) do |name, listing|
              full = "#{path.b}/#{name}".force_encoding(Encoding::UTF_8)
              kind = Records::NAME_KINDS.fetch(File.ftype(full), Records::OTHER_NAME)
              listing << kind << name << 0
              listing << File.readlink(full).b << 0 if kind == Records::NAME_KINDS["link"]
            end
          end
        end
      end
    end
  end
end
