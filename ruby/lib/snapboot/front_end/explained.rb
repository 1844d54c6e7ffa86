# frozen_string_literal: true

# A thaw that notes where its time goes, for `snapboot explain`. What does that is read when it is wanted: it is in no image.
module Explained
  OWN = "#{File.dirname(__dir__)}/explain/run.rb"

  # Notes from now on. Returns an object with +step(kind, name)+, which ends what is noted and begins that, and +tell+; nil where
  # the installation is gone.
  def self.begin
    scope = binding
    scope.local_variable_set(:thawed, true)
    scope.eval(File.read(OWN, encoding: Encoding::UTF_8), OWN).new(OWN).start_thawed
  rescue SystemCallError
    nil
  end
end
