# frozen_string_literal: true

module Snapboot
  module Archive
    # Prints the line for SNAPBOOT_STATS=1 to standard error at the end of the process.
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
