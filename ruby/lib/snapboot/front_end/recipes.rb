# frozen_string_literal: true

# What the front end knows about frameworks. A recipe answers applies?, load_main(script), guards and before_freeze.
module Recipes
  @all = []

  class << self
    # Adds a recipe.
    def register(recipe)
      @all << recipe
    end

    # The recipes for what is loaded now.
    def applicable
      @all.select(&:applies?)
    end
  end
end

Dir.glob("#{File.dirname(__dir__)}/recipes/*.rb").each do |recipe|
  module_eval(File.read(recipe, encoding: Encoding::UTF_8), recipe)
end
