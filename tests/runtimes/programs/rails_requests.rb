# frozen_string_literal: true

# Requests through Rack to a Rails application, and parts of Rails that hold threads, caches and random state.

def show(path, **options)
  status, headers, body = Rails.application.call(Rack::MockRequest.env_for(path, options))
  text = +""
  body.each { |part| text << part }
  body.close if body.respond_to?(:close)
  headers = headers.to_h.transform_values(&:to_s)
  # A new one each time, and a measured time: what they look like must be the same.
  headers["X-Request-Id"] &&= headers["X-Request-Id"].gsub(/\h/, "x")
  headers["X-Runtime"] &&= headers["X-Runtime"].gsub(/\d/, "0")
  puts "#{options[:method] || "GET"} #{path}: #{status}", headers.sort.map(&:inspect), text
end

2.times { show("/") }
show("/", method: "HEAD")
show("/?utf8=%C3%A9", "HTTP_HOST" => "elsewhere.example", "HTTP_X_FORWARDED_PROTO" => "https")
show("/absent")
show("/", method: "POST", params: { a: 1 })
puts Array.new(4) { Thread.new { Rails.application.call(Rack::MockRequest.env_for("/")).first } }.map(&:value).inspect

Rails.cache.write("key", [1, 2])
puts Rails.cache.read("key").inspect
puts ApplicationController.render(inline: "<%= link_to 'text', '/' %> <%= number_to_currency(1234.5) %>")
encryptor = ActiveSupport::MessageEncryptor.new("k" * 32)
puts encryptor.decrypt_and_verify(encryptor.encrypt_and_sign("sealed"))
ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define { create_table(:words) { |t| t.string(:text) } }
class Word < ActiveRecord::Base; end
Word.create!([{ text: "frozen" }, { text: "thawed" }])
puts Word.order(:id).pluck(:text).inspect, Word.where("text like ?", "th%").count
puts I18n.l(Date.new(2024, 2, 29), format: :long), 3.days.inspect, "post".pluralize
puts Zeitwerk::Loader.all_dirs.size.positive?, defined?(HomeController), Rails.env
puts File.readlink("/proc/self/exe")
