# frozen_string_literal: true

require "minitest/autorun"
require "fileutils"
require "open3"
require "tmpdir"
require "rbconfig"

# Time zones that TZInfo reads, from the boot archive: they are as TZInfo itself computes them. Every start is a Ruby process
# of its own.
class TimeZonesOfArchiveTest < Minitest::Test
  LIBRARY = File.expand_path("../../ruby/lib", __dir__)
  SYSTEM = "/usr/share/zoneinfo"
  # Changes of the clocks by rules, without and with gaps; none; a zone that has only rules; and one with more offsets.
  ZONES = %w[Europe/Berlin Europe/London Asia/Tokyo UTC America/St_Johns Africa/Casablanca EST5EDT].freeze
  # Prints each zone with all its parts: classes, frozen or not, encodings, and which objects are the same ones.
  PROGRAM = <<~RUBY
    hits = 0
    defined?(Snapboot::Archive) && Snapboot::Archive.on_event { |event, kind, _| hits += 1 if event == :hit && kind == :data }
    require "tzinfo"
    require "./changes" if File.exist?("changes.rb")
    source = TZInfo::DataSources::ZoneinfoDataSource.new(ARGV[0])
    numbers = {}.compare_by_identity
    number = ->(object) { numbers[object] ||= numbers.size }
    offset = lambda do |it|
      values = it.instance_variables.map { |name| [name, it.instance_variable_get(name)] }
      [number[it], it.class, it.frozen?, values, number[it.abbreviation], it.abbreviation.encoding, it.abbreviation.frozen?]
    end
    source.timezone_identifiers.each do |name|
      zone = source.get_timezone_info(name)
      p [name, zone.class, zone.instance_variables]
      next p offset[zone.constant_offset] if zone.respond_to?(:constant_offset)

      p zone.transitions.frozen?
      zone.transitions.each do |it|
        p [number[it], it.class, it.frozen?, it.instance_variables, it.timestamp_value, offset[it.offset], offset[it.previous_offset]]
      end
    end
    $stderr.puts "hits: \#{hits}" if defined?(Snapboot::Archive)
  RUBY

  def setup
    skip "needs TZInfo 2" unless Gem::Specification.any? { |gem| gem.name == "tzinfo" && gem.version.segments.first == 2 }
    @directory = Dir.mktmpdir
    @zones = File.join(@directory, "zones")
    [*ZONES, "iso3166.tab", "zone1970.tab"].each do |name|
      FileUtils.mkdir_p(File.dirname("#{@zones}/#{name}"))
      FileUtils.cp("#{SYSTEM}/#{name}", "#{@zones}/#{name}")
    end
    File.write("#{@directory}/main.rb", PROGRAM)
    sleep 0.03
  end

  def teardown
    FileUtils.rm_rf(@directory) if @directory
  end

  def test_zones_are_as_they_are_read
    same
    assert_equal ZONES.size, hits
  end

  def test_a_zone_that_changes_is_read_anew
    before = same
    FileUtils.cp("#{SYSTEM}/Europe/London", "#{@zones}/Europe/Berlin")
    sleep 0.03
    refute_equal before, same
    FileUtils.rm("#{@zones}/Asia/Tokyo")
    refute_includes same, "Asia/Tokyo"
  end

  # TZInfo computes transitions up to a hundred years from the current one.
  def test_another_year_has_other_transitions
    before = same
    later = { "RUBYOPT" => "-r#{@directory}/later" }
    File.write("#{@directory}/later.rb", "class << Time; alias real now; def now(...) = real(...) + 400 * 86_400; end")
    after = same(later)
    refute_equal before, after
    assert_equal [ZONES.size, ZONES.size], [hits(later), hits]
  end

  def test_what_a_program_changes_counts
    same
    change(<<~RUBY)
      TZInfo.const_get(:AnnualRules).class_eval do
        alias_method :own, :transitions
        def transitions(year) = year > 2100 ? [] : own(year)
      end
    RUBY
    assert_equal 0, hits
    change("class TZInfo::TimezoneOffset; def initialize(*) = raise('its own'); end")
    _, text, status = start({}, archive: true)
    assert_includes text, "its own"
    refute_predicate status, :success?
  end

  def test_code_of_the_library_that_is_edited_counts
    FileUtils.cp_r(Gem::Specification.find_by_name("tzinfo").full_require_paths.first, "#{@directory}/lib")
    path = { "RUBYLIB" => "#{@directory}/lib" }
    before = same(path)
    assert_equal ZONES.size, hits(path)
    rules = "#{@directory}/lib/tzinfo/annual_rules.rb"
    head = "def transitions(year)\n"
    File.write(rules, File.read(rules).sub(head, "#{head}        year = 2030 if year > 2100\n"))
    sleep 0.03
    refute_equal before, same(path)
  end

  private

  def change(text)
    File.write("#{@directory}/changes.rb", text)
    sleep 0.03
    same unless text.include?("raise")
  end

  # The same with and without the archive, in the start that stores and in those that use it. Returns what is printed.
  def same(environment = {})
    plain, = start(environment)
    refute_empty plain
    3.times { assert_equal plain, start(environment, archive: true).first }
    plain
  end

  def hits(environment = {})
    start(environment, archive: true)[1][/^hits: (\d+)$/, 1].to_i
  end

  def start(environment, archive: false)
    environment = { "SNAPBOOT_ARCHIVE" => File.join(@directory, "boot.archive"), "RUBYOPT" => nil, **environment }
    switch = archive ? ["-r#{LIBRARY}/snapboot/setup.rb"] : []
    Open3.capture3(environment, RbConfig.ruby, "-W0", *switch, "main.rb", @zones, chdir: @directory)
  end
end
