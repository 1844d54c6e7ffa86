# frozen_string_literal: true

# Writes the YAML files that loads.rb loads: `ruby make_documents.rb DIRECTORY COUNT SEED`. In kept/ and random/ is what the
# archive serves (random/: COUNT documents of all styles, made from SEED), in left/ what it leaves to Psych.

require "fileutils"

KEPT = {
  "strings" => <<~'YAML',
    plain: some text
    empty: ""
    single: 'it''s # not a comment'
    double: "tab\tquote\" backslash\\ #{name} #$0 #@a \e\0\x7f\r\n\u2028 \U0001F600"
    literal: |
      first 'line'
        second \line
      __END__
    folded: >-
      one
      two
    unicode: Grüße, мир, 世界 🙂
    exclamation: Welcome! Come in!
    "quoted key": x
    'true': not a boolean
    long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
  YAML
  "numbers" => <<~YAML,
    - [0, -1, +12, 1_000, "12", 4611686018427387903, 4611686018427387904, 18446744073709551616, -123456789012345678901234567890]
    - [0x1F, 0b101, 0o17, 017, 08, 190:20:30, 1,000]
    - [1.5, -0.0, 0.1, 1e3, 1.0e+20, 123456789.123456789, 1.7976931348623157e+99, 5.0e-324, 685.230_15e+03, 190:20:30.15, .5, 5.]
    - [.nan, .NaN]
  YAML
  "words" => "[null, ~, '', true, false, yes, No, on, OFF, y, n, True, nil, 'null', none]\n",
  "symbols" => "{:a: :b, ':quoted': \":c d\", :'e f': :\"g'h\\\\\", :é: :ü, ::double: :+, :[]: :a?, plain: :1}\n",
  "dates" => "- 2001-12-14\n- 1500-01-01\n- 2023-02-30\n- '2001-12-14'\n- 2001-1-1\n- a: 2001-12-14\n  2001-12-15: b\n",
  "times" => <<~YAML,
    - 2001-12-15T02:59:43.1Z
    - 2001-12-14t21:59:43.10-05:00
    - 2001-12-14 21:59:43.123456789123 -5
    - 2001-12-15 2:59:43
    - 2001-07-15 2:59:43 +05:30
    - 2001-12-15 02:59:43 +00:00
    - 2001-13-45 02:59:43
    - 1960-01-01 00:00:00.5 Z
  YAML
  "hashes" => <<~YAML,
    1: integer
    1.0: float
    ~: nothing
    true: boolean
    [a, b]: array
    {c: d}: hash
    ? |
      block
    : text
    : empty
    z: last
    a: first
    z: again
  YAML
  "nested" => "a: {b: {c: {d: [{}, [], [[]], {e: {}}]}}}\n",
  "merge" => <<~YAML,
    base: &base {a: 1, b: [x]}
    more: &more {b: 2, c: 3}
    one: {<<: *base, d: 4}
    both:
      <<: [*base, *more]
      a: own
    inline: {<<: {e: 5}, f: 6}
    text: {<<: no map}
  YAML
  "aliases" => <<~YAML,
    - &text some text
    - *text
    - &list [a, *text]
    - {list: *list, again: *list, key: &value {v: *list}}
    - *value
    - ? *list
      : &number 1
    - *number
    - &when 2001-12-15 02:59:43
    - *when
    - &empty {}
    - [*empty, *empty, &none ~, *none, &symbol :a, *symbol]
  YAML
  "scalar" => "--- just text\n",
  "false" => "--- false\n",
  "null" => "---\n",
  "empty" => "",
  "comment" => "# nothing\n",
  "first_of_two" => "--- {a: 1}\n--- !ruby/object:Object {}\n",
  "directive" => "%YAML 1.1\n---\na: 1\n...\n",
  "mark" => "\uFEFFa: 'é'\n",
  "wide" => "\uFEFFa: 'é'\nb: [1, ä]\n".encode("UTF-16LE"),
  "windows" => "a: 1\r\nb:\r\n  - 'two\r\n    lines'\r\n",
  "flat" => (0...600).map { |i| "key_#{i}: value #{i}\n" }.join,
  "list" => (0...600).map { |i| "- #{[i, "text #{i}", i * 0.5, "{a: #{i}}", "~"][i % 5]}\n" }.join
}.freeze

LEFT = {
  "tag_string" => "- !!str 1\n",
  "tag_binary" => "a: !binary aGVsbG8=\n",
  "tag_symbol" => "- !ruby/symbol a\n",
  "tag_range" => "- !ruby/range 1..3\n",
  "tag_set" => "a: !!set {b, c}\n",
  "tag_local" => "- !own {a: 1}\n",
  "tag_class" => "- !ruby/object:Hooked {a: 1}\n",
  "tag_in_flow" => "[a,!!str 1]\n",
  "tag_at_start" => "!own text\n",
  "tag_after_mark" => "\uFEFF!own text\n",
  "tag_wide" => "\uFEFF- !own a\n".encode("UTF-16LE"),
  "tag_on_alias_target" => "- &a !!float 1\n- *a\n",
  "cycle" => "&a [*a]\n",
  "cycle_in_key" => "&a {b: {c: *a}}\n",
  "deep" => "#{"[" * 60}#{"]" * 60}\n",
  "syntax" => "a: [1\nb: {\n",
  "tab" => "a:\n\tb: 1\n",
  "unknown_alias" => "- *nowhere\n",
  "not_utf8" => "a: \xFF\xFE\n",
  "control" => "a: \x01\n",
  "warning" => "- 1.0e+400\n",
  "infinite" => "[.inf, -.inf, +.INF]\n"
}.freeze

# Texts of documents, of all styles that YAML has without tags.
class Documents
  WORDS = [
    "a", "some text", "it's", "say \"x\"", "back\\slash", "é世🙂", "#hash", "a: b", "- c", "!", "b!", "yes", "12", "1.5",
    "~", "", "<<", "line\nline\n", "tab\t", " lead", "trail ", "2001-12-14", ":sym", "%count", "&x", "*y", "@at", "`tick",
    "{", "]", ",", "=", "null", "\u0085", "\0"
  ].freeze
  PLAIN = [
    "text", "some text", "12", "-7", "0x1f", "1_000", "1.25", "-1.5e+10", ".nan", "~", "null", "true", "no", ":symbol",
    ":'a b'", "2001-12-14", "2001-12-14 10:00:00 Z", "2001-12-14 10:00:00", "99999999999999999999", "190:20:30",
    "é", "a!b", "x*y"
  ].freeze

  def initialize(random)
    @random = random
    @anchors = []
  end

  def text
    @anchors.clear
    "---\n#{node(0)}\n"
  end

  private

  def pick(*choices)
    choices.sample(random: @random)
  end

  # In flow style, which may stand everywhere.
  def node(depth)
    return "*#{pick(*@anchors)}" if @anchors.any? && @random.rand(8).zero?

    content = case @random.rand(depth > 4 ? 5 : 10)
              when 0..1 then pick(*PLAIN)
              when 2..4 then quoted(pick(*WORDS) * pick(1, 1, 1, 3))
              when 5..6 then "[#{Array.new(@random.rand(5)) { node(depth + 1) }.join(", ")}]"
              else "{#{Array.new(@random.rand(6)) { |i| pair(i, depth) }.join(", ")}}"
              end
    return content unless @random.rand(6).zero?

    name = "a#{@anchors.size}"
    @anchors << name # after its own content: no cycles
    "&#{name} #{content}"
  end

  def pair(index, depth)
    keys = ["key#{index}", quoted("#{pick(*WORDS)}#{index}"), index.to_s, ":s#{index}", "#{index}.5", "[#{index}, x]"]
    key = pick(*keys, pick(*PLAIN))
    return "<<: {#{pair(index + 1, depth + 1)}}" if @random.rand(12).zero?

    "#{key}: #{node(depth + 1)}"
  end

  ESCAPES = { '"' => '\"', "\\" => "\\\\", "\n" => '\n', "\t" => '\t', "\0" => '\0', "\u0085" => '\N' }.freeze

  def quoted(text)
    return "'#{text.gsub("'", "''")}'" if text.match?(/\A[ -~é世🙂]*\z/) && @random.rand(2).zero?

    "\"#{text.gsub(/["\\\n\t\0\u0085]/, ESCAPES)}\""
  end
end

directory, count, seed = ARGV
{ "kept" => KEPT, "left" => LEFT }.each do |part, documents|
  FileUtils.mkdir_p("#{directory}/#{part}")
  documents.each { |name, text| File.binwrite("#{directory}/#{part}/#{name}.yml", text) }
end
FileUtils.mkdir_p("#{directory}/random")
documents = Documents.new(Random.new(Integer(seed)))
Integer(count).times { |i| File.binwrite("#{directory}/random/#{i}.yml", documents.text) }
