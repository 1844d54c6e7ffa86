#!/usr/bin/env ruby
# frozen_string_literal: true

# Sums up a web server's access log, as text, JSON or HTML.
# The ordinary way, and frozen:
#
#   ruby traffic.rb access.log
#
#   snapboot freeze -o traffic.img --preload optparse,json,erb,time -- ruby traffic.rb
#   ./traffic.img --json access.log

require "erb"
require "json"
require "optparse"
require "time"

LINE = /\A(?<host>\S+) \S+ \S+ \[(?<at>[^\]]+)\] "(?<verb>\S+) (?<path>\S+)[^"]*" (?<status>\d{3}) (?<bytes>\d+)/

PAGE = ERB.new(<<~HTML, trim_mode: "-")
  <h1>Traffic of <%= day %></h1>
  <table>
  <%- paths.each do |path, hits| -%>
    <tr><td><%= ERB::Util.html_escape(path) %></td><td><%= hits %></td></tr>
  <%- end -%>
  </table>
HTML

# How often each value of a field occurs.
def counts(entries, field)
  entries.map { |entry| entry[field] }.tally
end

# The day that an entry was written, as 2025-03-03.
def day_of(entry)
  Time.strptime(entry[:at], "%d/%b/%Y:%H:%M:%S %z").to_date.iso8601
end

# What one log amounts to: requests by path and by status, and bytes sent.
def summary(lines)
  entries = lines.filter_map { |line| LINE.match(line) }
  abort "traffic: no line of this file looks like an access log" if entries.empty?
  {
    day: day_of(entries.first),
    bytes: entries.sum { |entry| Integer(entry[:bytes], 10) },
    statuses: counts(entries, :status),
    paths: counts(entries, :path).sort_by { |path, hits| [-hits, path] }.to_h
  }
end

def text_of(summary)
  rows = summary[:paths].map { |path, hits| format("%6<hits>d  %<path>s", hits: hits, path: path) }
  "#{summary[:day]}, #{summary[:bytes]} bytes, statuses #{summary[:statuses]}\n#{rows.join("\n")}"
end

form = :text
OptionParser.new do |options|
  options.banner = "usage: traffic.rb [--json | --html] LOG"
  options.on("--json", "as JSON") { form = :json }
  options.on("--html", "as a web page") { form = :html }
end.parse!
abort "traffic: which log? usage: traffic.rb [--json | --html] LOG" if ARGV.empty?

result = summary(ARGF.each_line)
case form
when :json then puts JSON.pretty_generate(result)
when :html then puts PAGE.result_with_hash(**result)
else puts text_of(result)
end
