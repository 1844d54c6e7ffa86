# frozen_string_literal: true

# In the source tree this is a gem for any Ruby: hooks, and a boot archive in plain Ruby. Where tools/packages.py has put the tree that
# `make install` makes beside it, it is the gem for Linux, with the command and all its parts.
tree = "libexec/snapboot/ruby/lib"
whole = File.directory?("#{__dir__}/#{tree}")
library = whole ? tree : "lib"
require_relative "#{library}/snapboot/version"

Gem::Specification.new do |spec|
  spec.name = "snapboot"
  spec.version = Snapboot::VERSION
  spec.summary = "Makes Ruby and Python programs start in milliseconds, from an image of the booted process"
  spec.description = "Snapboot freezes a booted program into an image; running the image continues it. Where there is no image, its " \
                     "boot archive makes the ordinary start of a Ruby program faster."
  spec.authors = ["The Snapboot developers"]
  spec.licenses = ["Apache-2.0", "MIT"]
  spec.required_ruby_version = ">= 3.0"
  spec.require_paths = [library]
  spec.files = Dir.glob("{LICENSE*,README.md,lib/**/*.rb}", base: __dir__)
  if whole
    spec.platform = "#{ENV.fetch("SNAPBOOT_ARCHITECTURE")}-linux" # by tools/packages.py
    spec.files += Dir.glob("{bin,exe,libexec,share}/**/*", base: __dir__).select { |name| File.file?("#{__dir__}/#{name}") }
    spec.bindir = "exe"
    spec.executables = ["snapboot"]
  end
  spec.metadata = { "rubygems_mfa_required" => "true" }
end
