# frozen_string_literal: true

require_relative "trees"
require_relative "../data/originals"

module Snapboot
  module Archive
    module Searches
      # What did_you_mean suggests for a feature that is nowhere. It compares the feature with every library in Ruby's own
      # directories as soon as somebody asks the LoadError for its message, as those do who rescue it to try something else:
      # some 20 ms.
      module Suggestions
        # Whose methods take part, besides RequirePathChecker's.
        TYPES = %w[SpellChecker TreeSpellChecker JaroWinkler Jaro Levenshtein].freeze

        class << self
          # Takes and returns nothing. Raises where did_you_mean is not as known.
          def install
            @checker = ::DidYouMean::RequirePathChecker
            directory = File.dirname(@checker.instance_method(:corrections).source_location.first, 2)
            @search = @checker.method(:requireables)
            roots = @checker.const_get(:INITIAL_LOAD_PATH)
            # A relative one is another directory as soon as the program goes elsewhere.
            return unless roots.all? { |path| path.start_with?("/") } && @search.source_location.first.start_with?(directory)

            @originals = Data::Originals.new(methods_of(TYPES), directory)
            sources = $LOADED_FEATURES.select { |feature| feature.start_with?("#{directory}/") }
            @trees = Trees.new("did_you_mean", roots, links: false, context: "suggestions 1 #{::DidYouMean::VERSION}",
                                                      sources: Trees.sources(sources))
            hook
          end

          # What is suggested for the feature of a checker; the block finds out.
          def answer(checker)
            return yield unless known?(checker)

            kept = nil
            @trees.answer(checker.path, exact: ->(_) { own?(kept) }) do
              kept = found
              yield
            end
          end

          private

          def methods_of(types)
            names = types.to_h do |name|
              type = ::DidYouMean.const_get(name)
              own = type.singleton_methods(false)
              own = type.instance_methods(false) + type.private_instance_methods(false) if type.is_a?(Class)
              ["DidYouMean::#{name}", own]
            end
            { "DidYouMean::RequirePathChecker" => %i[initialize path], **names }
          end

          # Whether it would search as did_you_mean does.
          def known?(checker)
            Archive.enabled? && checker.instance_of?(@checker) && checker.path.instance_of?(String) &&
              @checker.method(:requireables) == @search && @originals.intact?
          end

          # The features that did_you_mean has found in this process, and goes on with; nil before its first search.
          def found
            @checker.instance_variable_get(:@requireables)
          end

          # Whether a search was made from what is there: it had found nothing before, or in an earlier search that was
          # watched, and not when nobody knows what was there.
          def own?(kept)
            is_own = kept.nil? || kept.equal?(@found)
            @found = found if is_own
            is_own
          end

          # Not prepended: who defines it once more has the last word.
          def hook
            @checker.class_eval do
              alias_method :corrections_by_search, :corrections
              private :corrections_by_search
              alias_method :corrections, :corrections # no warning that it is defined again
              def corrections
                @corrections ||= Suggestions.answer(self) { corrections_by_search }
              end
            end
          end
        end
      end
    end
  end
end
