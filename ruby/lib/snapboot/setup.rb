# frozen_string_literal: true

# Switches the boot archive on for the rest of this process: `require "snapboot/setup"` before anything else is loaded, or
# RUBYOPT=-rsnapboot/setup. If no archive is possible, the program starts the ordinary way, and SNAPBOOT_LOG=1 shows why.
require_relative "archive"

Snapboot::Archive.set_up
if Snapboot::Archive.part?(:data)
  require_relative "archive/data"
  Snapboot::Archive::Data.install
end
if Snapboot::Archive.part?(:lookups)
  require_relative "archive/searches"
  Snapboot::Archive::Searches.install
end
