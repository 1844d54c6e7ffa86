# frozen_string_literal: true

# What programs do around the calls that the archive answers. Prints what can be seen of it.

require "fileutils"
require "json"
require "yaml"

DIR = File.expand_path("files", ARGV[0])
FileUtils.mkdir_p(DIR)

# Keeps the file as it is, if it is so already: the archive leaves what has only just changed.
def file(name, text)
  path = "#{DIR}/#{name}"
  File.binwrite(path, text) unless File.exist?(path) && File.binread(path) == text.b
  path
end

def show(name)
  puts "#{name}: #{yield.inspect}"
rescue StandardError, ScriptError => e
  puts "#{name}: #{e.class}: #{e.message.sub(DIR, "DIR").sub(/fd:\d+|@\h+/, "")}"
end

# Before and after `change`, which is undone by `undo`.
def around(name, text, change:, undo: nil, call: :load_file)
  path = file("#{name}.yml", text)
  show("#{name} before") { YAML.public_send(call, path) }
  change.call
  show("#{name} after") { YAML.public_send(call, path) }
  undo&.call
  show("#{name} again") { YAML.public_send(call, path) }
end

path = file("objects.yml", "a: [x, {b: y}]\n")
one, two = Array.new(2) { YAML.load_file(path) }
one["a"][1]["b"] << " changed"
one["c"] = 1
show("objects") { [one, two, YAML.load_file(path), one.equal?(two)] }

show("signature") do
  methods = %i[load_file safe_load_file unsafe_load_file].map { |call| YAML.method(call) }
  methods.map { |method| [method.parameters, method.owner == YAML.singleton_class] }
end
show("methods") { YAML.singleton_methods(false).sort }
show("ancestors") { YAML.singleton_class.ancestors.first(2).map(&:inspect) }

path = file("options.yml", "--- {a: 1}\n")
show("no name") { YAML.load_file }
show("two names") { YAML.load_file(path, path) }
show("unknown option") { YAML.load_file(path, shape: 1) }
show("nil") { YAML.load_file(nil) }
show("object") { YAML.load_file({}) }
show("missing") { YAML.load_file("#{DIR}/missing.yml") }
show("directory") { YAML.load_file(DIR).class }
show("zero byte") { YAML.load_file("a\0b") }
show("pathname") { [YAML.load_file(Pathname(path)), YAML.load_file(Pathname(path))] } if defined?(Pathname)
show("relative") do
  Dir.chdir(DIR) { %w[options.yml ./options.yml ../files/options.yml].map { |name| YAML.load_file(name) } }
end
show("elsewhere") { YAML.load_file("options.yml") }
show("symbolize") { [true, 1, false].map { |switch| YAML.load_file(path, symbolize_names: switch) } }
fallback = Object.new
show("fallback") { YAML.unsafe_load_file(file("empty.yml", ""), fallback: fallback).equal?(fallback) }
show("frozen") { YAML.load_file(path, freeze: true).frozen? }

date = file("date.yml", "2001-12-14\n")
show("permitted") { YAML.safe_load_file(date, permitted_classes: [Date]).to_s }
show("not permitted") { YAML.safe_load_file(date, permitted_classes: [Symbol]) }
show("by name") { YAML.safe_load_file(date, permitted_classes: ["Date"]).to_s }
show("no list") { YAML.safe_load_file(date, permitted_classes: nil) }

path = file("edited.yml", "one\n")
show("edited before") { YAML.load_file(path) }
times = File.stat(path)
File.binwrite(path, "two\n")
File.utime(times.atime, times.mtime, path)
show("edited") { YAML.load_file(path) }
File.binwrite(path, "one\n")
show("edited back") { YAML.load_file(path) }

file("first.yml", "first\n")
file("second.yml", "second\n")
%w[first second first].each do |target|
  File.delete("#{DIR}/link.yml") if File.symlink?("#{DIR}/link.yml")
  File.symlink("#{target}.yml", "#{DIR}/link.yml")
  show("link") { YAML.load_file("#{DIR}/link.yml") }
end

def convert_to(encoding)
  verbose = $VERBOSE
  $VERBOSE = nil # it warns
  Encoding.default_internal = encoding
