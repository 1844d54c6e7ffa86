# frozen_string_literal: true

module Snapboot
  module Archive
    module Gems
      # `require "bundler/setup"` from the archive: the gems that a bundle resolves to, and the data for Bundler.require.
      # Bundler itself then does the real set-up (load path, environment, Gem.loaded_specs, Kernel#gem). It builds
      # Bundler.definition and its parts when the program uses them.
      module Bundle
        autoload :Facts, "#{__dir__}/bundle/facts"
        autoload :Front, "#{__dir__}/bundle/front"
        autoload :Record, "#{__dir__}/bundle/record"
        autoload :RubyGems, "#{__dir__}/bundle/rubygems"
        autoload :Specifications, "#{__dir__}/bundle/specifications"

        # Versions with known internals. Others set up ordinarily.
        VERSIONS = /\A2\.[356]\./

        # Prepended to the singleton class of Gem until Bundler calls one of these methods, which is the moment to hook
        # Bundler.setup: nothing here must load Bundler, or watch every require.
        module Arrival
          # Called while `bundler.rb` is loaded, up to Bundler 2.3.
          def win_platform?
            Bundle.attach if defined?(::Bundler::EnvironmentPreserver)
            super
          end

          # Called by the settings, with which the set-up begins since Bundler 2.4.
          def user_home
            Bundle.attach if defined?(::Bundler.setup)
            super
          end
        end

        class << self
          # The record that this process was set up from, or nil.
          attr_accessor :record

          # Returns nil, or why it cannot be switched on.
          def install
            return "this Ruby has no syntax tree" unless Gems.known_sources?
            return "unknown RubyGems #{Gem::VERSION}" unless Gem.respond_to?(:win_platform?) && Gem.respond_to?(:user_home)

            Gem.singleton_class.prepend(Arrival)
            nil
          end

          # Hooks Bundler, which is being loaded.
          def attach
            Arrival.send(:remove_method, :win_platform?, :user_home)
            version = ::Bundler::VERSION
            return Archive.log("no bundles from the archive: unknown Bundler #{version}") unless VERSIONS.match?(version)

            ::Bundler.singleton_class.prepend(Front)
          end
        end
      end
    end
  end
end
