# frozen_string_literal: true

# Notes with which texts a program compares the values of facts about its start: of variables such as HOME.
#
# Another start shows what a program makes of one other value. A program that compares the value with a text of its own
# (`ENV["SITE"] == "production"`) does the same with all values but that one. So in one boot of a freeze the methods that
# compare texts note who is given a value of another start, or a part of one, and such a fact counts by its value.
class WatchedValues
  # A text with fewer letters and digits says nothing of its own: "/", "~" or "".
  FEWEST = /[[:alnum:]].*[[:alnum:]]/mn
  # In a pattern: what stands for any character of a kind.
  CLASSES = /\\.|\[[^\]]*\]/n
  # Not those that leave a match behind (`$~`): a block in between would have it.
  METHODS = {
    String => %i[== === eql? <=> casecmp casecmp? start_with? end_with? include? delete_prefix delete_suffix match?],
    Regexp => %i[match?],
    Array => %i[include? member? index find_index],
    Hash => %i[[] fetch key? has_key? include? member? dig values_at]
  }.freeze
  # In each part of a made-up value: see crates/freeze elsewhere.rs.
  MARK = /\.of-(\d+)/n
  HAS, SIZE = %i[include? bytesize].map { |name| String.instance_method(name) }
  # Early puts another one in its place.
  LOCATIONS = Kernel.instance_method(:caller_locations)
  private_constant :LOCATIONS, :FEWEST, :CLASSES, :METHODS, :MARK, :HAS, :SIZE

  # What was found: by the name of a fact, with what and where it was compared first.
  attr_reader :found

  # +facts+: their values in this boot by name, as bytes. +own+: the directory of the front end.
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
      note(receiver, arguments) unless @is_busy
      original.call(*arguments, &block)
    end
  end

  def note(receiver, arguments)
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

  # Which fact a text is a part of; nil for one that is more than a value.
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

  # The file that compares, without its line, which Ruby does not always know; nil when it is the front end's.
  def file_beyond
    frame = LOCATIONS.bind_call(self, 1).find { |it| !it.path.start_with?("<internal:", __FILE__, Wrappers::FILE) }
    File.basename(frame.path) unless frame.nil? || frame.path.start_with?(@own)
  end
end
