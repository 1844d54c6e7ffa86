# frozen_string_literal: true

# rubocop:disable Style/FormatStringToken, Style/StringConcatenation, Style/SymbolProc

# Strings, encodings, symbols, regular expressions.

require "stringio"
require "strscan"

# Encodings and Unicode.
class EncodingsTest < Minitest::Test
  def test_defaults
    assert_equal(Encoding.find("locale"), Encoding.default_external)
    assert_nil(Encoding.default_internal)
    assert_equal(Encoding::UTF_8, __ENCODING__)
    assert_equal(Encoding.find("filesystem"), Dir.pwd.encoding)
  end

  def test_transcoding
    assert_equal("\xE9".b, "é".encode("ISO-8859-1").b)
    assert_equal("日本", "日本".encode("EUC-JP").encode("Shift_JIS").encode("UTF-8"))
    assert_equal([254, 255, 0, 97], "a".encode("UTF-16").bytes)
    assert_equal("?", "日".encode("US-ASCII", undef: :replace))
    assert_raises(Encoding::UndefinedConversionError) { "日".encode("ISO-8859-1") }
    assert_raises(Encoding::InvalidByteSequenceError) { "\xff".encode("UTF-16") }
    assert_raises(Encoding::CompatibilityError) { "é" + "\xe9".dup.force_encoding("ISO-8859-1") }
  end

  def test_rare_encodings_are_loaded_late
    %w[Big5 GB18030 Windows-1251 KOI8-R EUC-KR UTF-7 IBM437 ISO-2022-JP].each do |name|
      assert_equal(name, Encoding.find(name).name)
    end
    assert_equal("\xCF\xF0".b, "Пр".encode("Windows-1251").b)
    assert_equal("中".encode("GB18030").b, "\xD6\xD0".b)
  end

  def test_validity
    refute_predicate("\xff", :valid_encoding?)
    assert_equal("a\uFFFDb", "a\xffb".scrub)
    assert_equal(%w[e é], %w[e é].map { |s| s.unicode_normalize(:nfc) })
    assert_equal(2, "é".unicode_normalize(:nfd).length)
  end

  def test_case_mapping
    assert_equal("STRASSE", "straße".upcase)
    assert_equal("ı", "I".downcase(:turkic))
    assert_equal(0, "É".casecmp("É"))
    assert("É".casecmp?("é"))
  end

  def test_graphemes
    assert_equal(1, "👩‍👩‍👧".grapheme_clusters.size)
    assert_equal([128_105, 8205], "👩‍👩‍👧".codepoints.first(2))
  end
end

# Strings and symbols.
class StringsTest < Minitest::Test
  def test_edit
    assert_equal("hEllo", "hello".sub("e") { |e| e.upcase })
    assert_equal("a-b", "a b".tr(" ", "-"))
    assert_equal(%w[a b], "a,b".split(","))
    assert_equal(%w[he l lo], "hello".partition("l"))
    assert_equal("az", "ay".succ)
  end

  def test_format
    assert_equal("0x00ff|  1.50|+3|a  ", format("%#06x|%6.2f|%+d|%-3s", 255, 1.5, 3, "a"))
    assert_equal("1010", format("%b", 10))
  end

  def test_frozen_and_shared
    literal = "literal"
    assert_predicate(literal, :frozen?)
    assert_raises(FrozenError) { literal << "x" }
    assert_same(-"interned once", -"interned once")
    copy = +literal
    copy << "!"
    assert_equal(%w[literal literal!], [literal, copy])
  end

  def test_symbols
    name = "made_#{rand(1 << 40)}"
    assert_same(name.to_sym, name.dup.to_sym)
    before = Symbol.all_symbols.size
    2000.times { |i| "dynamic symbol #{i}".to_sym }
    GC.start
    assert_operator(Symbol.all_symbols.size, :<, before + 4000)
  end

  def test_large
    string = "ab" * 1_000_000
    assert_equal(1_000_000, string.count("a"))
    assert_equal(string.reverse.reverse, string)
    assert_nil(string.index("c"))
  end

  def test_stringio_and_scanner
    io = StringIO.new("one\ntwo\n")
    assert_equal(["one\n", 4, "two"], [io.gets, io.pos, io.gets(chomp: true)])
    scanner = StringScanner.new("3 apples")
    assert_equal(["3", " ", "apples", true], [scanner.scan(/\d+/), scanner.getch, scanner.scan(/\w+/), scanner.eos?])
  end

  def test_crypt_and_sum
    assert_equal("ab" + "c".crypt("ab")[2..], "c".crypt("ab"))
    assert_equal(294, "abc".sum)
  end
end

# Regular expressions.
class RegexpTest < Minitest::Test
  def test_groups
    match = /(?<year>\d+)-(?<month>\d+)/.match("on 2024-05")
    assert_equal(["2024", "05", 3], [match[:year], match["month"], match.begin(0)])
    assert_equal({ "year" => "2024", "month" => "05" }, match.named_captures)
    if /(?<here>b+)/ =~ "abbc"
      assert_equal("bb", here)
    end
    assert_equal("a", ::Regexp.last_match.pre_match)
  end

  def test_syntax
    assert_equal(%w[foo], "foobar foobaz".scan(/foo(?=bar)/))
    assert_equal("bar", "foobar"[/(?<=foo)\w+/])
    assert_match(/\A\p{Greek}+\z/, "αβγ")
    assert_match(/\A(?<p>\((?:[^()]|\g<p>)*\))\z/, "(a(b)c)")
    assert_equal("aaa", "aaab"[/a++/])
    assert_nil("ab" =~ /a(?#comment)c/x)
    assert_match(/é/i, "É")
  end

  def test_compiled_late
    pattern = "a{2,3}#{"b?" * 3}"
    assert_equal("aaab", "xaaab"[Regexp.new(pattern)])
    assert_raises(RegexpError) { Regexp.new("(") }
    assert_equal(/a|\./, Regexp.union("a", "."))
    assert_equal("\\[a\\]", Regexp.escape("[a]"))
  end

  def test_thread_locals_of_the_match
    "outer" =~ /o/
    Thread.new { "inner" =~ /n+/ }.join
    assert_equal("o", $~[0])
  end

  def test_backtracking
    assert_nil(("a" * 24) =~ /\A(?>a+)b/)
    assert_equal(5000, ("ab" * 5000).gsub(/a(b)/) { ::Regexp.last_match(1) }.size)
  end

  def test_other_encodings
    assert_equal(0, "\xE9".dup.force_encoding("ISO-8859-1") =~ Regexp.new("\xE9".dup.force_encoding("ISO-8859-1")))
    assert_raises(Encoding::CompatibilityError) { "\xE9".dup.force_encoding("ISO-8859-1") =~ /é/ }
  end
end
# rubocop:enable Style/FormatStringToken, Style/StringConcatenation, Style/SymbolProc
