# frozen_string_literal: true

# What edits of a model change.
class Part
  def self.texts = (@texts ||= [])
end
