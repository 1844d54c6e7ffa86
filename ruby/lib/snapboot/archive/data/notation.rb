# frozen_string_literal: true

require_relative "writer"

module Snapboot
  module Archive
    module Data
      # A document in the form that Snapboot::Archive::Native.document reads: objects in sequence, each a letter and its
      # data. Sizes and numbers of objects are BER integers (`w` of Array#pack).
      #
      #   S size bytes   String              { size, keys and values   Hash           n y x      nil, true, false
      #   s size bytes   interned String     < the same                frozen Hash    = object   gets the next number, from 0
      #   : size bytes   Symbol              [ size, elements          Array          * number   the object of that number
      #   i 8 bytes      Integer, from the   ( the same                frozen Array   d object   for which "date" is required
      #                  lowest byte on      ! size bytes              what this source of Ruby gives, up to a zero byte
      #   f 8 bytes      Float, likewise
      class Notation < Writer
        SMALL = (-(2**63)..((2**63) - 1))
        WORDS = { nil => "n", true => "y", false => "x" }.freeze

        def initialize(object, date)
          super
          @out = String.new
          @named = 0
        end

        private

        def complete(needs_date)
          needs_date ? "d#{@out}" : @out
        end

        def write_sized(letter, bytes)
          [letter, bytes.bytesize, bytes].pack("awa*", buffer: @out)
        end

        def write_string(string)
          check_string(string)
          write_sized(string.frozen? ? "s" : "S", string)
        end

        def write_symbol(symbol)
          check_symbol(symbol)
          write_sized(":", symbol.name)
        end

        def write_hash(hash, depth)
          [hash.frozen? ? "<" : "{", hash.size].pack("aw", buffer: @out)
          hash.each do |key, value|
            key.is_a?(String) ? write_key(key) : write(key, depth)
            write(value, depth)
          end
        end

        def write_key(key)
          check_key(key)
          write_sized("s", key)
        end

        def write_array(array, depth)
          [array.frozen? ? "(" : "[", array.size].pack("aw", buffer: @out)
          array.each { |value| write(value, depth) }
        end

        def write_integer(integer)
          return write_source(integer.to_s) unless SMALL.cover?(integer)

          ["i", integer].pack("aq<", buffer: @out)
        end

        def write_float(float)
          return write_source("::Float::NAN") if float.nan?

          ["f", float].pack("aE", buffer: @out)
        end

        def write_word(object)
          @out << WORDS.fetch(object)
        end

        def write_source(text)
          write_sized("!", "#{text}\0")
        end

        # An object gets its number when it is complete, so its parts have lower ones.
        def write_named
          @out << "="
          yield
          @named += 1
          @named - 1
        end

        def write_again(number)
          ["*", number].pack("aw", buffer: @out)
        end
      end
    end
  end
end
