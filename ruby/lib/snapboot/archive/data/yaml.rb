# frozen_string_literal: true

require_relative "documents"

module Snapboot
  module Archive
    module Data
      # Psych's calls that load a file. A document without tags is stored: then Psych itself made all of its objects.
      module Yaml
        CALLS = %i[load_file safe_load_file unsafe_load_file].freeze
        PARAMETERS = [%i[req filename], %i[keyrest kwargs]].freeze
        METHODS = {
          "Psych" => %i[load safe_load unsafe_load parse parse_stream],
          "Psych::Parser" => %i[parse],
          "Psych::TreeBuilder" => %i[scalar start_sequence start_mapping],
          "Psych::Nodes::Node" => %i[to_ruby],
          "Psych::Visitors::ToRuby" => %i[
            accept deserialize register revive_hash
            visit_Psych_Nodes_Scalar visit_Psych_Nodes_Sequence visit_Psych_Nodes_Mapping visit_Psych_Nodes_Alias
          ],
          "Psych::Visitors::NoAliasRuby" => %i[visit_Psych_Nodes_Alias],
          "Psych::ScalarScanner" => %i[tokenize parse_int parse_time],
          "Psych::ClassLoader" => %i[load symbolize find],
          "Psych::ClassLoader::Restricted" => %i[symbolize find]
        }.freeze
        OPTIONS = Options.new(
          switches: %i[symbolize_names freeze aliases fallback strict_integer],
          lists: %i[permitted_classes permitted_symbols],
          ignored: %i[filename]
        )
        # A possible beginning of a tag. Other matches do no harm: the parser then decides.
        TAG = /(?:\A|[\s\[\]{},:?"'\x00\x80-\xff-])!/n

        class << self
          # Hooks Psych's calls. Takes and returns nothing.
          def install
            @originals = Originals.new(METHODS, ::Psych.method(:parse).source_location.first.delete_suffix(".rb"))
            @context = "yaml 1 #{Documents::RUNTIME} psych #{::Psych::VERSION} #{::Psych::LIBYAML_VERSION}"
            CALLS.each do |call|
              hook(call) if ::Psych.respond_to?(call) && ::Psych.method(call).parameters == PARAMETERS
            end
          end

          # Answers Psych.`call`(filename, **options); the block parses.
          def load_file(call, filename, options, &parse)
            description = describe(call, options)
            return yield unless description

            date = defined?(::Date) ? :unknown : :never
            Documents.answer(filename, description, ->(path) { traits(path, date) }, &parse)
          end

          private

          def hook(call)
            Originals.hook(::Psych.singleton_class, call, :"#{call}_by_parsing", <<~RUBY, __FILE__, __LINE__ + 1)
              def #{call}(filename, **kwargs)
                ::Snapboot::Archive::Data::Yaml.load_file(:#{call}, filename, kwargs) { #{call}_by_parsing(filename, **kwargs) }
              end
            RUBY
          end

          # Describes how the call parses; nil if it must be left to Psych.
          def describe(call, options)
            internal = Encoding.default_internal # Psych converts strings to it
            return unless Archive.enabled? && (internal.nil? || internal == Encoding::UTF_8) && @originals.intact?

            options = OPTIONS.describe(options)
            options && "#{@context} #{call}#{options}"
          rescue StandardError # only the main Ractor may read all this
            nil
          end

          # Returns what Writer needs to know of the document, or nil. `date`: the value that does not depend on the
          # document.
          def traits(path, date)
            bytes = ::File.binread(path)
            return if bytes.include?("!") && bytes.match?(TAG) && tagged?(path)

            date = :loaded if date == :never && defined?(::Date)
            { shared: bytes.include?("*"), date: date }
          end

          def tagged?(path)
            require_relative "tags"
            Tags.in?(path)
          end
        end
      end
    end
  end
end
