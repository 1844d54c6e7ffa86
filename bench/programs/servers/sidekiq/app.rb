# frozen_string_literal: true

# A worker of Sidekiq with a library and a job. It ends when it is ready, where END_AT_READY is set.

require "json"
require "net/http"
require "sidekiq"

# A job.
class Work
  include Sidekiq::Worker

  def perform(text) = JSON.parse(text)
end

Sidekiq.logger.level = Logger::WARN
Sidekiq.configure_server do |config|
  config.on(:startup) { exit!(0) if ENV["END_AT_READY"] }
end
