# frozen_string_literal: true

require "minitest/autorun"
require "fileutils"
require "open3"
require "tmpdir"
require "rbconfig"

# Searches of whole directories, from the boot archive: their answers are as they would be without, in the start that fills
# the archive, in those that use it, and after every kind of change. Every start is a Ruby process of its own.
class SearchesTest < Minitest::Test
  LIBRARY = File.expand_path("../../ruby/lib", __dir__)

  def setup
    @directory = Dir.mktmpdir
    @top = File.join(@directory, "top")
    write("top/deep/sorted.rb", "")
    write("top/deep/er/other.rb", "")
    write("main.rb", self.class::PROGRAM)
    sleep 0.03
  end

  def teardown
    FileUtils.rm_rf(@directory)
  end

  # The same with and without the archive, three times; answered from it from the second start on.
  def same(events: :hit)
    plain = run_ruby
    3.times do |start|
      archived = run_ruby(archive: true).gsub(/^(events:|snapboot:.*can't dump).*\n/, "")
      assert_equal plain, archived, "start #{start}"
    end
    assert_match(/^events: #{events}$/, run_ruby(archive: true))
    plain
  end

  def write(path, text)
    path = File.join(@directory, path)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
  end

  def run_ruby(archive: false)
    environment = {
      "SNAPBOOT_ARCHIVE" => File.join(@directory, "boot.archive"), "SNAPBOOT_LOG" => "1", "RUBYLIB" => @top, "RUBYOPT" => nil
    }
    switch = archive ? ["-r#{LIBRARY}/snapboot/setup.rb"] : []
    output, status = Open3.capture2e(environment, RbConfig.ruby, *switch, "main.rb", @top, chdir: @directory)
    assert_predicate status, :success?, output
    output
  end

  # What a program begins with: it tells at its end what became of the look-ups of the search.
  EVENTS = <<~RUBY
    # From Ruby 3.2 on, did_you_mean adds to the detailed message alone.
    def suggested(error)
      return error.message unless error.respond_to?(:detailed_message)

      error.detailed_message(highlight: false).sub(" (LoadError)", "")
    end

    if defined?(Snapboot::Archive)
      events = []
      Snapboot::Archive.on_event { |event, kind, name| events << event if kind == :memo && NAMES.include?(name) }
      at_exit { puts "events: \#{events.join(" ")}" }
    end
  RUBY
end

# What did_you_mean suggests for features that are nowhere.
class SuggestionsTest < SearchesTest
  PROGRAM = <<~RUBY.freeze
    NAMES = ["did_you_mean"]
    #{EVENTS}
    begin
      require "deep/sroted"
    rescue LoadError => e
      puts suggested(e)
    end
  RUBY

  def setup
    skip "this Ruby suggests no features" unless defined?(DidYouMean::RequirePathChecker)

    super
  end

  def test_a_suggestion_is_remembered
    assert_equal "cannot load such file -- deep/sroted\nDid you mean?  deep/sorted\n", same
  end

  {
    "a better name" => ->(test) { test.write("top/deep/srted.rb", "") },
    "a name that is gone" => ->(test) { FileUtils.rm("#{test.top}/deep/sorted.rb") },
    "a directory that is gone" => ->(test) { FileUtils.rm_rf("#{test.top}/deep") },
    "another name in a new directory" => ->(test) { test.write("top/deep/sroted/sroted.rb", "") },
    "another extension" => ->(test) { FileUtils.mv("#{test.top}/deep/sorted.rb", "#{test.top}/deep/sorted.txt") },
    "a link" => ->(test) { FileUtils.ln_s("sorted.rb", "#{test.top}/deep/srted.rb") }
  }.each do |what, change|
    define_method("test_after_#{what.tr(" ", "_")}_it_is_looked_for_anew") do
      before = same
      change.call(self)
      sleep 0.03
      after = same
      refute_equal before, after unless what.start_with?("another name")
    end
  end

  def test_several_questions_are_remembered
    write("main.rb", <<~RUBY)
      NAMES = ["did_you_mean"]
      #{EVENTS}
      %w[deep/sroted deep/er/otehr deep/sroted].each do |feature|
        require feature
      rescue LoadError => e
        puts suggested(e)
      end
    RUBY
    run_ruby(archive: true)
    assert_includes same, "deep/er/other"
  end

  def test_no_more_questions_are_remembered_than_a_program_may_have
    write("main.rb", PROGRAM.sub('"deep/sroted"', '"deep/sroted\#{Process.pid}"'))
    size = Array.new(24) do
      run_ruby(archive: true)
      File.size("#{@directory}/boot.archive")
    end
    assert_equal 1, size.last(4).uniq.size, size.inspect
  end

  def test_a_program_that_changes_how_names_are_compared_is_heard
    same
    write("main.rb", <<~RUBY)
      class DidYouMean::TreeSpellChecker
        def correct(_) = ["its own"]
      end
      #{PROGRAM}
    RUBY
    assert_includes same(events: ""), "its own"
    write("main.rb", <<~RUBY)
      class DidYouMean::RequirePathChecker
        def corrections = ["the last word"]
      end
      #{PROGRAM}
    RUBY
    assert_includes same(events: ""), "the last word"
  end

  # What a program does that is no ordinary search, between the first lines and the question.
  RENAME = 'File.rename(ARGV[0] + "/deep/sorted.rb", ARGV[0] + "/deep/serted.rb"); '
  SLEEP = "sleep 0.05; "
  ASK = 'begin; require "deep/srted"; rescue LoadError => e; suggested(e); end; '
  private_constant :RENAME, :SLEEP, :ASK

  {
    "has searched before a change" => "DidYouMean::RequirePathChecker.requireables; #{RENAME}#{SLEEP}",
    "has asked before a change" => "#{ASK}#{RENAME}#{SLEEP}",
    "has searched right after a change" => "#{RENAME}#{ASK}#{RENAME.sub("sorted", "other")}#{SLEEP}",
    "has a list of its own" => "def (DidYouMean::RequirePathChecker).requireables = %w[deep/sroted_]",
    "asks a checker of its own" => <<~RUBY,
      checker = Class.new(DidYouMean::RequirePathChecker) { def self.requireables = %w[deep/sroted_] }
      DidYouMean.respond_to?(:correct_error) ? DidYouMean.correct_error(LoadError, checker) : exit
    RUBY
    "changes how leaves are found" => "class DidYouMean::TreeSpellChecker; def find_leaves(*) = %w[its own]; end"
  }.each do |what, change|
    define_method("test_a_program_that_#{what.tr(" ", "_")}_leaves_others_alone") do
      FileUtils.touch("#{@top}/deep/other.rb")
      write("main.rb", PROGRAM.sub("begin", "#{change}\nbegin"))
      run_ruby(archive: true)
      write("main.rb", PROGRAM)
      sleep 0.03
      same
    end
  end

  def test_nothing_is_remembered_of_relative_directories
    write("elsewhere/top/deep/srted.rb", "")
    @top = "top"
    write("main.rb", PROGRAM.sub("begin", "Dir.chdir('elsewhere')\nbegin"))
    same(events: "")
    write("main.rb", PROGRAM)
    same(events: "")
  end

  attr_reader :top
end

# The time zones that TZInfo finds.
class TimeZonesTest < SearchesTest
  # As TZInfo 2 has it.
  TZINFO = <<~RUBY
    module TZInfo
      module DataSources
        class ZoneinfoDataSource
          attr_reader :timezone_identifiers

          def initialize(directory)
            @zoneinfo_dir = directory
            @timezone_identifiers = load_timezone_identifiers.freeze
          end

          private

          def load_timezone_identifiers
            index = []
            enum_timezones([]) { |identifier| index << identifier.join("/").freeze }
            index.sort!
          end

          def enum_timezones(directory, &block)
            Dir.each_child(File.join(@zoneinfo_dir, *directory)) do |entry|
              path = directory + [entry]
              full = File.join(@zoneinfo_dir, *path)
              File.directory?(full) ? enum_timezones(path, &block) : yield(path)
            end
          end
        end
      end
    end
  RUBY
  PROGRAM = <<~RUBY.freeze
    NAMES = [ARGV[0]]
    #{EVENTS}
    require "./zoneinfo_data_source"
    names = TZInfo::DataSources::ZoneinfoDataSource.new(ARGV[0]).timezone_identifiers
    p names, names.map { |name| [name.encoding, name.frozen?] }.uniq, names.frozen?
  RUBY

  def setup
    super
    write("zoneinfo_data_source.rb", TZINFO)
    sleep 0.03
  end

  def test_zones_are_remembered_until_a_name_changes
    assert_includes same, "deep/er/other.rb"
    write("top/deep/er/Zürich", "")
    sleep 0.03
    assert_includes same, "Zürich"
    FileUtils.ln_s("deep", "#{@top}/link")
    sleep 0.03
    assert_includes same, "link/er/Zürich"
    FileUtils.rm_rf("#{@top}/deep")
    sleep 0.03
    refute_includes same, "er"
  end

  def test_a_class_derived_from_it_looks_for_itself
    derived = PROGRAM.sub("names =", <<~RUBY.strip)
      class Derived < TZInfo::DataSources::ZoneinfoDataSource
        private def enum_timezones(*) = yield(["its", "own"])
      end
      names =
    RUBY
    write("main.rb", derived.sub("ZoneinfoDataSource.new", "ZoneinfoDataSource.itself; names = Derived.new"))
    assert_includes same(events: ""), "its/own"
    write("main.rb", PROGRAM)
    refute_includes same, "its/own"
  end

  def test_an_answer_that_cannot_be_kept_is_given
    unkept = "index.sort! && Class.new(Array) { def freeze = self }.new([])"
    write("zoneinfo_data_source.rb", TZINFO.sub("index.sort!", unkept))
    sleep 0.03
    same(events: :miss)
  end

  def test_names_that_are_not_frozen_are_not_remembered
    same
    write("zoneinfo_data_source.rb", TZINFO.sub("index.sort!", 'index.sort!.unshift("more")'))
    sleep 0.03
    assert_includes same(events: :stale), "more"
  end
end
