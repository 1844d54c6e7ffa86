# frozen_string_literal: true

module Snapboot
  module Archive
    module Gems
      module Bundle
        # Prepended to the singleton class of Bundler.
        module Front
          SETUP = %r{/bundler/setup\.rb\z}

          # See Bundler.setup.
          def setup(*groups)
            return super if !groups.empty? || @setup || @definition || @load

            Bundle.record ||= Record.recall
            return Bundle.record.set_up if Bundle.record

            Record.remember { super }
          end

          # See Bundler.definition. A set-up from the archive leaves building it to the first caller.
          def definition(*arguments)
            record = Bundle.record
            return super unless record&.pending? && arguments.compact.empty?

            record.build { super }
          end

          # See Bundler.ui; for bundler/setup an object that is as silent and loads faster.
          def ui
            return super if @ui

            silenced = SETUP.match?(caller_locations(1, 1).first&.path.to_s)
            Bundle.record ||= Record.recall if silenced
            return super unless Bundle.record
            return Bundle.record.silence ||= Silence.new if silenced

            Bundle.record.interface { super }
          end

          # See Bundler.reset!.
          def reset!
            Bundle.record = nil
            super
          end
        end

        # Bundler's user interface while bundler/setup silences it: the real one is a third of Bundler.
        class Silence
          def silence
            @inside = true
            yield
          ensure
            @inside = false
            @interface.level = @level if @interface
          end

          # Also silences the real interface, if the program has fetched it meanwhile.
          def extend_to(interface)
            return interface unless @inside

            @interface = interface
            @level = interface.level
            interface.level = "silent"
            interface
          end

          def method_missing(name, ...)
            ::Bundler.ui.public_send(name, ...)
          end

          def respond_to_missing?(name, all = false)
            ::Bundler.ui.respond_to?(name, all)
          end
        end

        # Used by Bundler's set-up in place of a definition.
        class Resolved
          def initialize(specs)
            @specs = specs
          end

          def specs_for(_groups)
            @specs
          end

          def nothing_changed?
            true
          end

          def unlocking?
            false
          end

          # Used since Bundler 2.5 in place of the two above.
          def no_resolve_needed?
            true
          end

          # The archive contains only bundles that passed.
          def ensure_equivalent_gemfile_and_lockfile(*); end
        end

        # Bundler's definition, which is built once more is needed than the data for Bundler.require.
        class Definition < BasicObject
          def initialize(record)
            @record = record
          end

          def dependencies
            @record.pending? ? @record.dependencies : ::Bundler.definition.dependencies
          end

          def method_missing(name, ...)
            ::Bundler.definition.public_send(name, ...)
          end

          def respond_to_missing?(name, all = false)
            ::Bundler.definition.respond_to?(name, all)
          end
        end

        # Prepended to Bundler::StubSpecification: intercepts the calls by which a new definition changes its specifications.
        module Specification
          def source
            Bundle.record.complete if @source.nil? && Bundle.record&.pending?(self)
            super
          end

          def dependencies
            Bundle.record.complete if @dependencies.nil? && Bundle.record&.pending?(self)
            super
          end
        end
      end
    end
  end
end
