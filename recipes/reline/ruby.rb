# frozen_string_literal: true

# Reline, the line editor of irb and other consoles. When it is loaded it chooses how to talk to the terminal, which each
# start has for itself. So the choice is made again after each thaw, as Reline makes it.
module RelineRecipe
  # What Reline reads when it is loaded, as far as nothing but the choices that are made again depends on it. Other libraries
  # that read TERM are C libraries, of whose reads nobody knows whose they are.
  READS = [
    ["terminal", "/reline.rb"], ["TERM", "/reline.rb"], ["TERM", "/reline/io.rb"], ["COLORTERM", "/reline/face.rb"]
  ].freeze
  # Up to this version a dumb terminal is one like any other.
  ANY_TERMINAL = %w[0.3.0 0.3.1].freeze

  class << self
    include Recipes::Defaults

    # True for the versions whose choice is known.
    def applies?
      return false unless Object.const_defined?(:Reline) && Reline.const_defined?(:IOGate, false)

      decides_itself? || (Reline.const_defined?(:GeneralIO, false) && Reline::GeneralIO.is_a?(Class))
    end

    def renews?(what, reader)
      READS.any? { |read, file| read == what && reader.end_with?(file) } && !(what == "TERM" && terminal_library?)
    end

    def after_thaw
      gate = decides_itself? ? own_choice : choice
      unless gate.equal?(Reline::IOGate)
        Reline.__send__(:remove_const, :IOGate)
        Reline.const_set(:IOGate, gate)
      end
      Reline::Face.instance_variable_get(:@configs)&.each_value(&:reconfigure) unless @has_true_colour == true_colour?
    end

    def before_freeze
      @has_true_colour = true_colour?
    end

    private

    # From 0.5 on.
    def decides_itself?
      Reline.const_defined?(:IO, false) && Reline::IO.respond_to?(:decide_io_gate)
    end

    def own_choice
      gate = Reline::IO.decide_io_gate
      gate.instance_of?(Reline::IOGate.class) ? Reline::IOGate : gate
    end

    def choice
      return Reline::GeneralIO unless $stdout.tty?
      return Reline::GeneralIO if ENV["TERM"] == "dumb" && !ANY_TERMINAL.include?(Reline::VERSION)

      require "reline/ansi"
      Reline::ANSI
    end

    # Nil for versions without colours.
    def true_colour?
      Reline::Face.truecolor? if Reline.const_defined?(:Face, false)
    end

    def terminal_library?
      $LOADED_FEATURES.any? { |file| file.end_with?("/readline.so", "/curses.so") }
    end
  end
end

Recipes.register(RelineRecipe)
