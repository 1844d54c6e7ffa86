# frozen_string_literal: true

# rubocop:disable Security/MarshalLoad, Security/YAMLLoad, Style/OpenStructUse, Style/StringConcatenation

# Values: what turns them into bytes and back, numbers, times, random ones.

require "base64"
require "bigdecimal/util"
require "csv"
require "date"
require "digest"
require "erb"
require "json"
require "matrix"
require "openssl"
require "ostruct"
require "prime"
require "pstore"
require "securerandom"
require "set"
require "time"
require "tmpdir"
require "yaml"
require "zlib"

# Marshal.
class MarshalTest < Minitest::Test
  Point = Struct.new(:x, :y)

  def test_round_trip
    [nil, 1, 1 << 80, 1.5, "é", :sym, [1, [2]], { a: 1 }, 1..3, Point.new(1, 2), Time.at(0, 5), 3r, 2i, String,
     Kernel].each do |value|
      assert_equal([value], [Marshal.load(Marshal.dump(value))])
    end
  end

  def test_fixed_bytes
    assert_equal("\x04\b[\ai\x06I\"\x06a\x06:\x06ET".b, Marshal.dump([1, "a"]))
    assert_equal({ "k" => [1, nil, true] }, Marshal.load("\x04\b{\x06I\"\x06k\x06:\x06ET[\bi\x060T"))
  end

  def test_refusals
    assert_raises(TypeError) { Marshal.dump(proc {}) }
    assert_raises(TypeError) { Marshal.dump($stdout) }
    assert_raises(ArgumentError) { Marshal.load("\x04\bo:\fMissingX\0") }
  end

  def test_shared_references
    inner = "shared"
    loaded = Marshal.load(Marshal.dump([inner, inner]))
    assert_same(*loaded)
  end
end

# JSON, YAML, CSV and other forms of data.
class FormatsTest < Minitest::Test
  def test_json
    value = { "a" => [1, 2.5, nil, true, "ü\n\u2028"], "b" => {} }
    assert_equal(value, JSON.parse(JSON.generate(value)))
    assert_equal("{\n  \"a\": 1\n}", JSON.pretty_generate(a: 1))
    assert_equal([1], JSON.parse("[1]", symbolize_names: true))
    assert_raises(JSON::ParserError) { JSON.parse("{") }
    assert_raises(JSON::NestingError) { JSON.parse(("[" * 101) + ("]" * 101)) }
  end

  def test_yaml
    value = { "list" => [1, "two", 3.0, nil, true], "time" => "12:30", "text" => "a\nb\n" }
    assert_equal(value, YAML.safe_load(YAML.dump(value)))
    assert_equal({ a: 1 }, YAML.load("---\n:a: 1\n", permitted_classes: [Symbol]))
    assert_equal([1, 1], YAML.load("- &x 1\n- *x\n", aliases: true))
    assert_raises(Psych::DisallowedClass) { YAML.safe_load("--- !ruby/object:Object {}\n") }
    assert_raises(Psych::SyntaxError) { YAML.load("a: [") }
  end

  def test_csv
    table = CSV.parse("a,b\n1,\"x,\"\"y\"\"\"\n", headers: true)
    assert_equal(["1", "x,\"y\""], table.first.fields)
    assert_equal("1;\"a;b\"\n", CSV.generate_line([1, "a;b"], col_sep: ";"))
    assert_equal([[1, 2]], CSV.parse("1,2", converters: :integer))
    assert_raises(CSV::MalformedCSVError) { CSV.parse("a\"b") }
  end

  def test_erb
    assert_equal("1 2 \n",
                 ERB.new("<% [1, 2].each do |i| -%>\n<%= i %> <% end %>\n", trim_mode: "-").result.gsub(/^\s+/, ""))
    assert_equal("&lt;a&gt;", ERB::Util.html_escape("<a>"))
  end

  def test_base64_and_pack
    assert_equal("aGk=\n", Base64.encode64("hi"))
    assert_equal([1, 65_535, "ab"], [1, 65_535, "ab"].pack("CnA4").unpack("CnA4"))
    assert_equal([1.5, -2], [1.5, -2].pack("Gq>").unpack("Gq>"))
  end

  def test_pstore
    Dir.mktmpdir do |place|
      store = PStore.new("#{place}/store")
      store.transaction { store[:key] = [1, 2] }
      assert_equal([1, 2], store.transaction(true) { store[:key] })
    end
  end
