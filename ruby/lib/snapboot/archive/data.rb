# frozen_string_literal: true

module Snapboot
  module Archive
    # Parsed data files. When a library that parses them has been loaded, its calls that name a file are answered from the
    # archive, with the objects that parsing would have given. What names none (YAML.load(File.read(path))) is left alone.
    #
    # To add a format: a file like data/yaml.rb and data/json.rb, which says which calls are hooked, what they may be given
    # (Options), whose methods have to be the original ones (Originals), and in its context the library's version; its
    # library in .install here; a class of object that the format makes and Writer does not know, in Writer, Literal and
    # Notation, and in crates/archive-ruby document.rs, which reads Notation. Cases go into tests/archive/data.
    module Data
      # Hooks each library right after it was loaded, and loads none. Takes nothing, returns nothing.
      def self.install
        after_load("psych.rb") do
          require_relative "data/yaml"
          Yaml.install
        end
        # What is hooked on every Ruby stands above. The parsers of CRuby (in C) and JRuby (in Java) are as fast as anything
        # that could take their place.
        return unless RUBY_ENGINE == "truffleruby"

        after_load("json.rb") do
          require_relative "data/json"
          Json.install
        end
      end

      # A library that is not as expected is left alone, and its user hears nothing of it.
      def self.after_load(name)
        Archive.after_load(name) do
          yield
        rescue StandardError, ScriptError => e
          Archive.log("#{name}: left alone: #{e.message} (#{e.class})")
        end
      end
      private_class_method :after_load
    end
  end
end
