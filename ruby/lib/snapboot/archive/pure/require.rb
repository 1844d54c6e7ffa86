# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # Hooks Kernel#require with the load path's index: a feature found there is required by its path, which the runtime
      # loads without a search. require_relative, load and files with a path need no search.
      module Require
        # Frames of this name count as the runtime's own, for example in `warn(uplevel:)`.
        FRAMES = ["<internal:snapboot/require>", 1].freeze
        # The runtime's own require, whatever hooks it has.
        OWN = "require_by_runtime"
        private_constant :FRAMES, :OWN

        class << self
          # load_path: a LoadPath; nil: the runtime searches for everything. Takes effect at once; returns nothing.
          def install(load_path)
            @load_path = load_path
            @awaited = {}
            # RubyGems keeps the runtime's own under this name, and TruffleRuby has it in advance for RubyGems.
            inner = Kernel.private_method_defined?(:gem_original_require) ? "gem_original_require" : "require"
            alias_of(Kernel, OWN, inner)
            @tells_given_name = RUBY_ENGINE != "jruby" && tells_given_name? # there, the runtime raises it
            hook_method(inner, OWN, "inner")
            hook_method("require", "require_after_snapboot", "outer") unless inner == "require"
            hook_singleton
          end

          # Reports to Snapboot::Archive when a file of that name (`psych.rb`) has been loaded.
          def await(name)
            @awaited[name] = true
          end

          # Takes the runtime's result of require, and returns it. The loaded file is the last in the list.
          def loaded(answer)
            name = File.basename($LOADED_FEATURES.last) if answer && @awaited.any?
            Archive.tell_loaded(name) if name && @awaited.delete(name)
            answer
          end

          # The path to require instead of the name, or nil. Raises LoadError if there is no such feature.
          def inner(name)
            path = find(name)
            return path unless path == :missing
            return if RUBY_ENGINE == "jruby" || linked_in?(name) # features without files

            raise missing(name)
          end

          # The same before RubyGems, which may have to act.
          def outer(name)
            path = find(name, unless_rubygems: true)
            path unless path == :missing
          end

          private

          # Whether CRuby finds an extension that is linked into it, as Prism is from 3.3 on.
          def linked_in?(name)
            RUBY_ENGINE == "ruby" && $LOAD_PATH.resolve_feature_path(name) ? true : false
          end

          # As the runtime words it: CRuby's message has no encoding.
          def missing(name)
            message = "cannot load such file -- #{name}"
            error = LoadError.new(RUBY_ENGINE == "ruby" ? message.b : message)
            error.instance_variable_set(:@path, name.frozen? || @tells_given_name ? name : name.dup.freeze)
            error
          end

          # Whether a LoadError has the very String that was required, and not a frozen copy: patches of one version differ
          # in that.
          def tells_given_name?
            name = +"/dev/null/none.rb" # no file can be below that one
            send(OWN, name)
            false
          rescue LoadError => e
            e.path.equal?(name)
          end

          def find(name, unless_rubygems: false)
            Archive.attempt(name) do
              next unless @load_path && String === name # rubocop:disable Style/CaseEquality -- it may be a BasicObject

              @load_path.find(name) unless unless_rubygems && !rubygems_is_silent?(name)
            end
          end

          # Whether RubyGems would only call the runtime's require for that name.
          def rubygems_is_silent?(name)
            return !upgraded?(name) if Object.autoload?(:Gem) # TruffleRuby has yet to load it
            return true unless defined?(::Gem::Specification)
            return false unless ::Gem::Specification.respond_to?(:unresolved_deps) # it is just being loaded

            ::Gem.find_unresolved_default_spec(name).nil? && ::Gem::Specification.unresolved_deps.empty?
          end

          # Whether TruffleRuby loads RubyGems for it, because a gem is newer than its own version.
          def upgraded?(name)
            RUBY_ENGINE == "truffleruby" && ::Truffle::GemUtil.upgraded_default_gem?(name)
          end

          def hook_method(name, previous, way)
            alias_of(Kernel, previous, name) unless previous == OWN
            define(Kernel, name, previous, way)
            Kernel.send(:private, name)
          end

          # Kernel.require, which does not use RubyGems.
          def hook_singleton
            alias_of(Kernel.singleton_class, OWN, :require)
            define(Kernel.singleton_class, :require, OWN, "inner")
          end

          def alias_of(owner, other, name)
            owner.send(:alias_method, other, name)
            owner.send(:private, other)
          end

          # Defines `name` so that it gets a path from `way` (inner or outer), and calls `previous` if there is none.
          def define(owner, name, previous, way)
            owner.send(:alias_method, name, name) # avoids a warning about the redefinition
            owner.class_eval(<<~RUBY, *FRAMES) # rubocop:disable Style/DocumentDynamicEvalDefinition, Style/EvalWithLocation
              def #{name}(name)
                path = ::Snapboot::Archive::Pure::Require.#{way}(name)
                ::Snapboot::Archive::Pure::Require.loaded(path ? #{OWN}(path) : #{previous}(name))
              end
            RUBY
          end
        end
      end
    end
  end
end
