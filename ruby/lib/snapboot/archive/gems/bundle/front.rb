# frozen_string_literal: true

module Snapboot
  module Archive
    module Gems
      module Bundle
        # Prepended to the singleton class of Bundler.
        module Front
          SETUP = %r{/bundler/setup\.rb\z}

          # As Bundler.setup.
          def setup(*groups)
            return super if !groups.empty? || @setup || @definition || @load

            Bundle.record ||= Record.recall
            return Bundle.record.set_up if Bundle.record

            Record.remember { super }
          end

          # As Bundler.definition, which a set-up from the archive leaves to the first who asks.
          def definition(*arguments)
            record = Bundle.record
            return super unless record&.pending? && arguments.compact.empty?

            record.build { super }
          end

          # As Bundler.ui; for bundler/setup something that is as silent and takes less to load.
          def ui
            return super if @ui

            silenced = SETUP.match?(caller_locations(1, 1).first&.path.to_s)
            Bundle.record ||= Record.recall if silenced
            return super unless Bundle.record
            return Bundle.record.silence ||= Silence.new if silenced

            Bundle.record.interface { super }
          end

          # As Bundler.reset!.
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

          # Silences the real interface, too, if the program has fetched it meanwhile.
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

        # What Bundler's set-up asks for instead of a definition.
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

          # Since Bundler 2.5, instead of the two above.
          def no_resolve_needed?
            true
          end

          # Only bundles that passed are in the archive.
          def ensure_equivalent_gemfile_and_lockfile(*); end
        end

        # Bundler's definition, which is built as soon as it is asked for more than what Bundler.require goes through.
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

        # Prepended to Bundler::StubSpecification: what building the definition tells its specifications.
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
