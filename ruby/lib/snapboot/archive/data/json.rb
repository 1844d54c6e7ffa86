# frozen_string_literal: true

require_relative "documents"

module Snapboot
  module Archive
    module Data
      # JSON's calls that load a file.
      module Json
        CALLS = %i[load_file load_file!].freeze
        PARAMETERS = [%i[req filespec], %i[opt opts]].freeze
        METHODS = {
          "JSON" => %i[parse parse!],
          "JSON::Parser" => %i[initialize parse convert_encoding parse_string parse_value parse_array parse_object]
        }.freeze
        OPTIONS = Options.new(switches: %i[symbolize_names freeze allow_nan])

        class << self
          # Hooks JSON's calls. Takes and returns nothing.
          def install
            @parser = ::JSON::Parser
            @originals = Originals.new(METHODS, ::JSON.method(:parse).source_location.first.delete_suffix("/common.rb"))
            @context = "json 1 #{Documents::RUNTIME} json #{::JSON::VERSION} #{@parser.name}"
            CALLS.each { |call| hook(call) if ::JSON.respond_to?(call) && ::JSON.method(call).parameters == PARAMETERS }
          end

          # Answers JSON.`call`(filename, options); the block parses.
          def load_file(call, filename, options, &parse)
            description = describe(call, options)
            description ? Documents.answer(filename, description, ->(path) { traits(path) }, &parse) : yield
          end

          private

          def hook(call)
            parsing = call.to_s.sub(/!?\z/, '_by_parsing\0')
            Originals.hook(::JSON.singleton_class, call, parsing, <<~RUBY, __FILE__, __LINE__ + 1)
              def #{call}(filespec, opts = {})
                ::Snapboot::Archive::Data::Json.load_file(:#{call}, filespec, opts) { #{parsing}(filespec, opts) }
              end
            RUBY
          end

          # Describes how the call parses; nil if it must be left to JSON. The encodings are those in which it reads a file.
          def describe(call, options)
            return unless Archive.enabled? && ::JSON::Parser.equal?(@parser) && @originals.intact? && options.is_a?(Hash)

            options = OPTIONS.describe(options)
            options && "#{@context} #{call}#{options} #{Encoding.default_external} #{Encoding.default_internal}"
          rescue StandardError # only the main Ractor may read all this
            nil
          end

          # JSON never yields one object in two places, or a date.
          def traits(_path)
            { shared: false, date: :never }
          end
        end
      end
    end
  end
end
