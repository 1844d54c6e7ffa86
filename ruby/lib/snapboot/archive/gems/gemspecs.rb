# frozen_string_literal: true

module Snapboot
  module Archive
    module Gems
      # Installed gemspecs without parsing them: RubyGems evaluates their compiled code from the archive. Only for gemspecs
      # in RubyGems' own directories, and only if nothing but their text can influence them. Prepended to the singleton class
      # of Gem::Specification.
      module Gemspecs
        DIRECTORY = %r{/specifications(?:/default)?/[^/]+\.gemspec\z}

        # See Gem::Specification.load: file is a path; returns the specification, or nil after a warning.
        def load(file)
          return super unless file.is_a?(String) && DIRECTORY.match?(file)

          Gemspecs.cached(file) || Gemspecs.archived(file) || super
        end

        class << self
          # Returns nil, or why it cannot be switched on: RubyGems must keep specifications as it does since 3.2.
          def install
            return "this Ruby has no syntax tree" unless Gems.known_sources?

            @cache, @mutex = load_cache
            return "unknown RubyGems #{Gem::VERSION}" unless @cache.is_a?(Hash) && @mutex.respond_to?(:synchronize)

            @context = Gems.context("gemspec", RubyVM::InstructionSequence.compile_option)
            Gem::Specification.singleton_class.prepend(self)
            nil
          end

          # The specification that RubyGems has loaded already, or nil.
          def cached(file)
            @mutex.synchronize { @cache[file] }
          end

          # Returns the specification from the archived code, or else from the text of the gemspec, whose code is then
          # stored; nil if its dependencies are unknown.
          def archived(file)
            code = Archive.fetch(:memo, file, context: @context) or return remember(file)
            return if code.empty?

            Archive.answering("gemspecs") { specification(file, RubyVM::InstructionSequence.load_from_binary(code)) }
          rescue StandardError, ScriptError
            nil
          end

          private

          def remember(file)
            identity = Archive.identity(file) or return
            source = File.read(file, encoding: Encoding::UTF_8)
            return store(file, identity, "") unless literal?(source)

            code = RubyVM::InstructionSequence.compile(source, file, file)
            specification = specification(file, code) or return
            store(file, identity, code.to_binary)
            specification
          end

          # Whether a gemspec depends on nothing but its text.
          def literal?(source)
            PlainGemspec.match?(source) || KnownSource.variables(source, KnownSource::GEMSPEC) == []
          end

          # An empty entry marks a gemspec that RubyGems must evaluate itself.
          def store(file, identity, code)
            Archive.store(:memo, file, [[:file, file, identity]], code, context: @context)
          end

          def specification(file, code)
            specification = code.eval
            return unless specification.instance_of?(Gem::Specification)

            specification.loaded_from = File.expand_path(file)
            @mutex.synchronize { @cache[file] ||= specification }
          end

          # Instance variables since RubyGems 3.3, constants before.
          def load_cache
            specification = Gem::Specification
            variables = %i[@load_cache @load_cache_mutex].map { |name| specification.instance_variable_get(name) }
            return variables if variables.all?

            %i[LOAD_CACHE LOAD_CACHE_MUTEX].map { |name| specification.const_get(name) }
          rescue NameError
            []
          end
        end
      end
    end
  end
end
