# frozen_string_literal: true

module Snapboot
  module Archive
    module Gems
      # The first lines of all gemspecs of a directory (name, version, platform and paths of each gem) from one entry of the
      # archive. Prepended to the singleton class of the class with which RubyGems lists a directory's gemspecs.
      module Stubs
        ANY = "*.gemspec"
        # The beginning of a name without special characters of globs.
        PATTERN = /\A[\w.+-]*\*\.gemspec\z/

        # As in RubyGems: yields the path of each gemspec in dir whose name matches, and returns the valid stubs among the
        # block's results.
        def gemspec_stubs_in(dir, pattern, &block)
          lines = Stubs.lines(dir, pattern) if block && PATTERN.match?(pattern)
          lines ? Stubs.stubs(dir, pattern, lines, &block) : super
        end

        # Prepended to the singleton class of Gem::Specification.
        module Reset
          # As in RubyGems, which forgets its cached directories.
          def reset
            Stubs.forget
            super
          end
        end

        class << self
          # Returns nil, or why it cannot be switched on: RubyGems must list gemspecs as it does since 3.2.
          def install
            types = [Gem::Specification, (Gem::SpecificationRecord if defined?(Gem::SpecificationRecord))].compact
            lister = types.reverse.find { |type| type.respond_to?(:gemspec_stubs_in, true) }
            return "unknown RubyGems #{Gem::VERSION}" unless lister && stub_line?

            @context = Gems.context("stubs")
            @read = {}
            forget
            lister.singleton_class.prepend(self)
            Gem::Specification.singleton_class.prepend(Reset)
            nil
          end

          def forget
            @known = {}
          end

          # Returns [[name of the gemspec, its stub line or nil, its line of extensions or nil]] of all gemspecs of dir; nil
          # if RubyGems must look by itself. The list cached in this process may be used for a pattern with a name. Once
          # RubyGems has listed all gems, it does not look for new ones.
          def lines(dir, pattern)
            path = File.expand_path(dir)
            identity = Archive.identity(path) or return
            known = @known[path]
            return known[1] if known && known[0] == identity && pattern != ANY

            lines = recall(path) || remember(path, identity) or return
            @known[path] = [identity, lines]
            lines
          end

          # Returns valid stubs for the lines whose gemspec matches; the block creates a stub from a path.
          def stubs(dir, pattern, lines)
            root = File.expand_path(dir)
            beginning = pattern.delete_suffix(ANY)
            lines.filter_map do |name, line, extensions|
              next unless name.start_with?(beginning)

              stub = yield "#{root}/#{name}"
              fill(stub, line, extensions) if line
              stub if stub.valid?
            end
          end

          # Sets the values that a stub would read.
          def fill(stub, line, extensions)
            return stub unless stub.instance_of?(Gem::StubSpecification)

            none = Gem::StubSpecification::StubLine::NO_EXTENSIONS
            data = Gem::StubSpecification::StubLine.new(line, extensions ? extensions.split("\0") : none)
            stub.instance_variable_set(:@data, data)
            stub
          end

          private

          def stub_line?
            Gem::StubSpecification::StubLine.instance_method(:initialize).arity == 2 &&
              Gem::StubSpecification::PREFIX == "# stub: "
          rescue NameError
            false
          end

          def recall(path)
            Archive.answering("lists of gems") do
              payload = Archive.fetch(:memo, path, context: @context)
              Marshal.load(payload) if payload # rubocop:disable Security/MarshalLoad
            end
          end

          def remember(path, identity)
            files = Dir.glob(ANY, base: path).to_h { |name| [name, Archive.identity("#{path}/#{name}")] }
            read = @read[path]
            return read[1] if read && read[0] == files

            lines = files.keys.map { |name| [name, *first_lines("#{path}/#{name}")] }
            inputs = files.map { |name, file| [:file, "#{path}/#{name}", file] }
            Archive.store(:memo, path, [[:directory, path, identity], *inputs], Marshal.dump(lines), context: @context)
            @read[path] = [files, lines]
            lines
          rescue SystemCallError, ArgumentError, EncodingError
            nil
          end

          # The stub line and the line of extensions of a gemspec, as RubyGems reads them.
          def first_lines(file)
            prefix = Gem::StubSpecification::PREFIX
            line_number = $.
            _, line, extensions = File.open(file, Gem::StubSpecification::OPEN_MODE) do |io|
              Array.new(3) { io.gets(chomp: true) }
            end
            $. = line_number
            return unless extensions && line.start_with?(prefix)

            [line, (extensions.delete_prefix(prefix) if extensions.start_with?(prefix))]
          end
        end
      end
    end
  end
end
