# frozen_string_literal: true

# The gem rainbow, from 2.0 on, which decides when it is loaded whether it colours what it is given.
styles = "black|red|green|yellow|blue|magenta|cyan|white|" \
         "bright|bold|dark|faint|italic|underline|blink|inverse|hide|cross_out|strike|freeze"
Recipes.register(
  Choice.new(
    Choice::Source.new(
      file: "/rainbow.rb",
      forms: [
        [
          "self.enabled = false unless STDOUT.tty? && STDERR.tty?",
          'self.enabled = false if ENV["TERM"] == "dumb"',
          'self.enabled = true if ENV["CLICOLOR_FORCE"] == "1"'
        ]
      ],
      through: ["/rainbow/global.rb", "/rainbow/wrapper.rb"],
      variables: %w[TERM CLICOLOR_FORCE],
      streams: [1, 2],
      takers: [:enabled],
      setter: :enabled=,
      constants: /\A([A-Z]\w*) = Rainbow\((['"])[^'"\\#]*\2\)(?:\.(?:#{styles}))*\z/
    ),
    -> { Rainbow.global if Rainbow.respond_to?(:global) },
    lambda do |before|
      next true if ENV["CLICOLOR_FORCE"] == "1"

      ENV["TERM"] != "dumb" && STDOUT.tty? && STDERR.tty? ? before : false
    end
  )
)
