# frozen_string_literal: true

module Snapboot
  module Archive
    # RubyGems and Bundler from the archive: what they find out about installed gems and about a bundle is taken
    # from there for as long as everything that it was made of is unchanged. Nothing here loads either of them.
    module Gems
      autoload :Bundle, "#{__dir__}/bundle"
      autoload :Gemspecs, "#{__dir__}/gemspecs"
      autoload :KnownSource, "#{__dir__}/known_source"
      autoload :Libraries, "#{__dir__}/libraries"
      autoload :PlainGemspec, "#{__dir__}/plain_gemspec"
      autoload :Stubs, "#{__dir__}/stubs"

      class << self
        # Switches it on. Does nothing without an archive or RubyGems, nor on another Ruby than CRuby; a part whose side
        # in RubyGems is not as known stays off, and SNAPBOOT_LOG=1 says why. Returns nil.
        def install
          return if RUBY_ENGINE != "ruby" || @installed || !Archive.enabled? || !defined?(Gem::Specification)

          @installed = true
          parts = { "gemspecs" => Gemspecs, "lists of gems" => Stubs, "names of features" => Libraries, "bundles" => Bundle }
          parts.each do |what, part|
            reason = part.install
            Archive.log("no #{what} from the archive: #{reason}") if reason
          end
          nil
        end

        # Whether this Ruby can tell what a source depends on, and keep compiled code.
        def known_sources?
          defined?(RubyVM::AbstractSyntaxTree) && defined?(RubyVM::InstructionSequence) ? true : false
        end

        # Describes what an entry depends on besides its inputs: Ruby, RubyGems and the given facts.
        def context(*facts)
          ["gems 1", RUBY_DESCRIPTION, Gem::VERSION, *facts].join("; ")
        end
      end
    end
  end
end
