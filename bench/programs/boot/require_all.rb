# frozen_string_literal: true

# Requires c1 to cCOUNT, which lie in the last of ENTRIES folders in front of the load path, where -I and Bundler put theirs;
# prints what ASK says.
#
#   ruby require_all.rb TOP ENTRIES COUNT ASK     TOP: workload load-path; ASK: count, or rss (megabytes, at the end)

top, entries, count, ask = ARGV
$LOAD_PATH.unshift(*(1...Integer(entries)).map { |number| "#{top}/other/#{number}" } + ["#{top}/full"])
before = $LOADED_FEATURES.size
(1..Integer(count)).each { |number| require "c#{number}" }
case ask
when "count" then puts $LOADED_FEATURES.size - before
when "rss" then puts Integer(File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1]) * 1024 / 1e6
else abort "ASK must be count or rss, not #{ask}"
end
