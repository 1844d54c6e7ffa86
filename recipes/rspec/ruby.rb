# frozen_string_literal: true

# RSpec prints how long files took to load, from the time at which it was loaded itself. That is when a start begins.
module RSpecRecipe
  class << self
    include Recipes::Defaults

    def applies?
      Object.const_defined?(:RSpec) && RSpec.const_defined?(:Core) && RSpec::Core.const_defined?(:Configuration)
    end

    def after_thaw
      # Its own constant, which no program that travels in time has replaced.
      now = RSpec::Core::Time.now
      # It takes the time from there when it makes a configuration.
      $_rspec_core_load_started_at = now # rubocop:disable Style/GlobalVars
      configuration = RSpec.instance_variable_get(:@configuration)
      configuration.start_time = now if configuration
    end
  end
end

Recipes.register(RSpecRecipe)
