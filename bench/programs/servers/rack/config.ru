# frozen_string_literal: true

require_relative "../../rack_app"

run RACK_APP
