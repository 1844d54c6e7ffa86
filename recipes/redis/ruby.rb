# frozen_string_literal: true

# Clients of Redis connect again when they are closed, and select their database again. One that is subscribed cannot.
module RedisRecipe
  class << self
    include Recipes::Defaults

    def applies?
      classes.any?
    end

    def before_freeze
      clients = classes.flat_map { |kind| ObjectSpace.each_object(kind).to_a }
      clients.each { |client| client.close if client.connected? && !subscribed?(client) }
    end

    private

    # Up to 4.8 redis has connections of its own, later those of redis-client.
    def classes
      %i[Redis RedisClient].select { |name| Object.const_defined?(name) && Object.autoload?(name).nil? }
                           .map { |name| Object.const_get(name) }.select { |kind| kind.method_defined?(:connected?) }
    end

    def subscribed?(client)
      client.respond_to?(:subscribed?) && client.subscribed?
    end
  end
end

Recipes.register(RedisRecipe)
