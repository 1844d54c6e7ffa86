# frozen_string_literal: true

module Snapboot
  module Archive
    # Parsed data files, those of time zones among them. Once a library that parses them is loaded, its calls that name a
    # file are answered from the archive, with the objects that parsing would have returned. Calls that name none
    # (YAML.load(File.read(path))) are left alone.
    #
    # To add a format: a file like data/yaml.rb and data/json.rb, which defines the hooked calls, their options (Options),
    # the methods that must be unmodified (Originals), and in its context the library's version; its library in .install
    # here; a class of object that the format creates and Writer does not know, in Writer, Literal and Notation, and in
    # crates/archive-ruby document.rs, which reads Notation. Cases go into tests/archive/data.
    module Data
      # Hooks each library right after it was loaded, and loads none. Takes and returns nothing.
      def self.install
        after_load("psych.rb") do
          require_relative "data/yaml"
          Yaml.install
        end
        after_load("zoneinfo_reader.rb") do
          require_relative "data/time_zones"
          TimeZones.install
        end
        # The hooks for every Ruby stand above. The parsers of CRuby (in C) and JRuby (in Java) are as fast as any
        # replacement.
        return unless RUBY_ENGINE == "truffleruby"

        after_load("json.rb") do
          require_relative "data/json"
          Json.install
        end
      end

      # An unfamiliar version of a library is left alone, silently.
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
