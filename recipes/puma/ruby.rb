# frozen_string_literal: true

# Puma's freeze point is where its launcher begins to run: the configuration is known, nothing was printed, opened or forked.
# The application is loaded there if the first process loads it, and Puma gets it when it asks for it.
module PumaRecipe
  class << self
    include Recipes::Defaults

    # Defined as soon as the program runs up to its freeze point.
    def applies?
      Object.const_defined?(:Puma) && Puma.const_defined?(:Launcher)
    end

    def reached?(receiver)
      return false unless applies? && receiver.is_a?(Puma::Launcher)

      config = receiver.config
      Recipes.instead(config, :plugins) do |plugins|
        load_application(config, receiver.options)
        yield
        plugins.call
      end
    end

    private

    # Each worker of a cluster loads it for itself, unless the configuration says `preload_app!`: after a phased restart,
    # perhaps another one.
    def load_application(config, options)
      return unless config.app_configured? && ((options[:workers] || 0).zero? || options[:preload_app])

      application = config.app
      Recipes.instead(config, :app) { application }
    end
  end
end

Recipes.register(PumaRecipe)
