# frozen_string_literal: true

# Sidekiq's freeze point is where its command begins to run. The first thing that it does there is to load the application.
module SidekiqRecipe
  class << self
    include Recipes::Defaults

    def applies?
      Object.const_defined?(:Sidekiq) && Sidekiq.const_defined?(:CLI)
    end

    def reached?(receiver)
      return false unless applies? && receiver.is_a?(Sidekiq::CLI)

      Recipes.instead(receiver, :boot_application) do |boot|
        boot.call
        yield
      end
    end
  end
end

Recipes.register(SidekiqRecipe)
