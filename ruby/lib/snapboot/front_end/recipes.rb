# frozen_string_literal: true

# What is done for single libraries: the code of recipes (recipes/NAME/ruby.rb, and the user's own), which comes with the
# request and is evaluated as a part of the front end. A recipe registers an object that answers applies?, and what else it
# has to say of Defaults.
module Recipes
  @all = []
  @restarted_threads = []

  # The code of a recipe cannot be loaded.
  class Broken < StandardError; end

  # What a recipe says that has nothing to say.
  module Defaults
    # Loads what the main part +script+ surely needs; to be called for all recipes.
    def load_main(_script); end

    # Patterns of arguments that would have decided otherwise what the boot has decided.
    def guards
      []
    end

    def before_freeze; end

    # The program has reached its freeze point, in a method of +receiver+. Returns true if this recipe calls the block later,
    # as in Recipes.instead; it freezes. Returns :on_the_way if another of the methods will be called, and is the point.
    def reached?(_receiver)
      false
    end

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

    # Whether nothing is left to see of it when a thread that the process has now ends with it, without its `ensure` code.
    def may_be_cut_off?(_thread)
      false
    end

    # A child is about to load features one by one. +trial+ records effects because of which one may not be loaded early.
    def trying(_trial); end

    # Whether it is all the same when the feature at this path adds methods to modules that are there before it.
    def may_reopen?(_feature)
      false
    end

    # Those that run now, and that #after_thaw starts again: they have nothing to do that a process must wait for at its end.
    def threads
      []
    end

    def after_thaw; end
  end

  class << self
    # Ends of the paths of files whose threads are started again when they are needed.
    attr_reader :restarted_threads
    # :trial in a child of training, :loading when what it has tried is loaded for good, or nil.
    attr_accessor :training

    # Takes what the request says: rules and code. Raises what that code raises, with its place.
    def load(request, load_file)
      @restarted_threads = request.list("restarted_thread")
      request.take_records("recipe_code").each do |name, place, text|
        load_file.call("recipe_#{name}", text.force_encoding(Encoding::UTF_8))
      rescue StandardError, ScriptError => e
        raise Broken, "#{place}/ruby.rb cannot be loaded (#{e.class}: #{e.message}). Correct it, or remove #{place}."
      end
      register(ApplicationHere.new(request)) unless request.list("here").empty?
    end

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

    # Whether one says so of the thread.
    def may_be_cut_off?(thread)
      @all.any? { |recipe| recipe.may_be_cut_off?(thread) }
    end

    # Whether one says so of the feature.
    def may_reopen?(feature)
      @all.any? { |recipe| recipe.may_reopen?(feature) }
    end

    # Tells them that this process is +trial+.
    def trying(trial)
      @all.each { |recipe| recipe.trying(trial) }
    end

    # Threads that are there after a thaw, too.
    def threads
      @all.flat_map(&:threads)
    end

    # Tells them that the program has reached its freeze point. Returns what the first says that does not return false.
    def reached(receiver, &freeze)
      @all.each do |recipe|
        said = recipe.reached?(receiver, &freeze)
        return said if said
      end
      false
    end

    # When the method +name+ of that object is called next, has the block run instead, once, with the original. A TracePoint,
    # from where this is called, keeps all others from seeing what is loaded; and the method's frame will be gone.
    def instead(object, name)
      original = object.method(name)
      object.define_singleton_method(name) do |*arguments, **keywords, &block|
        singleton_class.__send__(:remove_method, name)
        yield(-> { original.unbind.bind_call(object, *arguments, **keywords, &block) })
      end
      true
    end

    # The recipes for what is loaded now.
    def applicable
      @all.select(&:applies?)
    end
  end
end
