# frozen_string_literal: true

module Snapboot
  module Archive
    module Gems
      module Bundle
        # The files that a set-up is about to read, with their identities, taken before Bundler reads them.
        class Facts
          SOURCES = %i[Rubygems Metadata].freeze
          # Sections of a lockfile whose gemspecs are code that belongs to an application.
          OWN_CODE = /^(?:PATH|GIT|PLUGIN SOURCE)\b/

          def initialize
            @began = Time.now
            @inputs = []
            @lines = {}
            ::Bundler.configure
            @gemfile = ::Bundler.default_gemfile.to_s
            @known = file?(@gemfile) && environment?(@gemfile) && locked? && installed?
          rescue ::Bundler::BundlerError, SystemCallError
            @known = false
          end

          # Whether all dependencies of the set-up are known.
          def all_known?
            @known
          end

          # Stores Bundler's result, unless something could differ the next time.
          def store(context)
            definition = ::Bundler.definition
            rows = rows(definition) if reproducible?(definition) && conditions?(definition) && further_gemfiles?(definition)
            return Archive.log("bundle not stored: its gems are not plainly installed ones") unless rows

            payload = Marshal.dump([rows, Marshal.dump(definition.dependencies)])
            Archive.store(:memo, @gemfile, @inputs, payload, context: context)
          rescue TypeError => e
            Archive.log("bundle not stored: #{e.message}")
          end

          private

          def file?(path)
            identity = Archive.identity(path)
            @inputs << [:file, path, identity] if identity
          end

          # Records the variables that a Gemfile reads; nil if its dependencies are unknown.
          def environment?(gemfile)
            names = KnownSource.variables(File.read(gemfile, encoding: Encoding::UTF_8), KnownSource::GEMFILE)
            names&.each { |name| @inputs << [:variable, name, ENV[name]] }
          end

          def locked?
            lockfile = ::Bundler.default_lockfile.to_s
            file?(lockfile) && !File.read(lockfile, encoding: Encoding::UTF_8).match?(OWN_CODE)
          end

          def installed?
            [*Gem::Specification.dirs, Gem.default_specifications_dir].uniq.all? { |dir| directory?(File.expand_path(dir)) }
          end

          def directory?(path)
            identity = Archive.identity(path)
            return @inputs << [:absent, path] unless identity

            @inputs << [:directory, path, identity]
            Stubs.lines(path, Stubs::ANY)&.all? { |name, line, extensions| gemspec?("#{path}/#{name}", line, extensions) }
          end

          # Bundler ignores a gem whose native part has not been built.
          def gemspec?(file, line, extensions)
            @lines[file] = [line, extensions]
            return file?(file) unless line && extensions

            base = File.dirname(File.dirname(file))
            stub = Stubs.fill(Gem::StubSpecification.new(file, base, "#{base}/gems", false), line, extensions)
            built = stub.gem_build_complete_path
            file?(file) && (file?(built) || (@inputs << [:absent, built]))
          end

          def reproducible?(definition)
            return false if !definition.nothing_changed? || definition.unlocking?

            types = SOURCES.map { |name| ::Bundler::Source.const_get(name) }
            definition.instance_variable_get(:@sources).all_sources.all? { |source| types.include?(source.class) } &&
              definition.dependencies.all? { |dependency| dependency.source.nil? }
          end

          # Records the variables on which dependencies are conditional; nil if the set-up itself may have changed one.
          def conditions?(definition)
            conditions = definition.dependencies.map { |dependency| dependency.instance_variable_get(:@env) }.compact
            names = conditions.flat_map { |condition| condition.is_a?(Hash) ? condition.keys : condition }.map(&:to_s)
            return if (names & ::Bundler::EnvironmentPreserver::BUNDLER_KEYS).any?

            names.each { |name| @inputs << [:variable, name, ENV[name]] }
          end

          # The files that eval_gemfile named. They were read before they are examined here, so they must be older than the
          # set-up.
          def further_gemfiles?(definition)
            (definition.gemfiles.map(&:to_s).uniq - [@gemfile]).all? do |path|
              stat = File.stat(path)
              [stat.mtime, stat.ctime].max < @began - 1 && file?(path) && environment?(path)
            end
          end

          # The data to make the specifications from again; nil if one cannot be.
          def rows(definition)
            rows = definition.specs.to_a.map { |specification| row(specification) }
            rows if rows.all?
          end

          def row(specification)
            return [specification.name, :activated] if bundler?(specification)
            return unless specification.instance_of?(::Bundler::StubSpecification)

            stub = specification.stub
            line, extensions = @lines[stub.loaded_from]
            return unless line && stub.instance_of?(Gem::StubSpecification)

            kind = stub.default_gem? ? :default : :installed
            [specification.name, kind, stub.loaded_from, stub.base_dir, stub.gems_dir, line, extensions]
          end

          def bundler?(specification)
            specification.instance_of?(Gem::Specification) && specification.name == "bundler" &&
              Gem.loaded_specs["bundler"].equal?(specification)
          end
        end
      end
    end
  end
end
