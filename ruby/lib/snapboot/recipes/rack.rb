# frozen_string_literal: true

# An application of Rack that `rackup` or `puma` starts, and of which the data file has preloaded what config.ru requires
# first.
module RackRecipe
  # Of each recipe's script the options that say where and how is listened, and nothing of the application: those with a
  # value behind them, and whole words.
  OPTIONS = {
    "Rack" => [/\A(?:-[psoP]|--(?:port|server|host|pid))\z/,
               /\A(?:-[psoP].+|--(?:port|server|host|pid)=.*|-[qD]|--(?:quiet|daemonize))\z/],
    "Puma" => [/\A(?:-[pbt]|--(?:port|bind|threads|pidfile))\z/,
               /\A(?:-[pbt].+|--(?:port|bind|threads|pidfile)=.*|-q|--quiet)\z/]
  }.freeze
  # Variables by which a start has another environment, or processes that each load the application, or is a script of
  # CGI.
  VARIABLES = { "Rack" => %w[REQUEST_METHOD], "Puma" => %w[APP_ENV RAILS_ENV WEB_CONCURRENCY] }.freeze
  # Configuration that Puma finds by itself.
  FILES = { "Rack" => [], "Puma" => %w[config/puma.rb config/puma] }.freeze

  class << self
    include Recipes::Defaults

    def applies?
      OPTIONS.key?(Recipes.chosen)
    end

    # Whether the application is that of config.ru, in the environment that it was loaded in.
    def honours?(arguments)
      with_value, alone = OPTIONS.fetch(Recipes.chosen)
      words = arguments.each
      loop { with_value.match?(word = words.next) ? words.next : (return false unless alone.match?(word)) }
      VARIABLES.fetch(Recipes.chosen).none? { |name| ENV.key?(name) } &&
        FILES.fetch(Recipes.chosen).none? { |file| File.exist?(file) }
    end
  end
end

Recipes.register(RackRecipe)