end

# Numbers of all kinds, sets and hashes.
class NumbersTest < Minitest::Test
  def test_integers
    assert_equal(2_432_902_008_176_640_000 * 21, (1..21).inject(:*))
    assert_equal(1, 7.pow(100, 5))
    assert_equal(10**20, Integer.sqrt(10**40))
    assert_equal("1" + ("0" * 3000), (10**3000).to_s)
  end

  def test_floats
    assert_equal("0.30000000000000004", (0.1 + 0.2).to_s)
    assert_equal(["1.0e+23", "-0.0", "5.0e-324"], [1e23, -0.0, 5e-324].map(&:to_s))
    assert_in_delta(Math::PI, 4 * Math.atan(1))
    assert_equal([2, 2, 4], [1.5, 2.5, 3.5].map { |f| f.round(half: :even) })
    assert_raises(FloatDomainError) { Float::NAN.to_i }
  end

  def test_rational_complex
    assert_equal(5/6r, (1/2r) + (1/3r))
    assert_equal(-1, 1i**2)
  end

  def test_bigdecimal
    assert_equal("0.1e1", (BigDecimal("0.1") * 10).to_s)
    assert_equal(BigDecimal("0.33333"), (1.to_d / 3).round(5))
    assert_raises(ArgumentError) { BigDecimal("x") }
  end

  def test_matrix_and_prime
    assert_equal(-2, Matrix[[1, 2], [3, 4]].det)
    assert_equal([[2, 2], [3, 1]], Prime.prime_division(12))
  end

  def test_set
    assert_equal(Set[1, 2, 3], Set[1, 2] | [3])
    assert(Set[1].subset?(Set[1, 2]))
    assert_equal("#<Set: {1}>", Set[1].inspect)
  end

  def test_ostruct
    assert_equal([1, nil], OpenStruct.new(a: 1).then { |o| [o.a, o.b] })
  end

  def test_hash_of_strings
    table = (1..5000).to_h { |i| ["key #{i}", i] }
    assert_equal(5000, table["key 5000"])
    assert_equal("a".hash, "a".dup.hash)
    assert_equal([1, 2].hash, [1, 2].hash)
  end
end

# Digests, OpenSSL, Zlib.
class CryptoTest < Minitest::Test
  def test_digest
    assert_equal("900150983cd24fb0d6963f7d28e17f72", Digest::MD5.hexdigest("abc"))
    assert_equal("ba7816bf", Digest::SHA256.hexdigest("abc")[0, 8])
    assert_equal(Digest::SHA512.digest("a" * 1000), OpenSSL::Digest.digest("SHA512", "a" * 1000))
  end

  def test_hmac
    assert_equal("80070713463e7749b90c2dc24911e275",
                 OpenSSL::HMAC.hexdigest("MD5", "key", "The quick brown fox jumps over the lazy dog"))
  end

  def test_cipher
    cipher = OpenSSL::Cipher.new("aes-256-gcm").encrypt
    key = cipher.random_key
    nonce = cipher.random_iv
    sealed = cipher.update("secret") + cipher.final
    open = OpenSSL::Cipher.new("aes-256-gcm").decrypt
    open.key = key
    open.iv = nonce
    open.auth_tag = cipher.auth_tag
    assert_equal("secret", open.update(sealed) + open.final)
  end

  def test_signature
    key = OpenSSL::PKey::EC.generate("prime256v1")
    assert(key.verify("SHA256", key.sign("SHA256", "text"), "text"))
    refute(key.verify("SHA256", key.sign("SHA256", "text"), "other"))
  end

  def test_tls
    key = OpenSSL::PKey::EC.generate("prime256v1")
    certificate = OpenSSL::X509::Certificate.new
    certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
    certificate.public_key = key
    certificate.not_before = Time.now - 60
    certificate.not_after = Time.now + 60
    certificate.sign(key, "SHA256")
    near, far = UNIXSocket.pair
    server = Thread.new do
      context = OpenSSL::SSL::SSLContext.new
      context.cert = certificate
      context.key = key
      OpenSSL::SSL::SSLSocket.new(far, context).accept.then { |tls| tls.puts(tls.gets.upcase) || tls.close }
    end
    client = OpenSSL::SSL::SSLSocket.new(near).connect
    client.puts("over tls")
    assert_equal("OVER TLS\n", client.gets)
    server.join
  end

  def test_zlib
    text = "abc" * 10_000
    assert_equal(text, Zlib.inflate(Zlib.deflate(text)))
    assert_equal(text, Zlib.gunzip(Zlib.gzip(text)))
    assert_equal(891_568_578, Zlib.crc32("abc"))
    assert_raises(Zlib::Error) { Zlib.inflate("nonsense") }
  end
