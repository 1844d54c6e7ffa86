# frozen_string_literal: true

# irb, by the script that RubyGems has for it.
module IrbRecipe
  SCRIPT = "load Gem.activate_bin_path('irb', 'irb', version)\n"

  class << self
    include Recipes::Defaults

    def applies?
      Object.const_defined?(:IRB)
    end

    def load_main(script)
      return unless File.basename(script).start_with?("irb")

      require "irb" if File.read(script, encoding: Encoding::BINARY).include?(SCRIPT)
    end

    # irb is run in another version with _1.2.3_.
    def guards
      ["_*"]
    end
  end
end

Recipes.register(IrbRecipe)
