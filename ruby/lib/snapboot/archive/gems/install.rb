# frozen_string_literal: true

module Snapboot
  module Archive
    # RubyGems and Bundler from the archive: their results about installed gems and about a bundle are reused as long as
    # nothing they were made from changes. Nothing here loads either of them.
    module Gems
      autoload :Bundle, "#{__dir__}/bundle"
      autoload :Gemspecs, "#{__dir__}/gemspecs"
      autoload :KnownSource, "#{__dir__}/known_source"
      autoload :Libraries, "#{__dir__}/libraries"
      autoload :PlainGemspec, "#{__dir__}/plain_gemspec"
      autoload :Stubs, "#{__dir__}/stubs"

      class << self
        # Switches it on. Does nothing without an archive or RubyGems, nor on a Ruby other than CRuby; a part for which
        # RubyGems has an unfamiliar form stays off, and SNAPBOOT_LOG=1 shows why. Returns nil.
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

        # Whether this Ruby can analyse what a source depends on, and store compiled code.
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
