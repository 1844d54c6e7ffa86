# frozen_string_literal: true

require "minitest/autorun"
require "fileutils"
require "open3"
require "tmpdir"
require "rbconfig"
require "shellwords"

# The heap of a large boot: as large as it will have to be, early, and else as Ruby has it. Every start is a process of its
# own.
class HeapTest < Minitest::Test
  SETUP = File.expand_path("../../ruby/lib/snapboot/setup.rb", __dir__)
  FILES = 1200
  # Objects that stay, in each file.
  OBJECTS = 100
  # The program prints how many objects have places when a tenth of the files is loaded, whether all objects are right, and
  # whether the collector is as it was.
  PROGRAM = <<~RUBY.freeze
    $kept = []
    #{FILES}.times do |number|
      require "\#{__dir__}/lib/f\#{number}.rb"
      $places = GC.stat(:heap_available_slots) if number == #{FILES / 10}
    end
    puts $places, $kept.flatten == Array.new(#{FILES} * #{OBJECTS}) { |number| "object \#{number % #{OBJECTS}}" }, GC.enable
  RUBY
  # It looks when the boot is large itself.
  LATER = PROGRAM.sub("number == #{FILES / 10}", "number == 520").freeze

  def setup
    skip "the heap of this Ruby is not known" unless RUBY_VERSION.match?(/\A3\.[0-4]\./)

    @directory = Dir.mktmpdir
    FileUtils.mkdir(File.join(@directory, "lib"))
    FILES.times do |number|
      File.write("#{@directory}/lib/f#{number}.rb", "$kept&.push(Array.new(#{OBJECTS}) { |number| \"object \#{number}\" })")
    end
    write(PROGRAM)
    sleep 0.03
  end

  def teardown
    FileUtils.rm_rf(@directory) if @directory
  end

  def test_the_heap_is_large_early_when_the_archive_knows_that_it_will_be
    first = places
    # Nearly all objects stay, until the program ends.
    assert_operator places, :>, FILES * OBJECTS
    assert_operator first, :<, FILES * OBJECTS / 2
  end

  def test_a_boot_of_which_nothing_is_known_gets_room_when_it_is_large
    write(LATER)
    as_ruby_has_it = places("RUBY_GC_HEAP_FREE_SLOTS" => "5000")
    FileUtils.rm_f("#{@directory}/boot.archive")
    assert_operator places, :>, as_ruby_has_it * 1.5
  end

  def test_the_room_stays_until_it_is_needed_and_no_longer
    places
    write(<<~RUBY)
      [0...100, 100...#{FILES}].each do |numbers|
        numbers.each { |number| require "\#{__dir__}/lib/f\#{number}.rb" }
        4.times { GC.start }
        puts GC.stat(:heap_available_slots)
      end
    RUBY
    early, finally = run_ruby.map(&:to_i)
    assert_operator early, :>, FILES * OBJECTS
    assert_operator finally, :<, FILES * OBJECTS
  end

  def test_who_sets_the_collector_has_it_as_set
    places
    assert_operator places("RUBY_GC_HEAP_FREE_SLOTS" => "5000"), :<, FILES * OBJECTS / 2
  end

  def test_memory_that_a_known_boot_takes_brings_about_no_collection
    # Some 50 MB in all, of which at most 64 count for nothing.
    program = PROGRAM.sub("puts $places", "puts GC.stat(:major_gc_count) + GC.stat(:minor_gc_count)")
    FILES.times do |number|
      File.write("#{@directory}/lib/f#{number}.rb", "\n$x = 'x' * 40_000", mode: "a")
    end
    write(program)
    sleep 0.03
    cold = run_ruby.first.to_i
    assert_operator run_ruby.first.to_i, :<, cold
    as_set = run_ruby("RUBY_GC_HEAP_FREE_SLOTS" => "5000")
    known = run_ruby
    assert_operator as_set.first.to_i, :>, known.first.to_i, [as_set, known].inspect
  end

  # Objects of 80 bytes that do not stay fill their heap sooner than those that stay fill theirs.
  def test_each_heap_has_room_for_what_is_made_in_it
    unless GC.respond_to?(:stat_heap) && GC.stat_heap(0).key?(:total_allocated_objects)
      skip "this Ruby has one heap, or does not count the objects of each"
    end
    FILES.times { |number| File.write("#{@directory}/lib/f#{number}.rb", "\n600.times { \"\#{$x}\" }", mode: "a") }
    collections = PROGRAM.sub("puts $places", "puts GC.count - $places").sub("GC.stat(:heap_available_slots)", "GC.count")
    write("$x = 'x' * 50; #{collections}")
    sleep 0.03
    cold = places
    Array.new(2) { places }
    assert_operator places, :<=, cold / 3
  end

  def test_where_memory_is_limited_the_heap_is_left_alone
    places
    assert_operator places({}, "ulimit -v 4000000; "), :<, FILES * OBJECTS / 2
  end

  def test_a_boot_with_nothing_to_compile_tells_the_next_one_too
    places("RUBY_GC_HEAP_FREE_SLOTS" => "5000")
    places
    assert_operator places, :>, FILES * OBJECTS
  end

  def test_what_is_known_is_not_written_down_again
    Array.new(2) { places }
    size = File.size("#{@directory}/boot.archive")
    places
    assert_equal size, File.size("#{@directory}/boot.archive")
  end

  def test_data_of_the_program_do_not_count
    write(LATER.sub("$kept = []", "$kept = []; data = Array.new(1_500_000) { Object.new }; 4.times { GC.start }"))
    assert_operator places, :<, 3_000_000
    write(PROGRAM)
    assert_operator places, :<, 500_000
  end

  def test_a_collector_that_is_off_stays_off
    places
    write("GC.disable\n#{PROGRAM}")
    output = run_ruby
    assert_equal %w[true true], output.last(2)
  end

  def test_a_small_boot_of_the_same_application_has_a_small_heap
    places
    write(PROGRAM.sub("#{FILES}.times", "20.times").sub("number == #{FILES / 10}", "true"))
    assert_operator run_ruby.first.to_i, :<, FILES * OBJECTS / 2
  end

  private

  # Places in the heap at a tenth of the boot.
  def places(environment = {}, limit = "")
    *places, is_right, was_off = run_ruby(environment, limit)
    assert_equal %w[true false], [is_right, was_off]
    places.first.to_i
  end

  def run_ruby(environment = {}, limit = "")
    archive = { "SNAPBOOT_ARCHIVE" => "#{@directory}/boot.archive", "SNAPBOOT_LOG" => "1", "RUBYOPT" => nil }
    command = "#{limit}exec #{[RbConfig.ruby, "-r#{SETUP}", "#{@directory}/main.rb"].shelljoin}"
    output, status = Open3.capture2e(archive.merge(environment), "sh", "-c", command)
    assert_predicate status, :success?, output
    output.lines(chomp: true)
  end

  def write(program)
    File.write("#{@directory}/main.rb", program)
  end
end
