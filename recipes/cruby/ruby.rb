# frozen_string_literal: true

# Connections that Net::HTTP keeps open between requests, for itself or for a pool such as that of net-http-persistent. It
# connects again where it finds one closed.
module NetHttpRecipe
  class << self
    include Recipes::Defaults

    def applies?
      Object.const_defined?(:Net) && Net.const_defined?(:HTTP) && Net.autoload?(:HTTP).nil?
    end

    def before_freeze
      ObjectSpace.each_object(Net::HTTP) do |client|
        socket = client.started? && client.instance_variable_get(:@socket)
        socket.close if socket.respond_to?(:closed?) && !socket.closed?
      end
    end
  end
end

Recipes.register(NetHttpRecipe)
