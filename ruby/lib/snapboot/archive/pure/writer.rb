# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # Adds to an archive: one writer at a time, at the end of the file, the head of the new segment last; or replaces it
      # with a new file.
      class Writer
        PATIENCE = 1.0 # seconds to wait for another writer
        PAUSE = 0.002

        # root: a Root; bound: the file's maximum size in bytes.
        def initialize(path, root, sums, bound)
          @path = path
          @root = root
          @sums = sums
          @bound = bound
          @builder = SegmentBuilder.new(sums)
        end

        # Appends these Raws; creates the archive, and its parent directories, if there is none. Raises Unusable and
        # SystemCallError; then the archive is unchanged, or still absent.
        def append(raws)
          file, made = locked_file
          size = file.size
          return replace(file, [], raws) if size.zero?

          reader = Reader.new(file, @sums)
          case reader.kind
          when :version then replace(file, [], raws)
          when :damaged then replace(file, reader.live, raws)
          when :archive then append_to(file, reader, raws)
          else raise Unusable, "#{@path} is no boot archive"
          end
        rescue Unusable, SystemCallError
          delete(@path) if made && file.size.zero? && Reader.there?(@path, file.stat)
          raise
        ensure
          # Closing it does not unlock it while a child forked meanwhile also has it open.
          file&.flock(File::LOCK_UN)
          file&.close
        end

        private

        def append_to(file, reader, raws)
          raws = raws.reject { |raw| stored?(reader, raw) }
          return if raws.empty? && reader.whole? && reader.size <= @bound

          added = raws.sum(&:size)
          too_large = reader.size + added + Records::SEGMENT_HEAD_SIZE > @bound
          live = reader.live
          return replace(file, live, raws) if too_large || !reader.whole?
          return if crowded?(reader, live, raws, added) && replaced?(file, live, raws)

          write_behind(file, reader.size, @builder.build(raws))
        end

        # Whether the archive should be rewritten: it has many segments, or a third of it is superseded. Payloads that CRuby
        # has packed would be lost then, so CRuby has to do it.
        def crowded?(reader, live, raws, added)
          return false unless live.all? { |entry| entry.encoding == Records::PLAIN }
          return true if reader.segments.size >= Records::MAX_SEGMENTS

          new = raws.to_h { |raw| [raw.key, true] }
          kept = live.reject { |entry| new.key?(entry.key) }.map { |entry| Raw.from_entry(entry) }.compact
          (added + kept.sum(&:size)) * 3 < (reader.size - Records::FIRST_SEGMENT + added) * 2
        end

        # Tries to rewrite the archive; false if no file can be created in its directory.
        def replaced?(file, live, raws)
          replace(file, live, raws)
          true
        rescue SystemCallError
          false
        end

        def stored?(reader, raw)
          entry = reader.find(raw.key)
          entry && entry.inputs_bytes == raw.inputs_bytes && entry.encoding == raw.encoding && entry.stored == raw.payload
        end

        def write_behind(file, size, segment)
          check_limit(size + segment.bytesize)
          head = segment.byteslice(0, Records::SEGMENT_HEAD_SIZE)
          # After a failure the rest stays behind the end until the next writer repairs it: others may have mapped it.
          write_at(file, segment.byteslice(head.bytesize..), size + head.bytesize)
          write_at(file, head, size)
        end

        def write_at(file, bytes, offset)
          until bytes.empty?
            written = file.pwrite(bytes, offset)
            offset += written
            bytes = bytes.byteslice(written..)
          end
        end

        # Replaces the file with a new one that has the live entries, oldest first, followed by new ones.
        def replace(file, live, raws)
          new = raws.to_h { |raw| [raw.key, true] }
          live = live.reject { |entry| new.key?(entry.key) }
          segment = @builder.build(Bound.new(@root, @bound).fit(live, raws))
          check_limit(Records::FIRST_SEGMENT + segment.bytesize)
          beside = "#{@path}.new"
          delete_left_over(beside)
          begin
            write_new(beside, segment, synchronise: file.size.positive?)
            File.rename(beside, @path)
          rescue SystemCallError
            delete(beside)
            raise
          end
        end

        def write_new(path, segment, synchronise:)
          File.open(path, File::WRONLY | File::CREAT | File::EXCL, 0o600) do |new|
            new.binmode
            new.write(@builder.first_page, segment)
            new.flush
            new.fsync if synchronise
          end
        end

        # Deletes the file of a killed writer: only the holder of the lock gets here. A file of any other kind is not ours to
        # delete.
        def delete_left_over(path)
          File.open(path, File::RDONLY | Reader::FLAGS) do |file|
            file.binmode
            other = !file.stat.file? || Reader.new(file, @sums).kind == :other
            raise Unusable, "#{path} should be a boot archive, but is another file: move it away" if other
          end
          delete(path)
        rescue Errno::ENOENT
          nil
        end

        def delete(path)
          File.delete(path)
        rescue Errno::ENOENT
          nil
        end

        # Returns the file, open for writing and locked; and whether it was created here.
        def locked_file
          deadline = now + PATIENCE
          loop do
            file, made = create
            until file.flock(File::LOCK_EX | File::LOCK_NB)
              raise Unusable, "#{@path} is being written by another process" if now > deadline

              sleep(PAUSE)
            end
            return file, made if Reader.there?(@path, file.stat)

            # Another writer has replaced the file meanwhile.
            file.close
            raise Unusable, "#{@path} keeps being replaced" if now > deadline
          end
        end

        def create
          [Reader.open_file(@path, File::RDWR), false]
        rescue Errno::ENOENT
          make
        end

        def make
          [Reader.open_file(@path, File::RDWR | File::CREAT | File::EXCL), true]
        rescue Errno::ENOENT
          folder = File.dirname(@path)
          # Private where it is Snapboot's own; an application's tmp/cache is for others, too.
          make_directory(folder, folder.end_with?("/snapboot/archives") ? 0o700 : 0o777)
          retry
        rescue Errno::EEXIST
          [Reader.open_file(@path, File::RDWR | File::CREAT), false]
        end

        def make_directory(path, mode)
          Dir.mkdir(path, mode)
        rescue Errno::ENOENT
          make_directory(File.dirname(path), mode)
          retry
        rescue Errno::EEXIST
          nil
        end

        # Writing beyond the limit would raise a signal that ends the process.
        def check_limit(size)
          limit, = Process.getrlimit(Process::RLIMIT_FSIZE)
          return if limit.negative? || (limit.zero? && RUBY_ENGINE == "jruby") # none, or unknown

          raise Unusable, "#{@path} would be larger than files may be (#{limit} bytes)" if size > limit
        end

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end

      # Chooses the entries that stay in an archive with a bound.
      class Bound
        def initialize(root, bound)
          @root = root
          @bound = bound
        end

        # Returns the Raws of a new file: of live entries (oldest first) and new Raws. Beyond the bound, those with a missing
        # input are dropped first, then the oldest, until a quarter of the bound is free.
        def fit(live, new)
          room = @bound - Records::FIRST_SEGMENT - Records::SEGMENT_HEAD_SIZE
          kept = raws(live) + new
          kept = raws(live.reject { |entry| gone?(entry) }) + new if kept.sum(&:size) > room
          kept = youngest(kept, room - (room / 4)) if kept.sum(&:size) > room
          without_unused_contexts(kept)
        end

        private

        def raws(entries)
          entries.map { |entry| Raw.from_entry(entry) }.compact
        end

        def youngest(raws, room)
          contexts, others = raws.partition { |raw| context?(raw) }
          room -= contexts.sum(&:size)
          contexts + others.reverse.take_while { |raw| (room -= raw.size) >= 0 }.reverse
        end

        def without_unused_contexts(raws)
          used = raws.reject { |raw| context?(raw) }.to_h { |raw| [raw.key.byteslice(1, 8), true] }
          raws.select do |raw|
            !context?(raw) || raw.key.bytesize > Records::KEY_PREFIX || used.key?(raw.key.byteslice(1, 8))
          end
        end

        def context?(raw)
          raw.key.getbyte(0) == Records::CONTEXT_KIND
        end

        def gone?(entry)
          (entry.rows || []).any? do |row|
            row.kind <= Records::DIRECTORY && Identity.absent?(@root.join(entry.name_of(row)))
          end
        end
      end
    end
  end
end
