# frozen_string_literal: true

require_relative "writer"

module Snapboot
  module Archive
    module Data
      # A document as Ruby source in UTF-8.
      class Literal < Writer
        def initialize(object, date)
          super
          @out = +""
          @frozen = object.frozen?
        end

        private

        def complete(needs_date)
          "# encoding: utf-8\n# frozen_string_literal: #{@frozen}\n#{"require 'date'\n" if needs_date}#{@out}"
        end

        # Parsers intern the strings that they freeze; literals are interned, too.
        def write_string(string)
          check_string(string)
          @out << (string.frozen? ? "-" : "+") if string.frozen? != @frozen
          @out << string.dump
        end

        def write_symbol(symbol)
          check_symbol(symbol)
          @out << ":" << symbol.name.dump
        end

        def write_hash(hash, depth)
          return write_empty("{}", hash) if hash.empty?

          @out << "{"
          hash.each do |key, value|
            key.is_a?(String) ? write_key(key) : write(key, depth)
            @out << "=>"
            write(value, depth)
            @out << ","
          end
          @out << (hash.frozen? ? "}.freeze" : "}")
        end

        def write_key(key)
          check_key(key)
          @out << key.dump
        end

        def write_array(array, depth)
          return write_empty("[]", array) if array.empty?

          @out << "["
          array.each do |value|
            write(value, depth)
            @out << ","
          end
          @out << (array.frozen? ? "].freeze" : "]")
        end

        # `[].freeze` is the same object everywhere from Ruby 3.4 on.
        def write_empty(literal, object)
          @out << literal
          @out << ".itself.freeze" if object.frozen?
        end

        def write_integer(integer)
          @out << integer.to_s
        end

        def write_float(float)
          @out << (float.nan? ? "::Float::NAN" : float.to_s)
        end

        def write_word(object)
          @out << object.inspect
        end

        def write_source(text)
          @out << text
        end

        def write_named
          name = "shared_#{@out.bytesize}"
          @out << "(" << name << "="
          yield
          @out << ")"
          name
        end

        def write_again(name)
          @out << name
        end
      end
    end
  end
end
