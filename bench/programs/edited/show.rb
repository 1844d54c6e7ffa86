# frozen_string_literal: true

session = ActionDispatch::Integration::Session.new(Rails.application)
session.host! "localhost"
session.get "/"
puts session.response.status, session.response.body.gsub(/csrf-token" content="[^"]*/, "")
