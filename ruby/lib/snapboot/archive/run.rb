# frozen_string_literal: true

# The file that `snapboot run -- COMMAND` puts into RUBYOPT: removes itself from RUBYOPT, so that neither the program nor its
# children see it, and switches the boot archive on.
own = "-r#{__FILE__}"
options = ENV.fetch("RUBYOPT", "")
ENV["RUBYOPT"] = options == own ? nil : options.sub(/#{Regexp.escape(own)} ?/, "")

begin
  require_relative "../setup"
rescue StandardError, ScriptError => e
  # A missing or damaged part of Snapboot keeps no program from starting.
  warn("snapboot: no archive: #{e.message} (#{e.class})") unless ["", "0"].include?(ENV.fetch("SNAPBOOT_LOG", ""))
end
