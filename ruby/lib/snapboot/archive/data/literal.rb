# frozen_string_literal: true

module Snapboot
  module Archive
    module Data
      # Writes what a parser of data files returned as Ruby source that gives the same objects: classes, order, encodings,
      # frozen or not, one object in several places. Only what it knows to write exactly; anything else has no source.
      class Literal
        DEEPEST = 50
        # Psych requires "date" for what could be one (2023-02-30), and for none in quotes, which look the same here.
        DATE = /\A\d{4}-\d{1,2}-\d{1,2}\z/

        # shared: whether one mutable object can be in several places.
        # date: when the parser requires "date": :loaded by it, :unknown because it was there before, :never.
        def initialize(object, shared:, date:)
          @object = object
          @shared = shared
          @date = date
          @frozen = object.frozen?
          @names = {}.compare_by_identity # of objects in several places; nil until the first was written
          @out = +""
        end

        # Ruby source in UTF-8 whose value is the object, or nil.
        def source
          catch(:unknown) do
            find_shared(@object, {}.compare_by_identity, {}.compare_by_identity) if @shared
            write(@object, 0)
            "# encoding: utf-8\n# frozen_string_literal: #{@frozen}\n#{"require 'date'\n" if @date == :loaded}#{@out}"
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
          return @out << @names[object] if @names[object]

          name = "shared_#{@out.bytesize}"
          @out << "(" << name << "="
          write_value(object, depth)
          @out << ")"
          @names[object] = name
        end

        def write_value(object, depth)
          kind = object.class
          if kind == String then write_string(object)
          elsif kind == Symbol then write_symbol(object)
          elsif kind == Hash then write_hash(object, depth + 1)
          elsif kind == Array then write_array(object, depth + 1)
          elsif kind == Integer then @out << object.to_s
          elsif kind == Float then write_float(object)
          elsif object.nil? || object == true || object == false then @out << object.inspect
          elsif kind == Time then write_time(object)
          elsif date?(object) then write_date(object)
          else
            unknown
          end
        end

        def write_hash(hash, depth)
          unknown if hash.default || hash.default_proc || hash.compare_by_identity?
          return write_empty("{}", hash) if hash.empty?

          unknown if depth > DEEPEST
          @out << "{"
          hash.each do |key, value|
            key.is_a?(String) ? write_key(key) : write(key, depth)
            @out << "=>"
            write(value, depth)
            @out << ","
          end
          @out << (hash.frozen? ? "}.freeze" : "}")
        end

        # A Hash has its own frozen String for a key, written as a literal or not.
        def write_key(key)
          unknown unless key.frozen?
          write_text(key)
        end

        def write_array(array, depth)
          return write_empty("[]", array) if array.empty?

          unknown if depth > DEEPEST
          @out << "["
          array.each do |value|
            write(value, depth)
            @out << ","
          end
          @out << (array.frozen? ? "].freeze" : "]")
        end

        # `[].freeze` is one object wherever it stands, from Ruby 3.4 on.
        def write_empty(literal, object)
          @out << literal
          @out << ".itself.freeze" if object.frozen?
        end

        def write_string(string)
          # Parsers intern what they freeze, as literals are.
          @out << (string.frozen? ? "-" : "+") if string.frozen? != @frozen
          @date = :loaded if @date == :unknown && string.bytesize <= 10 && string.match?(DATE)
          write_text(string)
        end

        def write_text(text)
          unknown unless text.instance_of?(String) && text.encoding == Encoding::UTF_8
          @out << text.dump
        end

        # A Symbol that is ASCII is US-ASCII in whatever source.
        def write_symbol(symbol)
          unknown unless symbol.encoding == Encoding::UTF_8 || symbol.encoding == Encoding::US_ASCII
          @out << ":" << symbol.name.dump
        end

        # Float warns of what is too large for it, so that an infinite one is not just a value.
        def write_float(float)
          unknown if float.infinite?
          @out << (float.nan? ? "::Float::NAN" : float.to_s)
        end

        # A Time is in UTC, at an offset of its own, or in the time zone of the process, which is not that of this one.
        def write_time(time)
          fraction = time.subsec
          text = "::Time.at(#{time.to_i},#{fraction.numerator * 1_000_000_000}r/#{fraction.denominator},:nsec)"
          text << ".utc" if time.utc?
          text << ".localtime(#{time.utc_offset})" if time.zone.nil?
          write_checked(text, time, %i[subsec utc? zone utc_offset])
        end

        def write_date(date)
          @date = :loaded
          start = date.start == ::Date::GREGORIAN ? "::Date::GREGORIAN" : date.start.to_s
          write_checked("::Date.jd(#{date.jd},#{start})", date, %i[start jd day_fraction])
        end

        # `text` if the object that it gives equals this one in these aspects, too.
        def write_checked(text, object, aspects)
          text << ".freeze" if object.frozen?
          copy = eval(text) # rubocop:disable Security/Eval
          same = copy == object && copy.frozen? == object.frozen?
          unknown unless same && aspects.all? { |aspect| copy.public_send(aspect) == object.public_send(aspect) }
          @out << text
        end
      end
    end
  end
end
