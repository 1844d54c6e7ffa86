# frozen_string_literal: true

module Snapboot
  module Archive
    module Data
      # How a call parses, as a text: with other options the same file is another document.
      class Options
        # switches: names of options that are true, false or nil; lists: of those that are a list of classes or symbols;
        # ignored: of those that only show in errors.
        def initialize(switches:, lists: [], ignored: [])
          @switches = switches
          @lists = lists
          @ignored = ignored
        end

        # Takes a call's options (Hash). Returns a text that is the same for the same ones, or nil if one is not known.
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

        # An anonymous class has a name that another one may get.
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
