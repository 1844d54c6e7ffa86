# frozen_string_literal: true

# A thaw that records where its time goes, for `snapboot explain`. The code for this is in the image; other thaws do not
# touch it.
module Explained
  OWN = "#{File.dirname(__dir__)}/explain/run.rb".freeze

  # Records the same parts that an ordinary start records.
  RUN = binding.tap { |scope| scope.local_variable_set(:thawed, true) }.eval(File.read(OWN, encoding: Encoding::UTF_8), OWN)

  # Starts recording. Returns an object with +step(kind, name)+, which ends one step and begins the next, and +tell+.
  def self.begin
    RUN.new(OWN).start_thawed
  end
end
