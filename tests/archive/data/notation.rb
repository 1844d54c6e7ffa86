# frozen_string_literal: true

# Native.document with what it gets (under GC.stress, too) and with what it never should: damaged payloads. `ruby notation.rb
# DIRECTORY DAMAGES SEED`, after snapboot/setup; prints how many documents came back and how many damages were survived.

require "yaml"
require "date"
require "snapboot/archive/data/notation"

NATIVE = Snapboot::Archive::Native
random = Random.new(Integer(ARGV[2]))

payloads = Dir.glob("#{ARGV[0]}/{kept,random}/*.yml").filter_map do |path|
  document = begin
    YAML.unsafe_load_file(path)
  rescue StandardError
    next # not every one is a document for every Psych
  end
  payload = Snapboot::Archive::Data::Notation.write(document, shared: true, date: :never)&.b&.freeze
  next unless payload

  # NaN is equal to nothing, and what is dumped of it is.
  same = ->(copy) { Marshal.dump(copy) == Marshal.dump(document) }
  abort "#{path}: other objects" unless same.call(NATIVE.document(payload).fetch(0))

  if payload.bytesize < 2000
    begin
      GC.stress = true
      copy = NATIVE.document(payload).fetch(0)
    ensure
      GC.stress = false
    end
    abort "#{path}: other objects under stress" unless same.call(copy)
  end
  payload
end

survived = Array.new(Integer(ARGV[1])) do
  payload = payloads.sample(random: random).dup
  case random.rand(3)
  when 0 then payload.setbyte(random.rand(payload.bytesize), random.rand(256))
  when 1 then payload = payload.byteslice(0, random.rand(payload.bytesize))
  else payload << random.bytes(random.rand(1..4))
  end
  # A letter that has become a `!` would have its text evaluated.
  next if payload.include?("!")

  begin
    NATIVE.document(payload.freeze)
  rescue EncodingError => e
    e
  end
end
puts "#{payloads.size} documents, #{survived.size} damages"
