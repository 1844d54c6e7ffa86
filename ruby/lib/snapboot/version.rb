# frozen_string_literal: true

module Snapboot
  # Equal to the version in the workspace's Cargo.toml; a test compares them.
  VERSION = "0.1.0"
end
