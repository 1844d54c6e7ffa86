# frozen_string_literal: true

# `bundle exec PROGRAM` loads scripts of Ruby into its own process if their first line names a Ruby in one of four ways.
# Otherwise it executes them as another program, which no image can go on with. On its way to the freeze point of such a
# program, Bundler also loads scripts whose first line leads to the Ruby that is running: Debian's, for example.
module BundlerRecipe
  class << self
    include Recipes::Defaults

    # Defined as soon as the program executes a command.
    def applies?
      Object.const_defined?(:Bundler) && Bundler.const_defined?(:CLI) && Bundler::CLI.const_defined?(:Exec, false)
    end

    def reached?(receiver)
      return false unless applies? && receiver.is_a?(Bundler::CLI::Exec)

      Recipes.instead(receiver, :ruby_shebang?) { |asks| asks.call || same_ruby?(Bundler.which(receiver.cmd)) }
      :on_the_way
    end

    private

    def same_ruby?(script)
      ruby = File.open(script, &:gets).to_s[/\A#!(\S+)$/, 1]
      !ruby.nil? && File.exist?(ruby) && File.identical?(ruby, Gem.ruby)
    end
  end
end

Recipes.register(BundlerRecipe)
