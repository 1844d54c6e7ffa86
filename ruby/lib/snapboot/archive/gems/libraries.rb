# frozen_string_literal: true

module Snapboot
  module Archive
    module Gems
      # Finds the gem of a feature that is on no load path: RubyGems looks for files of that name in the directories of all
      # installed gems. The names in these directories are one entry of the archive, which is checked at each search;
      # RubyGems then searches only gems that may have the feature. Prepended to Gem::SpecificationRecord, or to the
      # singleton class of Gem::Specification if RubyGems (up to 3.5) has no such record.
      module Libraries
        # Features that the archive can look up: nothing absolute, and no way out of a directory.
        FEATURE = %r{\A[^./][^/]*}

        def find_by_path(path)
          Libraries.search(path, self) { super }
        end

        def find_inactive_by_path(path)
          Libraries.search(path, self) { super }
        end

        # The stubs that these two search.
        def stubs
          Libraries.take_candidates || super
        end

        class << self
          # Returns nil, or why it cannot be switched on: RubyGems must search as it does since 3.2.
          def install
            return "names of files may have several forms here" unless RUBY_PLATFORM.include?("linux")

            searcher = defined?(Gem::SpecificationRecord) ? Gem::SpecificationRecord : Gem::Specification.singleton_class
            known = instance_methods(false).all? { |name| searcher.method_defined?(name) }
            return "unknown RubyGems #{Gem::VERSION}" unless known

            searcher.prepend(self)
            nil
          end

          # Runs the block, RubyGems' own search for the feature, among the gems that may have it. Returns its result.
          def search(feature, specification)
            @candidates = candidates(feature, specification.stubs)
            yield
          ensure
            @candidates = nil
          end

          # Returns the stubs for the search that is beginning, once.
          def take_candidates
            candidates = @candidates
            @candidates = nil
            candidates
          end

          private

          # Returns the stubs that may have a feature, in their order; nil if unknown.
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

          # The results of this process itself, as long as the directories are unchanged.
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

          # Maps a name to the positions of the stubs that have it in one of their directories; nil maps to those that must
          # be searched for every feature. nil if the directories of a stub are unknown.
          def positions(names, stubs)
            known = Hash.new { |hash, name| hash[name] = [] }
            stubs.each_with_index do |stub, position|
              found = directories(stub).map { |directory| names[directory] }
              return nil unless found.all?

              (found.empty? ? [nil] : found.flatten(1)).each { |name| known[name] << position }
            end
            known
          end

          # The directories of a stub, if they are all that matters: RubyGems warns when its search reaches a gem whose
          # native part is missing.
          def directories(stub)
            return [] unless stub.instance_of?(Gem::StubSpecification) && stub.extensions.empty?

            stub.raw_require_paths.map { |path| File.join(stub.gems_dir, stub.full_name, path) }
          end
        end
      end
    end
  end
end
