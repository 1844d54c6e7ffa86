# frozen_string_literal: true

require_relative "support/programs"

# What a program can find out about how it was started.
class MainPartTest < SameResult
  INTROSPECTION = <<~'RUBY'
    # encoding: utf-8
    one = 1
    p __FILE__, __dir__, __method__, __ENCODING__, __LINE__
    p $0, $PROGRAM_NAME, Process.argv0, ARGV, ARGV.map(&:frozen?), ARGV.map(&:encoding)
    p self, binding.local_variables, TOPLEVEL_BINDING.local_variables, caller, caller_locations
    p $VERBOSE, $DEBUG, $-w, $., $,, $/, $:, $".sort
    p Object.constants.sort, global_variables.sort, main_methods = private_methods(false).sort
    p Thread.list.size, Thread.current.name, Process.respond_to?(:fork), defined?(Snapboot), ENV.keys.sort - ["_"]
    p $stdin.external_encoding, $stdout.external_encoding, $stdout.sync, $stderr.sync, $stdout.tty?, $stdin.lineno
    p Encoding.default_external, Encoding.default_internal, $stdout.inspect, $stdin.fileno
    p RubyVM.respond_to?(:keep_script_lines) && RubyVM.keep_script_lines
    p defined?(DATA) && [DATA.read, DATA.path, DATA.lineno, DATA.external_encoding, DATA.class]
    at_exit { p $! }
  RUBY

  def test_code
    same_code INTROSPECTION, "a", "", "b c", "é"
  end

  def test_code_without_gems
    same [], "-e", INTROSPECTION, interpreter_options: ["--disable-gems"]
  end

  def test_several_codes
    same [], "-e", "p __LINE__", "-ep __LINE__", "--", "-e", "x"
  end

  def test_code_in_the_posix_locale
    locale = { "LC_ALL" => "C" }
    same_code "p 'é'.encoding, 'a'.encoding, __ENCODING__, ARGV", "é", environment: locale
    same_code "p 'a'.encoding, __ENCODING__, ARGV", "é", environment: locale
    same_code "p ARGV.map(&:encoding)", "a", environment: locale
    same_code "puts 1; 1.foo", environment: locale
    same [], file("script.rb", INTROSPECTION), "é", environment: locale
    same [], "-", "é", environment: locale, input: "p __ENCODING__, 'a'.encoding"
  end

  def test_script
    same [], file("script.rb", "#{INTROSPECTION}\n__END__\nsome\ndata\n"), "a", "-e", "--", environment: {}
  end

  def test_script_in_a_directory_with_a_shebang
    file("lib/other.rb", "p __FILE__, __dir__, caller.size")
    code = "#!/usr/bin/env ruby\nrequire_relative '../lib/other'\n#{INTROSPECTION}"
    same [], file("bin/a_script_with_a_rather_long_name", code)
  end

  def test_script_behind_a_symbolic_link
    file("real/script.rb", "require_relative 'other'\n#{INTROSPECTION}")
    file("real/other.rb", "p :other")
    File.symlink("real/script.rb", "#{@directory}/link.rb")
    same [], "link.rb"
  end

  def test_shebang_with_options_or_without_ruby
    same [], file("options.rb", "#!/usr/bin/ruby -w\np $VERBOSE")
    same [], file("shell.rb", "#!/bin/sh\necho 1\n#!ruby\np __LINE__")
  end

  def test_magic_comments
    same [], file("frozen.rb", "# frozen_string_literal: true\np ''.frozen?")
    same [], file("latin.rb", "# encoding: iso-8859-1\np 'a'.encoding, __ENCODING__")
    same [], file("bom.rb", "\u{feff}p __ENCODING__")
    same_code "# frozen_string_literal: true\np ''.frozen?"
  end

  def test_standard_input
    ["p __FILE__, __dir__, $0, ARGV, caller\n1.foo", "p 1\n__END__\nx", "", "# a\nfoo("].each do |input|
      same [], input: input
      same [], "-", "a", input: input
    end
  end

  def test_missing_scripts_and_syntax_errors
    same [], "missing.rb"
    same [], "."
    same [], file("empty.rb", ""), "a"
    same [], file("syntax.rb", "def a\n  foo(\nend\n")
    same_code "foo("
    same_code "x = 'é'; x.foo; 1.bar(2)"
  end

  def test_long_code
    same_code "#{"# padding\n" * 900}p __LINE__"
    same_code "#{"# padding\n" * 9000}p __LINE__"
  end

  def test_options
    file("lib/feature.rb", "p [:feature, $:[0], caller.size > 0, ARGV, $0]")
    same [], "-Ilib", "-rfeature", "-w", "-e", "p $VERBOSE, $:.first; def a; end; def a; end", "x"
    same [], "-I", "lib", "-r", "feature", "-W0", file("s.rb", "p $VERBOSE, Warning[:deprecated]")
    same [], "-rmissing", "-e", "1"
    same [], "-ne", "print if /b/", input: "a\nb\n"
    same [], "--version"
    same [], "-e"
    same [], "-Z"
  end

  def test_begin_end_and_data
    same [], file("blocks.rb", "END { p :end }\nBEGIN { p :begin }\np DATA.read, DATA.pos\n__END__\ndata\n")
  end

  def test_fixed_script
    same [file("fixed.rb", "#{INTROSPECTION}\n__END__\ndata\n"), "fixed"], "given"
  end

  def test_fixed_code
    same ["-e", INTROSPECTION], "given"
  end

  def test_errors_in_the_program
    same [], file("errors.rb", <<~RUBY)
      def deep = raise("inner")
      begin
        deep
      rescue StandardError => e
        puts e.backtrace, e.full_message(highlight: false), e.backtrace_locations.map(&:absolute_path)
        warn "uplevel", uplevel: 0
        raise ArgumentError, "outer\\nsecond line"
      end
    RUBY
  end
end
