# frozen_string_literal: true

# A thaw that notes where its time goes, for `snapboot explain`. What does that is in the image, and touched by no other thaw.
module Explained
  OWN = "#{File.dirname(__dir__)}/explain/run.rb"

  # What does it for ordinary starts, too.
  RUN = binding.tap { |scope| scope.local_variable_set(:thawed, true) }.eval(File.read(OWN, encoding: Encoding::UTF_8), OWN)

  # Notes from now on. Returns an object with +step(kind, name)+, which ends what is noted and begins that, and +tell+.
  def self.begin
    RUN.new(OWN).start_thawed
  end
end
