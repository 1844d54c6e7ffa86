# frozen_string_literal: true

module Snapboot
  module Archive
    module Gems
      module Bundle
        # The resolution of a bundle: its specifications in the order in which Bundler activates them, and the dependencies
        # of the Gemfile.
        class Record
          class << self
            # Returns the record of this bundle in these circumstances, or nil.
            def recall
              ::Bundler.configure
              Archive.answering("the bundle") do
                payload = Archive.fetch(:memo, ::Bundler.default_gemfile.to_s, context: context) or next
                new(*Marshal.load(payload)) # rubocop:disable Security/MarshalLoad
              end
            rescue StandardError, ScriptError
              nil
            end

            # Returns the result of the block, Bundler's own set-up, and stores its record if all of its dependencies are
            # known.
            def remember
              facts = Facts.new
              described = context if facts.all_known?
              runtime = yield
              facts.store(described) if described
              runtime
            end

            private

            # The dependencies of a set-up that are known without reading anything.
            def context
              bundler = ::Bundler.method(:setup).super_method.source_location.first
              Gems.context("bundle", ::Bundler::VERSION, bundler, ::Bundler.default_gemfile, Gem.path, Gem.default_dir,
                           Gem.default_specifications_dir, Gem.platforms, activated, settings)
            end

            def activated
              Gem.loaded_specs.map { |name, specification| [name, specification.version.to_s, specification.loaded_from] }
            end

            # All settings except those that name hosts: they hold passwords, and no set-up depends on them.
            def settings
              type = ::Bundler::Settings
              names = [type::BOOL_KEYS, type::NUMBER_KEYS, type::ARRAY_KEYS, type::STRING_KEYS].flatten
              known = names.to_h { |name| ["BUNDLE_#{name.upcase.gsub(".", "__").gsub("-", "___")}", true] }
              %i[@temporary @local_config @env_config @global_config].map do |level|
                ::Bundler.settings.instance_variable_get(level).select { |key, _| known[key] }
              end
            end
          end

          # The Silence that bundler/setup was given, or nil.
          attr_accessor :silence

          def initialize(specifications, dependencies)
            RubyGems.specifications
            @resolved = specifications.to_h { |name, *row| [name, specification(name, *row)] }
            @marshalled = dependencies
            @set = ::Bundler::SpecSet.new(@resolved.values)
            @set.instance_variable_set(:@sorted, @resolved.values)
            @set.extend(Specifications)
            @pending = true
          end

          # Whether Bundler has not built the definition yet (which would complete that specification).
          def pending?(specification = nil)
            @pending && (specification.nil? || @resolved[specification.name].equal?(specification))
          end

          # Does what Bundler.setup does, with the specifications of the record. Raises what Bundler raises.
          def set_up
            ::Bundler.ui unless @silence
            ::Bundler::SharedHelpers.print_major_deprecations!
            ::Bundler::StubSpecification.prepend(Specification)
            ::Bundler.rubygems.extend(Specifications::DefaultGems)
            runtime = ::Bundler::Runtime.new(::Bundler.root, Resolved.new(@set))
            runtime.setup
            runtime.instance_variable_set(:@definition, Definition.new(self))
            ::Bundler.instance_variable_set(:@load, runtime)
            ::Bundler.instance_variable_set(:@setup, runtime)
          end

          # The dependencies of the Gemfile.
          def dependencies
            @dependencies ||= ::Bundler::Dependency && Marshal.load(@marshalled) # rubocop:disable Security/MarshalLoad
          end

          # Returns Bundler's user interface, which the block creates later than Bundler does. It takes over RubyGems' user
          # interface, which bundler/setup returns when it is done.
          def interface
            return yield unless @silence

            interaction = Gem::DefaultUserInteraction
            known = interaction.instance_variable_get(:@ui)
            @silence.extend_to(yield)
          ensure
            interaction&.instance_variable_set(:@ui, known)
          end

          # Makes Bundler build the definition, which completes the specifications.
          def complete
            ::Bundler.definition
            nil
          end

          # Returns the definition that the block, Bundler.definition, builds. As after a set-up, its specifications are
          # those in use, with the default gems among them.
          def build
            @pending = false
            definition = with_installed { yield.tap(&:specs) }
            definition.specs.first
            ::Bundler.rubygems.add_default_gems_to(definition.specs)
            built = definition
          ensure
            @pending = true unless built
          end

          private

          def specification(name, kind, gemspec = nil, base = nil, gems = nil, line = nil, extensions = nil)
            return bundler(name) if kind == :activated

            stub = Gem::StubSpecification.new(gemspec, base, gems, kind == :default)
            ::Bundler::StubSpecification.from_stub(Stubs.fill(stub, line, extensions))
          end

          # Bundler itself, a part of every bundle.
          def bundler(name)
            Gem.loaded_specs.fetch(name).tap { |bundler| bundler.source = ::Bundler::Source::Metadata.new }
          end

          # After the set-up, RubyGems shows only the bundle, and is set to that again whenever it resets. For the block, it
          # shows all installed gems again.
          def with_installed
            known = RubyGems.specifications
            hooks = Gem.post_reset_hooks.dup
            show_installed
            Gem.post_reset_hooks.replace([method(:show_installed)])
            yield
          ensure
            Gem.post_reset_hooks.replace(hooks) if hooks
            RubyGems.replace(known) if known
          end

          def show_installed
            by_name = installed.select { |stub| Gem::Platform.match_spec?(stub) }.group_by(&:name)
            RubyGems.replace("stubs" => installed, "stubs_by_name" => by_name)
          end

          def installed
            @installed ||= begin
              ours = @resolved.each_value.to_h { |specification| [specification.loaded_from, specification] }
              Gem::Specification.stubs_for_pattern("*.gemspec", false).map { |stub| ours[stub.loaded_from] || stub }
            end
          end
        end
      end
    end
  end
end
