# frozen_string_literal: true

require_relative "../data/originals"

module Snapboot
  module Archive
    module Searches
      # What did_you_mean suggests for a feature that is nowhere. It compares the feature with every library in Ruby's own
      # directories as soon as somebody asks the LoadError for its message, as those do who rescue it to try something else:
      # some 20 ms.
      module Suggestions
        METHODS = {
          "DidYouMean::RequirePathChecker" => %i[initialize path],
          "DidYouMean::SpellChecker" => %i[correct normalize],
          "DidYouMean::TreeSpellChecker" => %i[initialize correct],
          "DidYouMean::JaroWinkler" => %i[distance],
          "DidYouMean::Jaro" => %i[distance],
          "DidYouMean::Levenshtein" => %i[distance]
        }.freeze

        class << self
          # Takes and returns nothing. Raises where did_you_mean is not as known.
          def install
            checker = ::DidYouMean::RequirePathChecker
            directory = File.dirname(checker.instance_method(:corrections).source_location.first, 2)
            @originals = Data::Originals.new(METHODS, directory)
            roots = checker.const_get(:INITIAL_LOAD_PATH).map { |path| File.expand_path(path) }
            sources = $LOADED_FEATURES.select { |feature| feature.start_with?("#{directory}/") }
            @trees = Trees.new("did_you_mean", roots, "suggestions 1 #{::DidYouMean::VERSION}", sources)
            hook(checker)
          end

          # What is suggested for that feature (a String); the block finds out.
          def answer(feature, &search)
            is_known = Archive.enabled? && feature.instance_of?(String) && @originals.intact?
            is_known ? @trees.answer(feature, &search) : yield
          end

          private

          # Not prepended: who defines it once more has the last word.
          def hook(checker)
            checker.class_eval do
              alias_method :corrections_by_search, :corrections
              private :corrections_by_search
              alias_method :corrections, :corrections # no warning that it is defined again
              def corrections
                @corrections ||= Suggestions.answer(path) { corrections_by_search }
              end
            end
          end
        end
      end
    end
  end
end
