# frozen_string_literal: true

# What `snapboot run -- COMMAND` has RUBYOPT name: takes itself out of RUBYOPT, so that neither the program nor what it
# starts sees it, and switches the boot archive on.
own = "-r#{__FILE__}"
options = ENV.fetch("RUBYOPT", "")
ENV["RUBYOPT"] = options == own ? nil : options.sub(/#{Regexp.escape(own)} ?/, "")

require_relative "../setup"
