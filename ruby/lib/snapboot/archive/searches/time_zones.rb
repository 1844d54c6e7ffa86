# frozen_string_literal: true

require_relative "../data/originals"

module Snapboot
  module Archive
    module Searches
      # The names of the time zones that the system has: TZInfo looks at each file below the directory of zones, unless the
      # gem tzinfo-data is there.
      module TimeZones
        METHODS = { "TZInfo::DataSources::ZoneinfoDataSource" => %i[enum_timezones] }.freeze

        class << self
          # Takes and returns nothing. Raises where TZInfo is not as known.
          def install
            type = ::TZInfo::DataSources::ZoneinfoDataSource
            method = type.instance_method(:load_timezone_identifiers)
            raise ArgumentError, "another TZInfo" unless method.arity.zero?

            @source = method.source_location.first
            @originals = Data::Originals.new(METHODS, @source)
            hook(type)
          end

          # The names of all zones below a directory (an absolute path), as the block finds them.
          def answer(directory)
            return yield unless Archive.enabled? && @originals.intact?

            found = nil
            trees = Trees.new(directory, [directory], "time zones 1", [@source])
            names = trees.answer(directory, exact: ->(all) { all.all?(&:frozen?) }) { found = yield }
            found || names.each(&:freeze)
          end

          private

          def hook(type)
            type.class_eval do
              alias_method :load_timezone_identifiers_by_search, :load_timezone_identifiers
              alias_method :load_timezone_identifiers, :load_timezone_identifiers # no warning that it is defined again
              def load_timezone_identifiers
                TimeZones.answer(@zoneinfo_dir) { load_timezone_identifiers_by_search }
              end
              private :load_timezone_identifiers, :load_timezone_identifiers_by_search
            end
          end
        end
      end
    end
  end
end
