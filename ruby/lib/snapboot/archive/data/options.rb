# frozen_string_literal: true

module Snapboot
  module Archive
    module Data
      # Describes as a text how a call parses: with other options the same file is another document.
      class Options
        # switches: names of options that are true, false or nil; lists: of options that are a list of classes or symbols;
        # ignored: of options that only affect errors.
        def initialize(switches:, lists: [], ignored: [])
          @switches = switches
          @lists = lists
          @ignored = ignored
        end

        # Takes a call's options (Hash). Returns a text that identifies them, or nil if one is unknown.
        def describe(options)
          return "" if options.empty?

          parts = options.map { |name, value| describe_one(name, value) || (return nil) }
          parts.sort.join
        end

        private

        def describe_one(name, value)
          if @switches.include?(name)
            " #{name}=#{value.inspect}" if value.nil? || value == true || value == false
          elsif @lists.include?(name)
            " #{name}=#{value.map(&:to_s).sort.inspect}" if value.instance_of?(Array) && value.all? { |item| named?(item) }
          elsif @ignored.include?(name)
            "" if value.nil? || value.is_a?(String)
          end
        end

        # Another class may get the name of an anonymous class.
        def named?(item)
          case item
          when String, Symbol then true
          when Module then item.name
          end
        end
      end
    end
  end
end
