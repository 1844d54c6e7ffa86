# frozen_string_literal: true

module Snapboot
  module Archive
    module Data
      # Looks for a tag in the first document of a YAML file, the only one that load_file reads.
      class Tags < ::Psych::Handler
        # Takes the file's path, returns whether there is a tag.
        def self.in?(path)
          catch(:answer) do
            ::File.open(path, "r:bom|utf-8") { |file| ::Psych::Parser.new(new).parse(file) }
            false
          end
        end

        def scalar(_value, _anchor, tag, *)
          throw :answer, true if tag
        end

        def start_sequence(_anchor, tag, *)
          throw :answer, true if tag
        end

        def start_mapping(_anchor, tag, *)
          throw :answer, true if tag
        end

        def end_document(*)
          throw :answer, false
        end
      end
    end
  end
end
