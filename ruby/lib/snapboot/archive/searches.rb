# frozen_string_literal: true

module Snapboot
  module Archive
    # Searches of whole directory trees that libraries make in many starts: they are answered from the archive as long as no
    # name in these trees has changed. Each library is hooked right after it was loaded; none is loaded.
    module Searches
      autoload :Suggestions, "#{__dir__}/searches/suggestions"
      autoload :TimeZones, "#{__dir__}/searches/time_zones"

      # Takes nothing, returns nil. Does nothing if the back end has no trees.
      def self.install
        return unless Archive.trees?

        { "require_path_checker.rb" => :Suggestions, "zoneinfo_data_source.rb" => :TimeZones }.each do |file, search|
          Archive.after_load(file) do
            const_get(search).install
          rescue StandardError, ScriptError => e
            Archive.log("#{file}: left alone: #{e.message} (#{e.class})")
          end
        end
        nil
      end
    end
  end
end
