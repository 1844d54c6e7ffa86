# frozen_string_literal: true

require_relative "trees"
require_relative "../originals"

module Snapboot
  module Archive
    module Searches
      # The names of the system's time zones: TZInfo looks at each file below the directory of zones, unless the gem
      # tzinfo-data is installed.
      module TimeZones
        METHODS = { "TZInfo::DataSources::ZoneinfoDataSource" => %i[enum_timezones] }.freeze

        class << self
          # Takes and returns nothing. Raises if TZInfo has an unfamiliar form.
          def install
            @type = ::TZInfo::DataSources::ZoneinfoDataSource
            search = @type.instance_method(:load_timezone_identifiers)
            return unless search.arity.zero?

            file, = search.source_location
            @sources = Trees.sources([file])
            @originals = Originals.new(METHODS, file)
            hook
          end

          # Returns the names of all zones below a directory (an absolute path) for a data source, as the block finds them.
          def answer(source, directory)
            return yield unless ordinary_search?(source, directory)

            found = nil
            trees = Trees.new(directory, [directory], links: true, context: context, sources: @sources)
            names = trees.answer(directory, exact: ->(all) { all.all?(&:frozen?) }) { found = yield }
            found || names.each(&:freeze)
          end

          private

          def ordinary_search?(source, directory)
            Archive.enabled? && source.instance_of?(@type) && directory.instance_of?(String) && directory.start_with?("/") &&
              @originals.intact?
          end

          def context
            excluded = @type.const_get(:EXCLUDED_FILENAMES).inspect if @type.const_defined?(:EXCLUDED_FILENAMES)
            "time zones 1 #{excluded}"
          end

          def hook
            names = %i[load_timezone_identifiers load_timezone_identifiers_by_search]
            Originals.hook(@type, *names, <<~RUBY, __FILE__, __LINE__ + 1)
              def load_timezone_identifiers
                ::Snapboot::Archive::Searches::TimeZones.answer(self, @zoneinfo_dir) { load_timezone_identifiers_by_search }
              end
            RUBY
          end
        end
      end
    end
  end
end
