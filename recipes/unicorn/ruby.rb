# frozen_string_literal: true

# Unicorn's freeze point is where its first process begins. With `preload_app` the application is loaded there; it would be
# soon after.
module UnicornRecipe
  class << self
    include Recipes::Defaults

    def applies?
      Object.const_defined?(:Unicorn) && Unicorn.const_defined?(:HttpServer)
    end

    def reached?(receiver)
      return false unless applies? && receiver.is_a?(Unicorn::HttpServer)

      Recipes.instead(receiver, :inherit_listeners!) do |inherit|
        is_loaded = receiver.preload_app && load_application(receiver)
        yield
        receiver.logger.info("Refreshing Gem list") if is_loaded
        inherit.call
      end
    end

    private

    # As Unicorn does, which leaves an application alone that is loaded. Returns whether it was to be loaded.
    def load_application(server)
      given = server.app
      count = given.respond_to?(:arity) ? given.arity : 1
      return false unless [0, 2].include?(count)

      Gem.refresh
      server.app = count.zero? ? given.call : given.call(nil, server)
      true
    end
  end
end

Recipes.register(UnicornRecipe)
