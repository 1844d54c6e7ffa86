# frozen_string_literal: true

require "minitest"

# Has minitest print, of each test that was skipped, why: tools/run_tests.py collects these lines.
class NotTried < Minitest::AbstractReporter
  def record(result)
    puts "\nnot tried: #{result.failure.message}" if result.skipped?
  end
end

Minitest.extensions << "not_tried"

# Minitest calls this of each of its extensions before the first test.
def Minitest.plugin_not_tried_init(_options)
  reporter << NotTried.new
end
