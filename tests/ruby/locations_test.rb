# frozen_string_literal: true

require "digest"
require "fileutils"
require "json"
require "minitest/autorun"
require "tmpdir"
require_relative "../../ruby/lib/snapboot/archive/pure/location"

# Where programs and their archives are: the cases that crates/archive is held to, too.
class PlacesTest < Minitest::Test
  CASES = JSON.parse(File.read("#{__dir__}/../archive/locations.json")).fetch("cases")

  CASES.each do |row|
    define_method("test_#{row.fetch("what").tr(" ", "_")}") do
      Dir.mktmpdir do |directory|
        top = File.realpath(directory)
        make(top, row)
        filled = row.transform_values { |value| value.is_a?(String) ? value.gsub("TOP", top) : value }
        found = Snapboot::Archive::Pure::Application.new(*filled.values_at("gemfile", "script", "cwd"))
        assert_equal filled["root"], found.root
        place = found.place(*filled.values_at("cache_home", "home")) { |text| Digest::SHA256.digest(text) }
        check filled["place"], place
      end
    end
  end

  private

  def make(top, row)
    row.fetch("directories").each { |name| FileUtils.mkdir_p("#{top}/#{name}") }
    row.fetch("files").each do |name|
      FileUtils.mkdir_p(File.dirname("#{top}/#{name}"))
      FileUtils.touch("#{top}/#{name}")
    end
  end

  def check(expected, place)
    return assert_nil place unless expected

    assert_equal expected.sub(/\{(.*)\}/) { Digest::SHA256.hexdigest(Regexp.last_match(1))[0, 16] }, place
  end
end
