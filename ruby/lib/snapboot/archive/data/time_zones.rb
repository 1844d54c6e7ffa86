# frozen_string_literal: true

require_relative "documents"
require_relative "../searches/trees"

module Snapboot
  module Archive
    module Data
      # The system's time zones as TZInfo reads them. Rails reads all of them in each production boot, and TZInfo computes
      # every change of the clocks for a hundred years.
      #
      # A stored zone is an Array: its offsets, each with the parts of OFFSET; then Strings with, of each transition, the
      # number of its offset, the number of the one before (both as characters), and the time (PACKED).
      module TimeZones
        METHODS = {
          "TZInfo::DataSources::ZoneinfoReader" => %i[
            parse derive_offsets apply_rules_without_transitions apply_rules_with_transitions
            validate_and_fix_last_defined_transition_offset
          ],
          "TZInfo::DataSources::PosixTimeZoneParser" => %i[parse parse_rule],
          "TZInfo::AnnualRules" => %i[transitions apply_rule],
          "TZInfo::TransitionRule" => %i[at],
          "TZInfo::TimezoneOffset" => %i[initialize ==],
          "TZInfo::TimezoneTransition" => %i[initialize local_end_at ==]
        }.freeze
        OFFSET = %i[base_utc_offset std_offset abbreviation].freeze
        # Seconds since 1970, in base64: a document has only text.
        PACKED = "q<*"

        class << self
          # Hooks TZInfo's reader. Takes and returns nothing. Raises if TZInfo has an unfamiliar form.
          def install
            reader = ::TZInfo::DataSources.const_get(:ZoneinfoReader)
            file, = reader.instance_method(:read).source_location
            return unless reader.instance_method(:read).parameters == [%i[req file_path]]

            @offset = ::TZInfo::TimezoneOffset
            @transition = ::TZInfo::TimezoneTransition
            @originals = Originals.new(METHODS, file.delete_suffix("/data_sources/zoneinfo_reader.rb"))
            code = METHODS.map { |owner, names| Object.const_get(owner).instance_method(names.first).source_location.first }
            @sources = Searches::Trees.sources(code)
            # It computes transitions up to a number of years after the current one.
            last = reader.const_get(:GENERATE_UP_TO) if reader.const_defined?(:GENERATE_UP_TO)
            @description = "time zones 1 #{Documents::RUNTIME} #{last}"
            hook(reader)
          end

          # Answers `reader.read(path)`; the block reads and computes.
          def read(reader, path)
            return yield unless Archive.enabled? && @originals.intact?

            zone = known = nil
            texts = reader.instance_variable_get(:@string_deduper)
            document = Documents.answer(path, @description, ->(_) { traits(zone, known, texts) }, @sources) do
              zone = yield
              known = Archive.attempt(path) { plain(zone) }
            end
            zone || Archive.attempt(path) { zone_of(document, texts) } || yield
          end

          private

          def hook(reader)
            Originals.hook(reader, :read, :read_by_parsing, <<~RUBY, __FILE__, __LINE__ + 1)
              def read(file_path)
                ::Snapboot::Archive::Data::TimeZones.read(self, file_path) { read_by_parsing(file_path) }
              end
            RUBY
          end

          # Returns what Writer needs to know of the document; nil if the same zone cannot be made again.
          def traits(zone, document, texts)
            { shared: false, date: :never } if document && zone_of(document, texts) == zone
          end

          # Returns the document of a zone, or nil.
          def plain(zone)
            return [parts(zone)] if zone.instance_of?(@offset)
            return unless zone.instance_of?(Array) && zone.all?(@transition)

            pairs = zone.map { |transition| [transition.offset, transition.previous_offset] }
            numbers = {}.compare_by_identity
            pairs.flatten.each { |offset| numbers[offset] ||= numbers.size }
            times = [zone.map(&:timestamp_value).pack(PACKED)].pack("m0").force_encoding(Encoding::UTF_8)
            texts = pairs.transpose.map { |offsets| offsets.map { |offset| numbers[offset] }.pack("U*") }
            [*numbers.keys.map { |offset| parts(offset) }, *texts, times]
          end

          def parts(offset)
            OFFSET.map { |name| offset.public_send(name) }
          end

          def zone_of(document, texts)
            offsets, columns = document.partition { |part| part.is_a?(Array) }
            offsets.map! { |base, std, name| @offset.new(base, std, texts.dedupe(+name)) }
            return offsets.first if columns.empty?

            numbers, numbers_before, times = columns
            before = numbers_before.unpack("U*")
            times = times.unpack1("m0").unpack(PACKED)
            numbers.unpack("U*").each_with_index.map do |number, index|
              @transition.new(offsets[number], offsets[before[index]], times[index])
            end
          end
        end
      end
    end
  end
end
