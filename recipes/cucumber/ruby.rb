# frozen_string_literal: true

# Cucumber, which decides when its formatters are loaded whether they use colours.
Recipes.register(
  Choice.new(
    Choice::Source.new(
      file: "/cucumber/formatter/ansicolor.rb",
      forms: %w[STDOUT $stdout].product(%w[has_key? key?]).map do |stream, asks|
        ["Cucumber::Term::ANSIColor.coloring = false if !#{stream}.tty? && !ENV.#{asks}(\"AUTOTEST\")"]
      end,
      through: ["/cucumber/term/ansicolor.rb"],
      variables: %w[AUTOTEST],
      streams: [1],
      takers: %i[coloring? coloring],
      setter: :coloring=
    ),
    -> { Cucumber::Term::ANSIColor },
    ->(before) { STDOUT.tty? || ENV.key?("AUTOTEST") ? before : false }
  )
)
