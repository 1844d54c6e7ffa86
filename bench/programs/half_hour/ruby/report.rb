# frozen_string_literal: true

# A script of his own: renders what a file has, and prepares to send it.
require "csv"
require "erb"
require "json"
require "net/http"
require "optparse"
require "yaml"

to = "https://example.org/reports"
OptionParser.new { |options| options.on("--to URL") { |url| to = url } }.parse!
rows = CSV.parse("name,amount\nbread,3\nmilk,2\n", headers: true).map(&:to_h)
text = ERB.new("<% rows.each do |row| %><%= row['name'] %>: <%= row['amount'] %>\n<% end %>").result(binding)
request = Net::HTTP::Post.new(URI(to))
request.body = JSON.generate({ text: text, rows: YAML.dump(rows) })
puts text, request.method, request.uri, request.body
