# frozen_string_literal: true

require_relative "lib/snapboot/version"

Gem::Specification.new do |spec|
  spec.name = "snapboot"
  spec.version = Snapboot::VERSION
  spec.summary = "Hooks, Ruby front end and boot archive of Snapboot, which makes programs start in milliseconds"
  spec.description = "Snapboot freezes a booted Ruby program into an image; running the image continues it. Where there is " \
                     "no image, its boot archive makes the ordinary start faster."
  spec.authors = ["The Snapboot developers"]
  spec.licenses = ["Apache-2.0", "MIT"]
  spec.required_ruby_version = ">= 3.0"
  # The native part is built by cargo and put beside setup.rb before the gem is; without it the plain one takes over.
  spec.files = Dir.glob("lib/**/*.{rb,so}", base: __dir__)
  spec.require_paths = ["lib"]
  spec.metadata = { "rubygems_mfa_required" => "true" }
end
