# frozen_string_literal: true

module Snapboot
  module Archive
    module Data
      # Walks the result of a parser of data files, and writes it so that equal objects can be made again: classes, order,
      # encodings, frozen or not, one object in several places. It writes only what it knows exactly. The methods for a
      # subclass are listed at the end.
      class Writer
        DEEPEST = 50
        # Psych requires "date" for a text that could be one (2023-02-30), but not for a quoted one, which looks the same
        # here.
        DATE = /\A\d{4}-\d{1,2}-\d{1,2}\z/

        # Writes the object: a String, or nil. `shared`: whether one mutable object can be in several places. `date`: when
        # the parser requires "date": :loaded by it, :unknown because it was already loaded, :never.
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

        # Gives objects that occur twice a place in @names.
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

        # Whether a copy of the object would be a distinct object. Numbers, symbols and interned strings have no copies.
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

        # Float warns about text too large for it, so an infinite one is not just a value.
        def check_float(float)
          !float.infinite? || unknown
        end

        def check_string(string)
          unknown unless string.instance_of?(String) && string.encoding == Encoding::UTF_8
          @date = :loaded if @date == :unknown && string.bytesize <= 10 && string.match?(DATE)
        end

        # A Hash keeps a frozen String of its own for a key.
        def check_key(key)
          unknown unless key.frozen? && key.instance_of?(String) && key.encoding == Encoding::UTF_8
        end

        # An ASCII Symbol is US-ASCII in any source.
        def check_symbol(symbol)
          unknown unless symbol.encoding == Encoding::UTF_8 || symbol.encoding == Encoding::US_ASCII
        end

        # A Time is in UTC, at an offset of its own, or in the process' time zone, which may differ later.
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

        # Returns `text` if its object equals this one in these aspects, too.
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
