# frozen_string_literal: true

# Loads every document below the directory ARGV[0] in every way, and prints all that can be seen of what comes of it. With
# the archive, writes to the file ARGV[1] how each call was served: "kept/strings 0 hit", or "parsed", or "failed".

require "yaml"
require "date"
require "pathname"

CALLS = [
  [:load_file],
  [:load_file, { symbolize_names: true }],
  [:load_file, { aliases: true, permitted_classes: [Date, Time, Symbol], freeze: true }],
  [:safe_load_file],
  [:safe_load_file, { aliases: true }],
  [:safe_load_file, { permitted_classes: [Symbol, "Date", Time], permitted_symbols: %i[a b], aliases: true, filename: "x" }],
  [:unsafe_load_file],
  [:unsafe_load_file, { symbolize_names: true, freeze: true }],
  [:unsafe_load_file, { symbolize_names: false, freeze: true, fallback: nil }],
  [:unsafe_load_file, { symbolize_names: true, filename: "other.yml" }]
].freeze

# Psych takes its time on a JVM.
calls = RUBY_ENGINE == "ruby" ? CALLS : CALLS.values_at(2, 5, 6, 7)

# An object as a text that two objects have in common if nothing tells them apart.
class Seen
  def initialize
    @places = {}.compare_by_identity
  end

  def text(object)
    case object
    when String, Hash, Array, Time, Date
      return "=#{@places[object]}" if @places.key?(object)

      @places[object] = @places.size unless object.is_a?(String) && object.frozen?
    end
    "#{"frozen " if object.frozen?}#{object.class} #{object.instance_variables.join(" ")} #{content(object)}"
  end

  private

  def content(object)
    case object
    when String then "#{object.encoding} #{object.valid_encoding?} #{object.b.dump}"
    when Symbol then "#{object.encoding} #{object.name.b.dump}"
    when Array then "[#{object.map { |part| text(part) }.join(", ")}]"
    when Hash then "#{hash_itself(object)}{#{object.map { |key, value| "#{text(key)} => #{text(value)}" }.join(", ")}}"
    when Float then [object].pack("G").unpack1("H*")
    when Time then [object.to_i, object.subsec, object.utc?, object.zone, object.utc_offset].inspect
    when Date then [object.jd, object.start.class, object.start == Date::GREGORIAN, object.day_fraction].inspect
    else object.inspect
    end
  end

  def hash_itself(hash)
    own = [hash.default, hash.default_proc, hash.compare_by_identity?]
    found = hash.all? { |key, value| value.equal?(hash[key]) || (key.is_a?(Float) && key.nan?) }
    "#{own.inspect} #{found} "
  end
end

# What tag_class.yml names: Psych calls init_with.
class Hooked
  def init_with(coder)
    puts "init_with #{coder.map}"
  end

  def inspect
    "a Hooked"
  end
end

events = []
Snapboot::Archive.on_event { |event, kind, _name| events << event if kind == :data } if defined?(Snapboot::Archive)
served = []
Dir.glob("#{ARGV[0]}/*/*.yml") do |path|
  name = path.delete_prefix("#{ARGV[0]}/").delete_suffix(".yml")
  calls.each_with_index do |(call, options), index|
    events.clear
    begin
      result = Seen.new.text(YAML.public_send(call, path, **(options || {})))
      outcome = (events & %i[hit revalidated]).any? ? "hit" : "parsed"
    rescue StandardError => e
      result = "#{e.class}: #{e.message}"
      outcome = "failed"
    end
    puts "#{name} #{call} #{options} -> #{result}"
    served << "#{name} #{index} #{outcome}"
  end
end
File.write(ARGV[1], served.join("\n")) if ARGV[1]
