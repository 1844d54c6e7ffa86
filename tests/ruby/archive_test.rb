# frozen_string_literal: true

require "minitest/autorun"
require "fileutils"
require "open3"
require "tmpdir"
require "rbconfig"

# Snapboot::Archive, as the parts that build on it use it: every case is a Ruby process of its own.
class ArchiveTest < Minitest::Test
  LIBRARY = File.expand_path("../../ruby/lib", __dir__)

  def setup
    @directory = Dir.mktmpdir
    @source = File.join(@directory, "source.txt")
    write("one")
  end

  def teardown
    FileUtils.rm_rf(@directory)
  end

  STORE = <<~RUBY
    identity = A.identity(SOURCE)
    A.store(:memo, SOURCE, [[:file, SOURCE, identity], [:absent, SOURCE + ".no"], [:variable, "VAR", ENV["VAR"]]], "kept")
  RUBY
  FETCH = "p A.fetch(:memo, SOURCE)"

  def test_what_one_process_stores_the_next_one_fetches
    run_ruby(STORE)
    assert_equal '"kept"', run_ruby(FETCH)
    assert_equal "[true, #{Encoding::BINARY.inspect}]", run_ruby("q = A.fetch(:memo, SOURCE); p [q.frozen?, q.encoding]")
  end

  def test_a_context_is_part_of_the_key
    run_ruby(STORE.sub('"kept"', '"kept", context: "Ruby"'))
    assert_equal "nil", run_ruby(FETCH)
    assert_equal '"kept"', run_ruby('p A.fetch(:memo, SOURCE, context: "Ruby")')
  end

  def test_what_depends_on_something_that_has_changed_is_not_fetched
    run_ruby(STORE)
    assert_equal "nil", run_ruby(FETCH, "VAR" => "set")
    write("two")
    assert_equal "nil", run_ruby(FETCH)
    write("one")
    assert_equal '"kept"', run_ruby(FETCH)
    write("appears", "#{@source}.no")
    assert_equal "nil", run_ruby(FETCH)
  end

  def test_events_tell_what_became_of_a_look_up
    tell = "A.on_event { |event, kind, name| p [event, kind, name == SOURCE] }; A.fetch(:memo, SOURCE)"
    assert_equal "[:miss, :memo, true]", run_ruby(tell)
    run_ruby(STORE)
    assert_equal "[:hit, :memo, true]", run_ruby(tell)
    File.utime(0, 0, @source)
    assert_equal "[:revalidated, :memo, true]", run_ruby(tell)
    write("other")
    assert_equal "[:stale, :memo, true]", run_ruby(tell)
  end

  def test_a_forked_child_stores_what_it_has_worked_out
    run_ruby("Process.wait(fork { #{STORE} })")
    assert_equal "\"kept\"", run_ruby(FETCH)
  end

  def test_without_an_archive_everything_is_a_no_op
    assert_equal "[false, nil, nil, nil]", run_ruby("p [A.enabled?, A.identity(SOURCE), #{FETCH[2..]}, A.flush]",
                                                    "SNAPBOOT_ARCHIVE" => "off")
  end

  def test_a_read_only_archive_is_read_and_not_written
    run_ruby(STORE)
    before = File.binread(archive)
    assert_equal '"kept"', run_ruby(STORE.sub("kept", "new") + FETCH, "SNAPBOOT_ARCHIVE_READONLY" => "1")
    assert_equal before, File.binread(archive)
  end

  def test_an_archive_that_others_may_write_is_not_used_and_the_reason_is_told_on_request
    run_ruby(STORE)
    File.chmod(0o622, archive)
    assert_equal "nil", run_ruby(FETCH)
    _, errors = Open3.capture3(environment("SNAPBOOT_LOG" => "1"), *command(FETCH))
    assert_match(/snapboot: no archive: .*mode/, errors)
  end

  def test_the_summary_counts_look_ups
    _, errors = Open3.capture3(environment("SNAPBOOT_STATS" => "1"), *command(FETCH))
    assert_match(/\Asnapboot: \d+ hit, [1-9]\d* miss, /, errors)
  end

  private

  def archive
    File.join(@directory, "boot.archive")
  end

  # Writes a file, and waits until what it holds can be stored.
  def write(text, path = @source)
    File.write(path, text)
    sleep 0.03
  end

  def environment(variables)
    { "SNAPBOOT_ARCHIVE" => archive, "RUBYOPT" => nil }.merge(variables)
  end

  def command(code)
    [RbConfig.ruby, "-w", "-I", LIBRARY, "-e", <<~RUBY]
      require "snapboot/setup"
      A = Snapboot::Archive
      SOURCE = #{@source.dump}
      #{code}
    RUBY
  end

  # What the code prints, with the archive of this test.
  def run_ruby(code, variables = {})
    output, errors, status = Open3.capture3(environment(variables), *command(code))
    assert_equal ["", true], [errors, status.success?]
    output.strip
  end
end