end

# Random values: seeded ones repeat, others do not.
class RandomTest < Minitest::Test
  def test_seeded
    assert_equal([44, 47, 64], Random.new(0).then { |random| Array.new(3) { random.rand(100) } })
    assert_equal([3, 1, 2].shuffle(random: Random.new(5)), [3, 1, 2].shuffle(random: Random.new(5)))
    srand(3)
    first = rand
    srand(3)
    assert_in_delta(first, rand, 0)
  end

  def test_unseeded
    refute_equal(Random.new.rand(1 << 64), Random.new.rand(1 << 64))
    refute_equal(SecureRandom.hex(16), SecureRandom.hex(16))
    refute_equal(Random.bytes(16), Random.urandom(16))
    assert_match(/\A\h{8}(-\h{4}){3}-\h{12}\z/, SecureRandom.uuid)
    assert_includes([1, 2, 3], [1, 2, 3].sample)
  end

  def test_openssl
    refute_equal(OpenSSL::Random.random_bytes(16), OpenSSL::Random.random_bytes(16))
  end
end

# Times, zones, clocks, dates.
class TimesTest < Minitest::Test
  def in_zone(name)
    was = ENV["TZ"]
    ENV["TZ"] = name
    yield
  ensure
    ENV["TZ"] = was
  end

  def test_zones
    assert_equal("1970-01-01 01:00:00 +0100", in_zone("Europe/Berlin") { Time.at(0).to_s })
    assert_equal("1969-12-31 19:00:00 -0500", in_zone("America/New_York") { Time.at(0).to_s })
    assert_equal("CEST", in_zone("Europe/Berlin") { Time.new(2020, 7, 1).zone })
  end

  def test_arithmetic
    time = Time.utc(2024, 2, 29, 23, 59, 59.5)
    assert_equal("2024-03-01 00:00:00 UTC", (time + 0.5).to_s)
    assert_equal(500_000_000, time.nsec)
    assert_equal("2024-02-29T23:59:59Z", time.iso8601)
    assert_equal(time.to_i, Time.parse("2024-02-29T23:59:59Z").to_i)
    assert_equal("Thu 060", time.strftime("%a %j"))
    assert_equal(2000, Time.strptime("2000", "%Y").year)
  end

  def test_clocks
    first = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    sleep(0.01)
    assert_operator(Process.clock_gettime(Process::CLOCK_MONOTONIC) - first, :>=, 0.01)
    assert_operator(Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID), :<, 60)
    assert_in_delta(Time.now.to_f, Process.clock_gettime(Process::CLOCK_REALTIME), 60)
  end

  def test_date
    assert_equal(Date.new(2024, 2, 29), Date.new(2024, 1, 31) >> 1)
    assert_equal("2024-W09", Date.new(2024, 2, 29).strftime("%G-W%V"))
    assert_equal(366, (Date.new(2025) - Date.new(2024)).to_i)
    assert_raises(Date::Error) { Date.new(2023, 2, 29) }
    assert_equal(DateTime.new(2020, 1, 2, 3, 4, 5), DateTime.parse("2020-01-02T03:04:05"))
  end
end
# rubocop:enable Security/MarshalLoad, Security/YAMLLoad, Style/OpenStructUse, Style/StringConcatenation
