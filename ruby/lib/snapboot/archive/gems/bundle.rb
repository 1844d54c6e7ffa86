# frozen_string_literal: true

module Snapboot
  module Archive
    module Gems
      # `require "bundler/setup"` from the archive: which gems a bundle resolves to, and what Bundler.require goes
      # through. What the real set-up then does with them (load path, environment, Gem.loaded_specs, Kernel#gem) is
      # done by Bundler itself. Bundler.definition and what belongs to it are built by Bundler when the program uses them.
      module Bundle
        autoload :Facts, "#{__dir__}/bundle/facts"
        autoload :Front, "#{__dir__}/bundle/front"
        autoload :Record, "#{__dir__}/bundle/record"
        autoload :RubyGems, "#{__dir__}/bundle/rubygems"
        autoload :Specifications, "#{__dir__}/bundle/specifications"

        # Whose inside is known. Others set up ordinarily.
        VERSIONS = /\A2\.[356]\./

        # Prepended to the singleton class of Gem, until Bundler asks for one of these, which is the moment to get in
        # front of Bundler.setup: nothing here has to load Bundler, or to look at every require.
        module Arrival
          # Called while bundler.rb is loaded, up to Bundler 2.3.
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

          # Gets in front of Bundler, which is being loaded.
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
