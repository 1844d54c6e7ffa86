# frozen_string_literal: true

# The script that `snapboot archive build` runs in Ruby: fills the archive that SNAPBOOT_ARCHIVE names with everything that
# boots of a program may need, without running the program.
#
# Arguments: the program's main script (or ""), its directory, further directories. It writes lines for the command to
# standard output: `phase TEXT` for the current action, `note TEXT` for a message to the person.

TELL = $stdout.dup
$stdout.reopen($stderr)
script, *directories = ARGV.slice!(0..)
# The root of the archive's names follows from the main script.
$PROGRAM_NAME = script.empty? ? "-e" : script

require_relative "../setup"

module Snapboot
  module Archive
    # Fills the archive: load path and code first, then data; nothing of parts that are switched off.
    class Builder
      # Folders that do not belong to the program itself, or that are not Ruby's.
      OTHERS = %w[.git .bundle node_modules log tmp].freeze
      private_constant :OTHERS

      # `directories`: absolute paths, the program's own first. `command`: receives lines for the command.
      def initialize(directories, command)
        @directories = directories
        @command = command
        @skipped = 0
      end

      # The return value has no meaning. Raises what resolving the bundle raises.
      def run
        resolve_bundle
        compile if Archive.part?(:code) || Archive.part?(:lookups)
        read_data if Archive.part?(:data)
        say "note", "#{@skipped} files cannot be compiled and were left out" if @skipped.positive?
        say "phase", "writing the archive"
        Archive.flush
      end

      private

      def say(kind, text)
        @command.puts("#{kind} #{text}")
        @command.flush
      end

      # Puts the bundle's gems on the load path, which the archive remembers, too.
      def resolve_bundle
        named = ENV.fetch("BUNDLE_GEMFILE", "")
        return if named.empty? && %w[Gemfile gems.rb].none? { |name| File.file?("#{@directories[0]}/#{name}") }

        say "phase", "resolving the bundle"
        require "bundler/setup"
      end

      def compile
        return say("note", "this Ruby keeps no compiled code; only data were stored") unless compiler?

        features = load_path_features
        # With the files that the archive itself needs.
        files = [*@directories, __dir__].flat_map do |directory|
          scripts_below(directory, OTHERS).map { |name| "#{directory}/#{name}" }
        end
        all = features + files
        # Ruby would run the compiled code; this stops it before. A file that Ruby cannot parse becomes empty code that
        # raises later, so empty code is checked again.
        stop = TracePoint.new(:script_compiled) do |point|
          code = point.instruction_sequence
          RubyVM::InstructionSequence.compile_file(code.path) if code.trace_points.empty?
          throw :compiled, true
        end
        stop.enable do
          all.each.with_index(1) do |name, number|
            say "phase", "compiling #{number} of #{all.size}" if (number % 100) == 1
            compile_one(name)
          end
        end
      end

      # Another library's load_iseq would give Ruby code, and nothing would be compiled.
      def compiler?
        defined?(Native) && Native.respond_to?(:keeps_code?) && Native.keeps_code?
      end

      def compile_one(name)
        @skipped += 1 unless catch(:compiled) { Native.compile(name) }
      rescue SyntaxError, StandardError
        @skipped += 1
      end

      # Every script on the load path, by the name for `require`.
      def load_path_features
        $LOAD_PATH.grep(String).select { |path| File.directory?(path) }
                  .flat_map { |path| scripts_below(path, []) }.uniq
      end

      def scripts_below(directory, others)
        Dir.glob("**/*.rb", base: directory).reject { |name| others.include?(name[%r{\A[^/]+}]) }.sort
      end

      # Translations of gems and of the program, as I18n reads them.
      def read_data
        require "i18n"
        backend = I18n::Backend::Simple.new
        say "phase", "reading data files"
        translations.each do |path|
          backend.send(:load_yml, path)
        rescue StandardError, ScriptError
          # Its error appears when the program reads it.
        end
      rescue LoadError
        # A program without I18n.
      end

      def translations
        places = $LOAD_PATH.grep(String).map { |path| File.dirname(path) } + @directories
        places.uniq.flat_map { |place| Dir.glob("#{place}/{lib/**/,config/,}{locale,locales}/**/*.{yml,yaml}") }.uniq
      end
    end
  end
end

abort "snapboot: there is no archive to fill; SNAPBOOT_LOG=1 says why" unless Snapboot::Archive.enabled?
Snapboot::Archive::Builder.new(directories, TELL).run
