# frozen_string_literal: true

# What a frozen process depends on the architecture for: signals, threads, forks, fibers, clocks.
require "json"
require "open3"
require "set"
require "fiddle"

puts "arguments #{ARGV.inspect} #{RUBY_PLATFORM}"
seen = Queue.new
trap("USR1") { seen << "USR1" }
Process.kill("USR1", Process.pid)
puts "signal #{seen.pop}"
puts "threads #{Array.new(8) { |number| Thread.new { (1..(1000 * number)).sum } }.map(&:value).inspect}"
puts "fork #{Process.wait2(fork { exit! 7 })[1].exitstatus}"
puts "popen #{IO.popen(%w[uname -m], &:read)} #{Open3.capture2("cat", stdin_data: "text")[0]}"
fibers = Array.new(4) do |number|
  Fiber.new do
    3.times { |step| Fiber.yield(number * step) }
    :end
  end
end
puts "fibers #{Array.new(4) { fibers.map(&:resume) }.inspect}"
counted = Enumerator.new do |into|
  number = 0
  loop { into << (number += 1) }
end
puts "enumerator #{Array.new(3) { counted.next }.inspect}"
length = Fiddle::Function.new(Fiddle::Handle::DEFAULT["strlen"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_SIZE_T)
puts "call #{length.call("five!")}"
puts "floats #{JSON.generate([0.1 + 0.2, 2**0.5, 1e100])}"
begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
puts "clocks #{begun.positive?} #{Time.now.year > 2000} #{Process.clock_gettime(Process::CLOCK_MONOTONIC) >= begun}"
def deep(depth) = depth.zero? ? 0 : 1 + deep(depth - 1)
puts "frames #{deep(5000)}"
begin
  deep(-1)
rescue SystemStackError
  puts "stack overflow"
end
begin
  raise ArgumentError, "raised"
rescue ArgumentError => e
  puts "exception #{e.message}"
end
catch(:out) { throw :out }
exit 3
