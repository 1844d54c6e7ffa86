# frozen_string_literal: true

module Snapboot
  module Archive
    module Gems
      # Which gem has a feature that is on no load path: RubyGems asks for files of that name in the directories of all
      # installed gems. The names in these directories are one entry of the archive, which is checked at each search;
      # RubyGems then looks only at gems that may have it. Prepended to Gem::SpecificationRecord, or to the singleton class
      # of Gem::Specification where RubyGems (up to 3.5) has no such record.
      module Libraries
        # What the archive can tell of: nothing absolute, and no way out of a directory.
        FEATURE = %r{\A[^./][^/]*}

        def find_by_path(path)
          Libraries.search(path, self) { super }
        end

        def find_inactive_by_path(path)
          Libraries.search(path, self) { super }
        end

        # What these two go through.
        def stubs
          Libraries.take_candidates || super
        end

        class << self
          # Returns nil, or why it cannot be switched on: RubyGems has to search as it does since 3.2.
          def install
            return "names of files may have several forms here" unless RUBY_PLATFORM.include?("linux")

            searcher = defined?(Gem::SpecificationRecord) ? Gem::SpecificationRecord : Gem::Specification.singleton_class
            known = instance_methods(false).all? { |name| searcher.method_defined?(name) }
            return "unknown RubyGems #{Gem::VERSION}" unless known

            searcher.prepend(self)
            nil
          end

          # Runs the block, RubyGems' own search for the feature, among those gems that may have it. Returns what it
          # returns.
          def search(feature, specification)
            @candidates = candidates(feature, specification.stubs)
            yield
          ensure
            @candidates = nil
          end

          # What the search that is beginning goes through, once.
          def take_candidates
            candidates = @candidates
            @candidates = nil
            candidates
          end

          private

          # The stubs that may have a feature, in their order; nil where it is not known.
          def candidates(feature, stubs)
            return unless stubs.instance_of?(Array) && feature.instance_of?(String) && (first = feature[FEATURE])

            context = Gems.context("libraries", Gem.path, Gem.default_dir)
            known = recall(context, stubs) || own(context, stubs) || remember(context, stubs) or return
            names = first == feature ? Gem.suffixes.map { |suffix| "#{first}#{suffix}" } : [first]
            [nil, *names].flat_map { |name| known.fetch(name, []) }.uniq.sort.map { |position| stubs[position] }
          end

          def recall(context, stubs)
            Archive.answering("names of gems' files") do
              payload = Archive.fetch(:memo, Gem.default_dir, context: context) or next
              next @known if @payload == payload && @stubs.equal?(stubs)

              @payload = payload
              @stubs = stubs
              @known = positions(Marshal.load(payload), stubs) # rubocop:disable Security/MarshalLoad
            end
          end

          # What this process has found out itself, as long as the directories are the same.
          def own(context, stubs)
            return unless @own && @own[0] == context && @own[1].equal?(stubs)

            @known if @own[2].all? { |_, directory, identity| Archive.identity(directory) == identity }
          end

          def remember(context, stubs)
            inputs = []
            names = stubs.flat_map { |stub| directories(stub) }.uniq.to_h do |directory|
              identity = Archive.identity(directory)
              inputs << (identity ? [:directory, directory, identity] : [:absent, directory])
              [directory, identity ? Dir.children(directory) : []]
            end
            Archive.store(:memo, Gem.default_dir, inputs, Marshal.dump(names), context: context)
            @payload = nil
            @own = [context, stubs, inputs]
            @known = positions(names, stubs)
          rescue SystemCallError
            nil
          end

          # From a name to the positions of the stubs that have it in one of their directories; nil leads to those that
          # have to be asked for every feature. nil if there is a stub whose directories are not known.
          def positions(names, stubs)
            known = Hash.new { |hash, name| hash[name] = [] }
            stubs.each_with_index do |stub, position|
              found = directories(stub).map { |directory| names[directory] }
              return nil unless found.all?

              (found.empty? ? [nil] : found.flatten(1)).each { |name| known[name] << position }
            end
            known
          end

          # The directories of a stub, if it has nothing else: RubyGems warns of a gem with a native part that is
          # missing when it comes by.
          def directories(stub)
            return [] unless stub.instance_of?(Gem::StubSpecification) && stub.extensions.empty?

            stub.raw_require_paths.map { |path| File.join(stub.gems_dir, stub.full_name, path) }
          end
        end
      end
    end
  end
end
