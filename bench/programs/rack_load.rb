# frozen_string_literal: true

# Requests to a Rack application, made in the process; prints one number.
#
# `first`: milliseconds of the first request. `steady`: requests per second after a warm-up.

require "rack"
require_relative "rack_app"

SECONDS = 1.0

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# One request for the front page. Raises unless it is answered.
def ask(application)
  status, _headers, body = application.call(Rack::MockRequest.env_for("/words?count=20"))
  size = 0
  body.each { |part| size += part.bytesize }
  body.close if body.respond_to?(:close)
  raise "status #{status}, #{size} bytes" unless status == 200 && size.positive?
end

began = now
ask(RACK_APP)
first = now - began
if ARGV.first == "first"
  puts first * 1000
else
  200.times { ask(RACK_APP) }
  requests = 0
  began = now
  while now - began < SECONDS
    50.times { ask(RACK_APP) }
    requests += 50
  end
  puts requests / (now - began)
end
