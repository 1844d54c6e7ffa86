# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # Whether a name counts as loaded: `$LOADED_FEATURES` has it, or its path below any directory of the load path. Each
      # runtime keeps an index for that; it is asked if possible, so that the answer is its own.
      module Loaded
        # Asks TruffleRuby.
        module ByTruffleRuby
          def self.include?(name, _directories)
            ::Truffle::FeatureLoader.feature_provided?(name, false)
          end
        end

        # Asks JRuby.
        class ByJRuby
          def initialize
            require "jruby"
            @service = ::JRuby.runtime.load_service
          end

          def include?(name, _directories)
            @service.featureAlreadyLoaded(name)
          end
        end

        # Keeps an index of its own, by the last part of each name.
        class ByIndex
          def initialize
            @seen = []
            @by_name = {}
          end

          # directories: a Hash whose keys are the directories of the load path.
          def include?(name, directories)
            refresh
            stem = stem(name)
            (@by_name[File.basename(stem)] || []).any? do |feature|
              path = stem(feature)
              path == stem || (path.end_with?("/#{stem}") && directories.key?(path[0...-stem.size - 1]))
            end
          end

          private

          def refresh
            features = $LOADED_FEATURES
            return if features == @seen

            grown = features.size > @seen.size && features.first(@seen.size) == @seen
            added = grown ? features.drop(@seen.size) : start_again
            added.each { |feature| (@by_name[File.basename(stem(feature))] ||= []) << feature }
            @seen = features.dup
          end

          def start_again
            @by_name.clear
            $LOADED_FEATURES
          end

          def stem(name)
            name.sub(/\.(?:rb|so|o|dll|bundle|jar)\z/, "")
          end
        end

        # Returns the best of them.
        def self.here
          case RUBY_ENGINE
          when "truffleruby" then ByTruffleRuby.include?("snapboot", nil) ? ByIndex.new : ByTruffleRuby
          when "jruby" then ByJRuby.new
          else ByIndex.new
          end
        rescue StandardError, LoadError # their interfaces may change
          ByIndex.new
        end
      end
    end
  end
end
