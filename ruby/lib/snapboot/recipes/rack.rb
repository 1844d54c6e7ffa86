# frozen_string_literal: true

# An application of Rack that `rackup` starts, and of which the data file has preloaded what config.ru requires first.
module RackRecipe
  # Options that say where and how is listened, and nothing of the application; those with a value, and those without.
  VALUE = /\A(?:-[psoP]|--(?:port|server|host|pid))\z/
  WORD = /\A(?:-[psoP].+|--(?:port|server|host|pid)=.*|-[qD]|--(?:quiet|daemonize))\z/

  class << self
    include Recipes::Defaults

    def applies?
      Recipes.chosen == "Rack"
    end

    # Whether the application is that of config.ru, in the environment that it was loaded in.
    def honours?(arguments)
      words = arguments.each
      loop { VALUE.match?(word = words.next) ? words.next : (return false unless WORD.match?(word)) }
      !ENV.key?("REQUEST_METHOD") # then it is a script of CGI
    end
  end
end

Recipes.register(RackRecipe)
