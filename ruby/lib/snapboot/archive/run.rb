# frozen_string_literal: true

# What `snapboot run -- COMMAND` has RUBYOPT name: takes itself out of RUBYOPT, so that neither the program nor what it
# starts sees it, and switches the boot archive on.
own = "-r#{__FILE__}"
options = ENV.fetch("RUBYOPT", "")
ENV["RUBYOPT"] = options == own ? nil : options.sub(/#{Regexp.escape(own)} ?/, "")

begin
  require_relative "../setup"
rescue StandardError, ScriptError => e
  # A part of Snapboot that is missing or damaged keeps no program from starting.
  warn("snapboot: no archive: #{e.message} (#{e.class})") unless ["", "0"].include?(ENV.fetch("SNAPBOOT_LOG", ""))
end
