# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # Whether the inputs of an entry are unchanged: :fresh, :revalidated or :stale.
      class Freshness
        # policy: :check, :content or :trust; root: a Root.
        def initialize(policy, root, sums)
          @policy = policy
          @root = root
          @sums = sums
        end

        # `whole`: whether all of the archive could be read; otherwise a newer entry may be hidden.
        def check(entry, whole)
          rows = entry.rows or return :stale
          policy = @policy == :trust && !whole ? :check : @policy
          rows.reduce(:fresh) do |all, row|
            case row_freshness(row, entry, policy)
            when :stale then return :stale
            when :revalidated then :revalidated
            else all
            end
          end
        end

        private

        def row_freshness(row, entry, policy)
          case row.kind
          when Records::FILE, Records::DIRECTORY then policy == :trust ? :fresh : file(row, path(row, entry), policy)
          when Records::ABSENT then fresh_if(policy == :trust || Identity.absent?(path(row, entry)))
          when Records::VARIABLE
            value = ENV.fetch(row.name, nil)&.b
            fresh_if(value && value.bytesize == row.bytes && @sums.sha256(value) == row.digest)
          when Records::UNSET then fresh_if(!ENV.key?(row.name))
          else :stale
          end
        end

        def file(row, path, policy)
          identity = Identity.read(path) or return :stale
          is_directory, size, mtime, ctime = Identity.unpack(identity)
          return :stale if is_directory != (row.kind == Records::DIRECTORY) || size != row.bytes

          same = mtime == row.mtime && ctime == row.ctime
          return :fresh if same && policy == :check

          _, digest = Content.read(path, @sums)
          return :stale unless digest == row.digest

          same ? :fresh : :revalidated
        end

        def path(row, entry)
          @root.join(entry.name_of(row))
        end

        def fresh_if(answer)
          answer ? :fresh : :stale
        end
      end
    end
  end
end
