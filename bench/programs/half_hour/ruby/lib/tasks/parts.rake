# frozen_string_literal: true

desc "Shows the texts of a model"
task parts: :environment do
  puts Part.texts.inspect
end
