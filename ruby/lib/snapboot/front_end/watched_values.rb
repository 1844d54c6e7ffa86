# frozen_string_literal: true

# Records the texts with which a program compares facts about its start, such as HOME.
#
# Another start shows what a program makes of one other value. A program that compares the value with a text of its own
# (`ENV["SITE"] == "production"`) treats all values but that one alike. So in one boot of a freeze, the methods that
# compare texts record a call with a value of another start or a part of one, and the fact becomes an input.
class WatchedValues
  # A text with fewer letters and digits means nothing by itself: "/", "~" or "".
  FEWEST = /[[:alnum:]].*[[:alnum:]]/mn
  # The parts of a pattern that match any character of a class.
  CLASSES = /\\.|\[[^\]]*\]/n
  # Methods that compare, except those that set `$~`: a wrapper in between would get the match.
  METHODS = {
    String => %i[== === eql? <=> casecmp casecmp? start_with? end_with? include? delete_prefix delete_suffix match?],
    Regexp => %i[match?],
    Array => %i[include? member? index find_index],
    Hash => %i[[] fetch key? has_key? include? member? dig values_at]
  }.freeze
  # Occurs in each part of a made-up value: see crates/freeze boot_inputs/elsewhere.rs.
  MARK = /\.of-(\d+)/n
  HAS, SIZE = %i[include? bytesize].map { |name| String.instance_method(name) }
  # Ruby's own method, since Early replaces it.
  LOCATIONS = Kernel.instance_method(:caller_locations)
  private_constant :LOCATIONS, :FEWEST, :CLASSES, :METHODS, :MARK, :HAS, :SIZE

  # For each fact that was compared, the first text and place.
  attr_reader :found

  # +facts+: their values in this boot by name, as bytes. +own+: the front end's directory.
  def initialize(facts, own)
    @values = facts.reject { |name, value| value.nil? || name == :cwd || name == :PATH }
    @mark = @values.each_value.filter_map { |value| value[MARK, 1] }.first
    @own = own
    @found = {}
    @wrappers = Wrappers.new
    @is_busy = false
  end

  def watch
    return if @mark.nil?

    METHODS.each { |owner, names| names.each { |name| watch_method(owner, name) } }
  end

  def stop
    @wrappers.take_off
  end

  private

  def watch_method(owner, name)
    @wrappers.wrap(owner, name) do |receiver, original, arguments, block|
      record(receiver, arguments) unless @is_busy
      original.call(*arguments, &block)
    end
  end

  def record(receiver, arguments)
    @is_busy = true
    texts = [receiver, *arguments]
    value = texts.find { |text| value?(text) }
    other = texts.find { |text| counts?(text) } if value
    fact = fact_of(value) if other
    file = file_beyond if fact
    @found[fact] ||= "a comparison with #{shown(other)} in #{file}" if file
  ensure
    @is_busy = false
  end

  def value?(text)
    text.is_a?(String) && HAS.bind_call(text, @mark)
  end

  def counts?(other)
    case other
    when String then !HAS.bind_call(other, @mark) && other.b.match?(FEWEST)
    when Regexp then other.source.b.gsub(CLASSES, "").match?(FEWEST)
    when Array, Hash then true
    end
  end

  # Returns the fact that a text is part of; nil if the text contains more than a value.
  def fact_of(text)
    @values.find { |_, value| SIZE.bind_call(text) <= value.bytesize && value.downcase.include?(text.b.downcase) }&.first
  end

  def shown(other)
    case other
    when String then other[0, 40].inspect
    when Regexp then other.inspect
    else "the items of a list or table"
    end
  end

  # Returns the file that compares, without the line, which Ruby does not always know; nil for the front end.
  def file_beyond
    frame = LOCATIONS.bind_call(self, 1).find { |it| !it.path.start_with?("<internal:", __FILE__, Wrappers::FILE) }
    File.basename(frame.path) unless frame.nil? || frame.path.start_with?(@own)
  end
end
