# frozen_string_literal: true

module Snapboot
  module Archive
    # What SNAPBOOT_STATS=1 asks for: a line on standard error when the process ends.
    module Stats
      # Prints it.
      def self.print
        numbers = Archive.counters.map { |event, number| "#{number} #{event}" }.join(", ")
        size = File.size?(Archive.place)
        $stderr.write("snapboot: #{numbers}; #{Archive.place} #{size ? "#{size / 1024} KB" : "not made"}\n")
      rescue SystemCallError, IOError
        nil
      end
    end
  end
end
