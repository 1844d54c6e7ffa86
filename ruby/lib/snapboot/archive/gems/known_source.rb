# frozen_string_literal: true

module Snapboot
  module Archive
    module Gems
      # Recognises Ruby source whose result depends on nothing but its text and some environment variables: it consists of
      # literals, of calls whose names are listed here, and of local variables. Gemspecs that RubyGems wrote and plain
      # Gemfiles qualify; a source that lists files, runs commands or defines methods does not. Uses CRuby's
      # RubyVM::AbstractSyntaxTree.
      class KnownSource
        def self.table(names)
          names.split.to_h { |name| [name.to_sym, true] }.freeze
        end
        private_class_method :table

        # Pure methods of strings, symbols, numbers, arrays, hashes and versions: harmless for any receiver that the source
        # can get.
        PURE = table(<<~NAMES)
          == != === =~ !~ < <= > >= <=> ! + - * & | [] fetch dig key? include? member? start_with? end_with?
          match? empty? nil? any? all? none? each each_with_object each_with_index map flat_map collect select
          filter reject find detect first last size length count to_s to_sym to_i to_a to_h strip chomp
          split join sub gsub tr upcase downcase capitalize delete_prefix delete_suffix freeze dup merge compact
          uniq flatten reverse sort sort_by keys values zip partition segments release bump lambda proc
        NAMES

        # What RubyGems writes into a gemspec.
        GEMSPEC = table(<<~NAMES)
          new respond_to? add_dependency add_runtime_dependency add_development_dependency
          author= authors= autorequire= bindir= cert_chain= date= description= email= executables= extensions=
          extra_rdoc_files= files= homepage= installed_by_version= license= licenses= metadata= name= platform=
          post_install_message= rdoc_options= require_paths= required_ruby_version= required_rubygems_version=
          requirements= rubygems_version= signing_key= specification_version= summary= test_files= version=
        NAMES

        # Bundler's language, without methods that read files which Bundler does not report (gemspec), or that run git.
        GEMFILE = table(<<~NAMES)
          source gem group platform platforms env install_if git_source eval_gemfile new create __dir__
        NAMES

        CONSTANTS = table(<<~NAMES)
          Gem Specification Requirement Version Platform Dependency VERSION RUBY CURRENT
          RUBY_VERSION RUBY_ENGINE RUBY_ENGINE_VERSION RUBY_PLATFORM RUBY_PATCHLEVEL
        NAMES

        # Nodes of the syntax tree that are as harmless as their children.
        STRUCTURE = table(<<~NAMES)
          SCOPE BLOCK ITER ARGS LAMBDA BEGIN LIST ARRAY ZARRAY ZLIST HASH ARGSCAT ARGSPUSH SPLAT OPT_ARG
          KW_ARG STR DSTR EVSTR DSYM SYM LIT INTEGER FLOAT RATIONAL REGX DREGX DOT2 DOT3 NIL TRUE FALSE LINE FILE
          ENCODING IF UNLESS AND OR NOT CASE CASE2 WHEN MATCH2 MATCH3 LASGN LVAR DASGN DASGN_CURR DVAR OP_ASGN_OR
          OP_ASGN_AND
        NAMES

        # The options of `ruby` in a Gemfile besides versions: its `file:` would be read.
        RUBY = table("engine engine_version patchlevel")

        # Methods by which a source may read an environment variable.
        VARIABLE = table("[] fetch key?")

        class << self
          # Returns the names of the environment variables that the source reads, or nil if its dependencies are unknown.
          # methods: a Hash whose keys name the methods that it may call besides pure ones.
          def variables(source, methods)
            return unless source.valid_encoding?

            known = new(methods)
            known.variables if known.safe?(RubyVM::AbstractSyntaxTree.parse(source))
          rescue SyntaxError, ArgumentError, NotImplementedError
            nil
          end
        end

        attr_reader :variables

        def initialize(methods)
          @methods = methods
          @variables = []
        end

        # Whether all of a node, or of an Array of nodes, has no effect that is unknown; records the variables.
        def safe?(node)
          case node
          when RubyVM::AbstractSyntaxTree::Node then safe_node?(node)
          when Array then node.all? { |child| safe?(child) }
          else true
          end
        end

        private

        def safe_node?(node)
          children = node.children
          return safe?(children) if STRUCTURE.key?(node.type)

          case node.type
          when :CALL, :OPCALL, :QCALL, :ATTRASGN then safe_call?(*children)
          when :FCALL then children[0] == :ruby ? safe_ruby?(children[1]) : allowed?(children[0]) && safe?(children[1])
          when :VCALL then allowed?(children[0]) && safe?(children[1])
          when :BLOCK_PASS then safe_block?(*children)
          when :CONST then CONSTANTS.key?(children[0])
          when :COLON2 then CONSTANTS.key?(children[1]) && safe?(children[0])
          end
        end

        def safe_call?(receiver, name, arguments = nil)
          return safe_variable?(name, arguments) if constant?(receiver, :ENV)
          return safe?(arguments) if constant?(receiver, :File) && name == :join

          allowed?(name) && safe?(receiver) && safe?(arguments)
        end

        # &:name, which calls that method.
        def safe_block?(arguments, block)
          safe?(arguments) && %i[LIT SYM].include?(block&.type) && allowed?(block.children[0])
        end

        def safe_ruby?(arguments)
          return false unless @methods.equal?(GEMFILE) && arguments.type == :LIST

          arguments.children.compact.all? { |node| node.type == :STR || (node.type == :HASH && known_options?(node)) }
        end

        def known_options?(hash)
          hash.children[0].children[0...-1].each_slice(2).all? do |key, value|
            key && %i[LIT SYM].include?(key.type) && RUBY.key?(key.children[0]) && value.type == :STR
          end
        end

        def constant?(node, name)
          node.is_a?(RubyVM::AbstractSyntaxTree::Node) && node.type == :CONST && node.children[0] == name
        end

        def safe_variable?(name, arguments)
          first = arguments&.children&.first
          return unless VARIABLE.key?(name) && first && first.type == :STR && safe?(arguments)

          @variables << first.children[0]
          true
        end

        def allowed?(name)
          PURE.key?(name) || @methods.key?(name)
        end
      end
    end
  end
end
