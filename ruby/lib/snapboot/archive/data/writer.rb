# frozen_string_literal: true

module Snapboot
  module Archive
    module Data
      # Walks what a parser of data files returned, and has it written so that the same objects can be made again: classes,
      # order, encodings, frozen or not, one object in several places. Only what it knows exactly; anything else is not
      # written. What a subclass has to do is at the end.
      class Writer
        DEEPEST = 50
        # Psych requires "date" for what could be one (2023-02-30), and for none in quotes, which look the same here.
        DATE = /\A\d{4}-\d{1,2}-\d{1,2}\z/

        # The object, written: a String, or nil. `shared`: whether one mutable object can be in several places. `date`: when
        # the parser requires "date": :loaded by it, :unknown because it was there before, :never.
        def self.write(object, shared:, date:)
          new(object, date).written(shared)
        end

        def initialize(object, date)
          @object = object
          @date = date
          @names = {}.compare_by_identity # of objects in several places; nil until the first was written
        end

        def written(shared)
          @shared = shared
          catch(:unknown) do
            find_shared(@object, {}.compare_by_identity, {}.compare_by_identity) if shared
            write(@object, 0)
            complete(@date == :loaded)
          end
        end

        private

        def unknown
          throw :unknown, nil
        end

        # Gives a place in @names to what is met twice.
        def find_shared(object, seen, inside)
          return unless named?(object)

          unknown if inside.key?(object) || inside.size > DEEPEST
          return @names[object] = nil if seen.key?(object)

          seen[object] = inside[object] = true
          parts(object).each { |part| find_shared(part, seen, inside) }
          inside.delete(object)
        end

        def parts(object)
          case object
          when Hash then object.to_a.flatten(1)
          when Array then object
          else []
          end
        end

        # Whether one more of the object would be another one. Numbers, symbols and interned strings are what they are.
        def named?(object)
          case object
          when String then !object.frozen?
          when Hash, Array, Time then true
          else date?(object)
          end
        end

        def date?(object)
          defined?(::Date) && object.instance_of?(::Date)
        end

        def write(object, depth)
          return write_value(object, depth) unless @shared && @names.key?(object)

          name = @names[object]
          return write_again(name) if name

          @names[object] = write_named { write_value(object, depth) }
        end

        def write_value(object, depth)
          kind = object.class
          if kind == String then write_string(object)
          elsif kind == Symbol then write_symbol(object)
          elsif kind == Hash then check_hash(object, depth) && write_hash(object, depth + 1)
          elsif kind == Array then check_depth(depth) && write_array(object, depth + 1)
          elsif kind == Integer then write_integer(object)
          elsif kind == Float then check_float(object) && write_float(object)
          elsif object.nil? || object == true || object == false then write_word(object)
          elsif kind == Time then write_source(time(object))
          elsif date?(object) then write_source(date(object))
          else
            unknown
          end
        end

        def check_depth(depth)
          depth < DEEPEST || unknown
        end

        def check_hash(hash, depth)
          unknown if hash.default || hash.default_proc || hash.compare_by_identity?
          check_depth(depth)
        end

        # Float warns of what is too large for it, so that an infinite one is not just a value.
        def check_float(float)
          !float.infinite? || unknown
        end

        def check_string(string)
          unknown unless string.instance_of?(String) && string.encoding == Encoding::UTF_8
          @date = :loaded if @date == :unknown && string.bytesize <= 10 && string.match?(DATE)
        end

        # A Hash has its own frozen String for a key.
        def check_key(key)
          unknown unless key.frozen? && key.instance_of?(String) && key.encoding == Encoding::UTF_8
        end

        # A Symbol that is ASCII is US-ASCII in whatever source.
        def check_symbol(symbol)
          unknown unless symbol.encoding == Encoding::UTF_8 || symbol.encoding == Encoding::US_ASCII
        end

        # A Time is in UTC, at an offset of its own, or in the time zone of the process, which is not that of this one.
        def time(time)
          fraction = time.subsec
          text = "::Time.at(#{time.to_i},#{fraction.numerator * 1_000_000_000}r/#{fraction.denominator},:nsec)"
          text << ".utc" if time.utc?
          text << ".localtime(#{time.utc_offset})" if time.zone.nil?
          checked(text, time, %i[subsec utc? zone utc_offset])
        end

        def date(date)
          @date = :loaded
          start = date.start == ::Date::GREGORIAN ? "::Date::GREGORIAN" : date.start.to_s
          checked("::Date.jd(#{date.jd},#{start})", date, %i[start jd day_fraction])
        end

        # `text` if the object that it gives equals this one in these aspects, too.
        def checked(text, object, aspects)
          text << ".freeze" if object.frozen?
          copy = eval(text) # rubocop:disable Security/Eval
          same = copy == object && copy.frozen? == object.frozen?
          unknown unless same && aspects.all? { |aspect| copy.public_send(aspect) == object.public_send(aspect) }
          text
        end

        # A subclass has
        #   write_string, write_symbol, write_integer, write_float, write_word(nil, true or false),
        #   write_hash(hash, depth), write_array(array, depth): with `write` for the parts
        #   write_source(text): of Ruby that gives the object
        #   write_named: what the block writes, with a name for it, which it returns; write_again(name)
        #   complete(needs_date): the String; with `require "date"` before all else
      end
    end
  end
end