ensure
  $VERBOSE = verbose
end

[Encoding::ISO_8859_1, Encoding::UTF_8, nil].each do |encoding|
  around("internal_#{encoding}", "é: ü\n", change: -> { convert_to(encoding) }, undo: -> { convert_to(nil) })
  show("encodings") { YAML.load_file("#{DIR}/internal_#{encoding}.yml").flatten.map(&:encoding) }
end

if RUBY_ENGINE == "ruby"
  zone = ENV["TZ"]
  text = "2001-07-14 10:00:00\n"
  around("zone", text, call: :unsafe_load_file, change: -> { ENV["TZ"] = "Asia/Tokyo" }, undo: -> { ENV["TZ"] = zone })

  path = file("ractor.yml", "a: 1\n")
  show("ractor") do
    ractor = Ractor.new(path) { |name| YAML.load_file(name) }
    ractor.respond_to?(:take) ? ractor.take : ractor.value
  end
end

show("threads") { Array.new(4) { Thread.new { YAML.load_file("#{DIR}/options.yml") } }.map(&:value) }
show("read") { YAML.safe_load(File.read("#{DIR}/options.yml")) }

data = file("data.json", '{"a": [1, -0.5, 1e3, "é\\u00e9", true, null, {}], "b": {"c": "d"}, "big": 123456789012345678901}')
2.times do
  show("json") { JSON.load_file(data) }
  show("json symbols") { JSON.load_file(data, symbolize_names: true) }
  show("json frozen") { JSON.load_file(data, symbolize_names: true, freeze: true).frozen? }
  show("json max nesting") { JSON.load_file(data, max_nesting: 1) }
  show("json!") { JSON.load_file!(data) }
  show("json objects") do
    hash = JSON.load_file(data)
    [hash["a"][3].frozen?, hash["a"][3].encoding, hash.keys[0].frozen?, hash.keys[0].encoding, hash["b"].frozen?]
  end
  show("json not a number") { JSON.load_file(file("nan.json", "[NaN]"), allow_nan: true) }
  show("json broken") { JSON.load_file(file("broken.json", "[1")) && nil }
  show("json missing") { JSON.load_file("#{DIR}/missing.json") }
end

# As FakeFS does.
def replace_file_by(replacement)
  Object.send(:remove_const, :File)
  Object.const_set(:File, replacement)
end

original_file = File
other_file = Class.new(File) { def self.open(*, **) = super("#{DIR}/options.yml", "r:bom|utf-8") }
around("files", "a: 2\n", change: -> { replace_file_by(other_file) }, undo: -> { replace_file_by(original_file) })

# From here on Psych is not what it was.
around("tokenize", "a: 12\n",
       change: lambda {
         Psych::ScalarScanner.class_eval do
           alias_method :tokenize_of_psych, :tokenize
           def tokenize(text) = text == "12" ? :twelve : tokenize_of_psych(text)
         end
       },
       undo: lambda {
         Psych::ScalarScanner.class_eval { alias_method :tokenize, :tokenize_of_psych }
       })
around("parse", "a: 12\n",
       change: lambda {
         YAML.singleton_class.class_eval do
           alias_method :parse_of_psych, :parse
           def parse(_yaml, **options) = parse_of_psych("parsed: by the program", **options)
         end
       },
       undo: lambda {
         YAML.singleton_class.class_eval { alias_method :parse, :parse_of_psych }
       })
around("alias", "--- :symbol\n", call: :safe_load_file, change: lambda {
  YAML.singleton_class.class_eval { alias_method :safe_load_file, :unsafe_load_file }
})
around("redefined", "a: 1\n", change: lambda {
  YAML.singleton_class.class_eval do
    alias_method :load_file_before, :load_file
    def load_file(path, **options) = [:own, load_file_before(path, **options)]
  end
})
around("prepended", "a: 1\n", change: lambda {
  YAML.singleton_class.prepend(Module.new { def load_file(...) = [:prepended, super] })
})
around("visitor", "a: 1\n", call: :unsafe_load_file, change: lambda {
  Psych::Visitors::ToRuby.prepend(Module.new { def accept(target) = [:visited, super] })
})
