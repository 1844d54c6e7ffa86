# frozen_string_literal: true

module Snapboot
  module Archive
    module Gems
      # Recognises gemspecs as RubyGems writes them when a gem is installed: assignments of literals, line by line. One match
      # is enough, where KnownSource would walk a syntax tree.
      module PlainGemspec
        # In double quotes, with the escapes that String#dump writes, or %q<...>. Nothing is interpolated.
        TEXT = /"(?:[^"\\#]|\\(?:["\\#nrtabefv]|u\h{4}|u\{\h+\}|x\h\h)|\#(?![{$@]))*+"|%q<[^<>\\]*+>/
        ATOM = /(?:(?:#{TEXT})(?:\.freeze)?|-?\d+(?:\.\d+)?|true|false|nil|:\w+)/
        LIST = /#{ATOM}(?:, #{ATOM})*+/
        HASH = /\{ (?:#{TEXT}(?:\.freeze)? => #{ATOM}(?:, | (?=\})))*+\}/
        VALUE = /#{ATOM}|\[(?:#{LIST})?\]|#{HASH}|Gem::(?:Requirement|Version)\.new\((?:#{LIST}|\[#{LIST}\])\)/
        NAMES = KnownSource::GEMSPEC.keys.grep(/\w=\z/).map { |name| name.to_s.delete_suffix("=") }.join("|")
        ASKED = /s\.respond_to\?[ (]? ?:\w+=?\)?/
        STATEMENT = /s\.(?:#{NAMES})\ =\ (?:#{VALUE})(?:\ if\ #{ASKED})?|
                     s\.add_(?:runtime_|development_)?dependency\(#{TEXT}(?:\.freeze)?,\ \[#{LIST}\]\)|
                     if\ #{ASKED}\ then|else|end/x
        HEAD = /\A(?:# -\*- encoding: utf-8 -\*-\n)?(?:# stub: .*\n)*+\n*+/
        WHOLE = /#{HEAD}Gem::Specification\.new do \|s\|\n(?: +(?>#{STATEMENT})\n|\n)*+end\n*\z/

        # Whether the source (a String) is such a gemspec.
        def self.match?(source)
          source.valid_encoding? && WHOLE.match?(source)
        end
      end
    end
  end
end
