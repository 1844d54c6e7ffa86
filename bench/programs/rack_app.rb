# frozen_string_literal: true

# A small Rack application with the usual middleware around it: parses a query, renders a template.

require "erb"
require "json"
require "rack"

PAGE = ERB.new(<<~HTML, trim_mode: "-")
  <ul>
  <%- words.each do |word| -%>
  <li><%= ERB::Util.html_escape(word) %></li>
  <%- end -%>
  </ul>
HTML

RACK_APP = Rack::Builder.new do
  use Rack::Head
  use Rack::ConditionalGet
  use Rack::ETag
  use Rack::ContentLength
  run(lambda do |env|
    count = Integer(Rack::Request.new(env).params.fetch("count", "10"))
    words = Array.new(count) { |number| "word <#{number}>" }
    [200, { "Content-Type" => "text/html" }, [PAGE.result_with_hash(words: words)]]
  end)
end.to_app
