# frozen_string_literal: true

# What the front end knows about frameworks. A recipe answers applies?, and what else it has to say of Defaults.
module Recipes
  @all = []

  # What a recipe says that has nothing to say.
  module Defaults
    # Loads what the main part +script+ surely needs; to be called for all recipes.
    def load_main(_script); end

    # Patterns of arguments that would have decided otherwise what the boot has decided.
    def guards
      []
    end

    def before_freeze; end

    # What was computed of secrets while the program booted and a thaw can compute again: pairs of the string and what does
    # that. A thaw does it in this order, recipe by recipe: what has been exchanged may be used for what comes later.
    def computed_of_secrets
      []
    end

    # Whether #after_thaw renews whatever came of reading +what+, a fact or a variable, in the file +reader+.
    def renews?(_what, _reader)
      false
    end

    # +what+, a fact or a variable, is about to be read in the file +reader+, for +reads+ to note.
    def reading(_what, _reader, _reads); end

    # Whether the image can do what these arguments of the script say; only an ordinary start can where not.
    def honours?(_arguments)
      true
    end

    # Whether the finalizers that the file at this path defines do nothing that is left to see when the process has ended.
    def harmless_finalizers?(_path)
      false
    end

    # Those that run now, and that #after_thaw starts again: they have nothing to do that a process must wait for at its end.
    def threads
      []
    end

    def after_thaw; end
  end

  class << self
    # The name of the data file's recipe that the freeze follows, if there is one.
    attr_accessor :chosen
    # :trial in a child of training, :loading when what it has tried is loaded for good, or nil.
    attr_accessor :training

    # Adds a recipe.
    def register(recipe)
      @all << recipe
    end

    # Has the recipes load what the main part +script+ surely needs.
    def load_main(script)
      @all.each { |recipe| recipe.load_main(script) }
    end

    # Whether a recipe renews what came of reading +what+ in the file +reader+.
    def renews?(what, reader)
      applicable.any? { |recipe| recipe.renews?(what, reader) }
    end

    # Whether one may say so when more of its library is loaded.
    def may_renew?(what, reader)
      @all.any? { |recipe| recipe.renews?(what, reader) }
    end

    # Tells them that +what+ is about to be read in the file +reader+.
    def reading(what, reader, reads)
      @all.each { |recipe| recipe.reading(what, reader, reads) }
    end

    # Whether one says so of the file at +path+.
    def harmless_finalizers?(path)
      @all.any? { |recipe| recipe.harmless_finalizers?(path) }
    end

    # Threads that are there after a thaw, too.
    def threads
      @all.flat_map(&:threads)
    end

    # The recipes for what is loaded now.
    def applicable
      @all.select(&:applies?)
    end
  end
end
