# frozen_string_literal: true

require_relative "support/programs"

# Preloads, hooks, freeze points and the report.
class FreezeTest < SameResult
  HOOKS = "require #{"#{ROOT}/ruby/lib/snapboot".inspect}\n".freeze

  def test_versions_are_equal
    require "#{ROOT}/ruby/lib/snapboot/version"
    assert_equal File.read("#{ROOT}/Cargo.toml")[/^version = "(.*)"/, 1], Snapboot::VERSION
  end

  def test_hooks_in_an_ordinary_start
    file("hooks.rb", "#{HOOKS}p Snapboot.state\nSnapboot.before_freeze { p 1 }\nSnapboot.after_thaw { p 2 }\n" \
                     "Snapboot.defer { p 3 }\nSnapboot.freeze_point\np Snapboot.freeze_point")
    assert_equal ":ordinary\n3\nnil\n", Programs.new(["hooks.rb"], [], directory: @directory).ordinary.output
  end

  def test_hooks_of_a_preload
    file("boot.rb", "#{HOOKS}p Snapboot.state\n2.times { |i| Snapboot.before_freeze { p [:before, i] } }\n" \
                    "2.times { |i| Snapboot.after_thaw { p [:after, i] } }\nSnapboot.defer { p [:deferred, ENV['A']] }\n")
    shown, report = thawed([], "-e", "p Snapboot.state; Snapboot.defer { p :now }", preload: ["./boot"],
                                                                                    environment: { "A" => "b" })
    expected = "[:after, 0]\n[:after, 1]\n[:deferred, \"b\"]\n:thawed\n:now\n"
    expected = ":freezing\n[:before, 1]\n[:before, 0]\n#{expected}" unless SNAPBOOT
    assert_equal expected, shown.output
    return if SNAPBOOT

    assert_includes report, "preloaded=./boot"
    assert_includes report, "loaded=#{@directory}/boot.rb"
    assert_empty report.grep(/front_end|freeze\.rb/)
  end

  def test_failing_hooks_are_named
    %w[before_freeze after_thaw].each do |kind|
      file("boot.rb", "#{HOOKS}\nSnapboot.#{kind} { raise 'told' }\n")
      shown, = thawed([], "-e", "p 1", preload: ["./boot"])
      assert_match(/#{kind} hook .*boot\.rb:3 failed: told \(RuntimeError\)/, shown.errors)
      assert_equal 1, shown.status
    end
  end

  def test_freeze_point
    file("points.rb", "#{HOOKS}p Snapboot.state\nx = 5\nSnapboot.freeze_point\n" \
                      "p Snapboot.state, ARGV, x, __FILE__, $0\n" \
                      "at_exit { p :end }\nraise 'a' if ARGV == ['raise']\np DATA.read\n__END__\ndata\n")
    shown, = thawed(["points.rb"], "given")
    before = SNAPBOOT ? "" : ":freezing\n"
    after = ":thawed\n[\"given\"]\n5\n\"points.rb\"\n\"points.rb\"\n\"data\\n\"\n:end\n"
    assert_equal before + after, shown.output
    shown, = thawed(["points.rb"], "raise")
    assert_match(/\Apoints\.rb:7:in [`']<main>': a \(RuntimeError\)\n\z/, shown.errors)
  end

  def test_freeze_point_that_is_not_reached
    file("never.rb", "# Snapboot.freeze_point\nat_exit { p 1 }\n")
    shown, report = thawed(["never.rb"])
    assert_equal 2, shown.status
    assert_match(/ended without reaching Snapboot.freeze_point/, SNAPBOOT ? shown.errors : report.grep(/error/).join)
  end

  def test_what_can_never_start_is_not_frozen
    file("never.rb", "def a\n  foo(\nend\n")
    { ["never.rb"] => /\A\S*never\.rb:3: syntax error.*unexpected [`']end'/m,
      ["-e", "p 1", "-e", "foo("] => /\A-e:2: syntax error.*unexpected end-of-input/m }.each do |command, message|
      shown, report = thawed(command)
      assert_equal 1, shown.status
      assert_match message, shown.errors
      refute_match(/front_end/, shown.errors)
      assert_includes report, "error=it has a syntax error, which ends each of its starts" unless SNAPBOOT
    end
  end

  def test_what_only_looks_wrong_is_frozen
    same [file("data.rb", "#!/usr/bin/env ruby\np DATA.read\n__END__\ndef (\n")]
    same [file("latin.rb", "# encoding: iso-8859-1\np 'a'\n")]
    same [file("warned.rb", "p((1 if a = 2))\n")]
    same ["-ne", "next if $_ == 'x'; print"], input: "a\n" if SNAPBOOT
  end

  def test_a_before_freeze_hook_of_the_main_part_is_warned_of
    code = "#{HOOKS}Snapboot.before_freeze { p 1 }\n"
    [[file("dead.rb", code)], ["-e", code]].each do |command|
      shown, report = thawed(command)
      assert_equal "", shown.output
      assert_match(/^warning=the main part mentions before_freeze/, report.join("\n")) unless SNAPBOOT
    end
    _, report = thawed([file("alive.rb", "#{code}Snapboot.freeze_point\n")])
    assert_empty report.grep(/^warning/) unless SNAPBOOT
  end

  def test_unknown_preloads
    { "no_such_feature" => /unknown preload no_such_feature.*load path.*Check the spelling/,
      "./no/such" => %r{unknown preload ./no/such: there is no file .*/no/such\.rb} }.each do |name, message|
      shown, report = thawed([], "-e", "p 1", preload: [name])
      assert_equal 2, shown.status
      assert_match message, SNAPBOOT ? shown.errors : report.grep(/^error=/).join
      assert_empty shown.output
    end
  end

  def test_preloads_that_fail
    { "require 'missing_in_boot'" => /cannot load such file -- missing_in_boot \(LoadError\)/,
      "raise 'told'" => /\A#{Regexp.escape(@directory)}.boot\.rb:1:in [`']<top \(required\)>': told \(RuntimeError\)$/,
      "def a" => /syntax error/, "1.foo" => /undefined method/ }.each do |code, message|
      file("boot.rb", code)
      shown, = thawed([], "-e", "p 1", preload: ["./boot"])
      assert_match message, shown.errors
      refute_match(/front_end/, shown.errors)
      assert_equal 1, shown.status
    end
  end

  def test_exit_handlers_of_a_preload_run_in_the_thawed_process_only
    file("boot.rb", "at_exit { puts 'handler' }")
    shown, = thawed([], "-e", "puts 1", preload: ["./boot"])
    assert_equal "1\nhandler\n", shown.output
  end

  def test_files_left_open_by_a_preload_are_flushed
    # What the first boot made would be there for a second one.
    file("log", "")
    file("boot.rb", "LOG = File.open('log', 'a'); LOG.write('booted ')")
    thawed([], "-e", "LOG.write('ran')", preload: ["./boot"])
    # A boot that is compared with others is made more than once.
    assert_match(/\A(booted )+ran\z/, File.read("#{@directory}/log"))
  end

  def test_origins_of_descriptors
    file("boot.rb", "\nA = File.open('boot.rb')\nB = IO.pipe\n")
    programs = Programs.new([], ["-e", "1"], directory: @directory, preload: ["./boot"])
    def programs.write_plan(place)
      super
      File.write("#{place}/request", "origins=1\0", mode: "a")
    end
    programs.send(:simulated) # with an image this is a run that the command starts by itself
    origins = programs.report.grep(/fd_origin/)
    assert_equal [2, 3, 3], origins.map { |entry| entry[/boot\.rb:(\d+)\z/, 1].to_i }.sort
  end

  def test_nothing_of_the_front_end_is_loaded
    code = "p Object.constants.sort, $LOADED_FEATURES.sort, $LOAD_PATH, ObjectSpace.method(:define_finalizer).arity, " \
           "Process.singleton_methods.sort, Kernel.private_instance_methods.sort, global_variables.sort"
    same_code code
    same [file("script.rb", code)]
    file("boot.rb", "require 'set'")
    shown, = thawed([], "-e", "puts $LOADED_FEATURES.grep(/snapboot/)", preload: ["./boot"])
    assert_equal "", shown.output
  end
end
