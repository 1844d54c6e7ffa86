# frozen_string_literal: true

# Runs the Ruby front end's tests: `ruby tests/ruby/all.rb`. With SNAPBOOT=PATH of a built `snapboot` they run through
# real images, otherwise through a fork whose child goes on at once, which is all that a thaw is to the front end.
Dir.glob("#{__dir__}/*_test.rb").each { |test| require test }
