# frozen_string_literal: true

require_relative "lib/snapboot/version"

Gem::Specification.new do |spec|
  spec.name = "snapboot"
  spec.version = Snapboot::VERSION
  spec.summary = "Hooks and Ruby front end of Snapboot, which makes programs start in milliseconds"
  spec.description = "Snapboot freezes a booted Ruby program into an image; running the image continues it."
  spec.authors = ["The Snapboot developers"]
  spec.licenses = ["Apache-2.0", "MIT"]
  spec.required_ruby_version = ">= 3.0"
  spec.files = Dir.glob("lib/**/*.rb", base: __dir__)
  spec.require_paths = ["lib"]
  spec.metadata = { "rubygems_mfa_required" => "true" }
end
