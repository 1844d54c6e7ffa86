# frozen_string_literal: true

# Prints how many megabytes of this process are in memory.

puts Integer(File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1]) * 1024 / 1e6
