# frozen_string_literal: true

# Runs one file of the selection and records the outcome of each test as soon as it is known.
#
#     ruby runner.rb RECORD FILE
#
# The record has the form that cpython/runner.py describes.

require "json"
require "minitest"

# Writes outcomes to a file.
class Record
  OUTCOMES = { "." => "ok", "F" => "FAIL", "E" => "ERROR", "S" => "skip" }.freeze

  def initialize(path)
    @file = File.open(path, "a")
    @file.sync = true
  end

  def write(*entry)
    @file.puts(JSON.generate(entry))
  end

  def run(test_class, name)
    id = "#{test_class}.#{name}"
    write(id, "started")
    result = test_class.new(name).run
    warn("== #{id}", result.failures.map(&:message)) unless result.failures.empty?
    write(id, OUTCOMES.fetch(result.result_code))
  end
end

# Tests end by themselves, except where one hangs: a fork must not run the rest of the selection.
record = Record.new(ARGV.shift)
file = ARGV.shift
record.write(File.readlink("/proc/self/exe"), RUBY_DESCRIPTION)
require File.expand_path(file)
Minitest::Runnable.runnables.sort_by(&:name).each do |test_class|
  test_class.instance_methods.grep(/\Atest_/).sort.each { |name| record.run(test_class, name.to_s) }
end
