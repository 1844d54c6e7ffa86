# frozen_string_literal: true

require_relative "trees"
require_relative "../originals"

module Snapboot
  module Archive
    module Searches
      # The suggestions of did_you_mean for a missing feature. It compares the feature with every library in Ruby's own
      # directories as soon as the LoadError's message is read, for example by code that rescues it to try something else:
      # some 20 ms.
      module Suggestions
        METHODS = {
          "DidYouMean::RequirePathChecker" => %i[initialize path],
          **%w[SpellChecker TreeSpellChecker JaroWinkler Jaro Levenshtein].to_h { |name| ["DidYouMean::#{name}", :all] }
        }.freeze

        class << self
          # Takes and returns nothing. Raises if did_you_mean has an unfamiliar form.
          def install
            @checker = ::DidYouMean::RequirePathChecker
            directory = File.dirname(@checker.instance_method(:corrections).source_location.first, 2)
            @search = @checker.method(:requireables)
            roots = @checker.const_get(:INITIAL_LOAD_PATH)
            # A relative path means another directory once the program changes its own.
            return unless roots.all? { |path| path.start_with?("/") } && @search.source_location.first.start_with?(directory)

            @originals = Originals.new(METHODS, directory)
            sources = $LOADED_FEATURES.select { |feature| feature.start_with?("#{directory}/") }
            @trees = Trees.new("did_you_mean", roots, links: false, context: "suggestions 1 #{::DidYouMean::VERSION}",
                                                      sources: Trees.sources(sources))
            hook
          end

          # Returns the suggestions for the feature of a checker; the block finds them.
          def answer(checker)
            return yield unless ordinary_search?(checker)

            kept = nil
            @trees.answer(checker.path, exact: ->(_) { own?(kept) }) do
              kept = found
              yield
            end
          end

          private

          # Whether it would search as did_you_mean does.
          def ordinary_search?(checker)
            Archive.enabled? && checker.instance_of?(@checker) && checker.path.instance_of?(String) &&
              @checker.method(:requireables) == @search && @originals.intact?
          end

          # Returns the features that did_you_mean has found in this process, and keeps; nil before its first search.
          def found
            @checker.instance_variable_get(:@requireables)
          end

          # Whether a search used the present state: it had found nothing before, or in an earlier search that was watched,
          # and not in one whose content was not recorded.
          def own?(kept)
            is_own = kept.nil? || kept.equal?(@found)
            @found = found if is_own
            is_own
          end

          def hook
            Originals.hook(@checker, :corrections, :corrections_by_search, <<~RUBY, __FILE__, __LINE__ + 1)
              def corrections
                @corrections ||= ::Snapboot::Archive::Searches::Suggestions.answer(self) { corrections_by_search }
              end
            RUBY
          end
        end
      end
    end
  end
end
