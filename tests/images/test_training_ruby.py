"""What training runs show of a Ruby program is in the image, unless it belongs to a start; and the image does what the command does."""

import json

import pytest
from common import support
from common.gems import Gems

from . import training

pytestmark = pytest.mark.sample(14, whole=True)

# A program that loads everything late, in a method, and says how often each feature was loaded.
PROGRAM = r"""$LOAD_PATH.unshift("#{__dir__}/lib")
class App
  autoload :Lazy, "lazy"
  autoload :Outer, "outer"

  def self.run(names)
    names.each do |name|
      case name
      when "lazy" then puts "lazy #{Lazy::VALUE} #{autoload?(:Lazy).inspect} #{Lazy.name}"
      when "outer" then puts "outer #{Outer::Inner::VALUE} #{Outer::Inner.name}"
      when /_relative$/ then require_relative("lib/#{name.delete_suffix("_relative")}")
      when /_plain$/ then Kernel.require(name.delete_suffix("_plain"))
      else require(name)
      end
      puts "#{name} #{$LOADED_FEATURES.grep(/#{name[/[a-z]+/]}\.rb$/).size} #{App.loads if App.respond_to?(:loads)}"
    end
  end
end
App.run(ARGV)
"""
COUNTS = "class App\n  @loads = @loads.to_i + 1\n  def self.loads = @loads\nend\n"


class Program(training.Program):
    """A program in a folder, with features in lib beside it."""

    def __init__(self, folder, source=PROGRAM):
        super().__init__(folder, support.RUBY, "app.rb", source)
        (folder / "lib").mkdir()

    def feature(self, name, source):
        path = self.folder / "lib" / f"{name}.rb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
        return path

    def starts_alike(self, *arguments, **variables):
        """Starts image and command, here and in another folder. Returns what both print."""
        other = self.folder / "other"
        other.mkdir(exist_ok=True)
        for folder, script in ((self.folder, "app.rb"), (other, "../app.rb")):
            thawed, ordinary = self.start(arguments, variables, folder, script)
            assert thawed.err == ordinary.err, (thawed, ordinary)
        return thawed.out

    def learnt(self, folder="lib"):
        """Names of the features in a folder beside the program that were learnt."""
        shown = support.run([support.SNAPBOOT, "inspect", "--json", self.image], log=False)
        names = [path for path in json.loads(shown.out)["learnt"] if path.startswith(f"{self.folder}/{folder}/")]
        return [name.removeprefix(f"{self.folder}/{folder}/").removesuffix(".rb") for name in names]


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


def test_what_is_required_in_a_method_is_in_the_image(program):
    program.feature("late", COUNTS + "require 'earlier'\nrequire_relative 'beside'\n")
    program.feature("earlier", "require 'set'\nEARLIER = Set.new([1])\n")
    program.feature("beside", "BESIDE = __FILE__\n")
    said = program.freeze("late")
    assert "must be left" not in said.out
    assert "holds Ruby and RubyGems only" not in said.out
    assert "features from training runs" in said.out
    assert program.learnt() == ["late", "earlier", "beside"]
    # Whichever way the program asks for it, it is loaded.
    for names in (["late", "earlier"], ["late_relative", "beside"], ["late_plain", "late"]):
        assert "1 1\n" in program.starts_alike(*names)
    (program.folder / "lib/earlier.rb").write_text("puts 'changed'\n")
    changed = support.run([program.image, "earlier"], cwd=program.folder)
    assert changed.fell_back
    assert changed.out.startswith("changed\n")


def test_constants_that_are_loaded_when_they_are_named(program):
    program.feature("lazy", "class App\n  module Lazy\n    VALUE = 1\n  end\nend\n")
    program.feature("outer", "class App\n  module Outer\n    autoload :Inner, 'outer/inner'\n  end\nend\n")
    program.feature("outer/inner", "class App\n  module Outer\n    module Inner\n      VALUE = 2\n    end\n  end\nend\n")
    said = program.freeze("lazy outer")
    assert "must be left" not in said.out
    assert program.learnt() == ["lazy", "outer", "outer/inner"]
    assert "lazy 1 nil App::Lazy\n" in program.starts_alike("outer", "lazy")
    assert "started from the image" not in said.err


def test_runs_add_up(program):
    program.feature("one", "")
    program.feature("two", "")
    program.freeze("one", "two")
    assert program.learnt() == ["one", "two"]
    assert program.starts_alike("two", "one") == "two 1 \none 1 \n"


LEFT = {
    "VALUE = ARGV.first": "reads ARGV",
    "VALUE = Dir.pwd.size": "reads the current directory",
    "VALUE = $stdout.tty?": "reads what its terminal is",
    "VALUE = ENV.to_h.size": "reads the whole environment",
    "VALUE = ENV['COLUMNS']": "reads the variable COLUMNS",
    "ENV['NEW'] = '1'": "sets variables of the environment",
    "ENV.update('NEW' => '1')": "sets variables of the environment",
    "$LOAD_PATH << '/nowhere'": "changes $LOAD_PATH",
    "$VERBOSE = true": "changes $VERBOSE or $DEBUG",
    "Encoding.default_internal = 'UTF-8'": "changes the default encodings",
    "trap('USR1') {}": "has a handler of a signal",
    "Signal.trap('USR1') {}": "has a handler of a signal",
    "at_exit { puts 'the end' }": "has an exit handler (at_exit)",
    "END { puts 'the end' }": "has an exit handler (END)",
    "File.umask(0o77)": "reads the umask",
    "puts 'loaded'": "prints",
    "warn 'soon gone'": "prints",
    "$stdout = $stderr": "changes a standard stream",
    "VALUE = $stdin.stat.size.negative?": "reads what standard input is",
    "$stdin.reopen(__FILE__)": "changes a standard stream",
    "$stdin.close": "changes a standard stream",
    "Thread.new { sleep }": "changes the running threads",
    "OPEN = File.open(__FILE__)": "changes the open files",
    "File.write('made', 'x')": "writes made",
    "require 'tempfile'\nFILE = Tempfile.new": "makes a temporary file or directory",
    "FOLDER = `pwd`.size": "starts another process",
    "class String; def shout = upcase; end": "changes String",
    "module Shout; end\nString.include(Shout)": "changes String",
    "def Integer.shout = 1": "changes Integer",
    "BEGUN = Time.now": "keeps the time when it is loaded",
    "raise 'not now' if $0 == 'x' || !defined?(App)": "fails (RuntimeError: not now)",
}


@pytest.mark.parametrize("source", LEFT, ids=LEFT.values())
def test_what_belongs_to_a_start_is_left_to_it_and_named(program, source):
    left = program.feature("left", source + "\n")
    program.feature("requires", "require 'left'\n")
    program.feature("careless", "begin\n  require 'left'\nrescue StandardError, LoadError\n  nil\nend\n")
    program.feature("harmless", "")
    variables = {"COLUMNS": "99"}
    said = program.freeze("requires careless harmless", "harmless", **variables).out
    assert f"  {left} {LEFT[source]}" in said
    assert "must be left to each start:" in said
    assert program.learnt() == ["harmless"]
    program.starts_alike("harmless", "requires", "careless", **variables)
    # In a start that never loads it, nothing of it is to be seen.
    assert program.starts_alike("harmless", COLUMNS="98") == "harmless 1 \n"


# Ways in which a feature reads a file of the directory in which the program is started, if it is there.
READS_HERE = {
    "by open": "File.open('settings', &:read)",
    "by Kernel's open": "open('settings').then { |file| file.read.tap { file.close } }",
    "at once": "File.read('settings')",
    "in lines": "IO.readlines('settings').first",
    "line by line": "File.foreach('settings').first",
    "by pathname": "Pathname('settings').read",
    "by YAML": "YAML.load_file('settings')",
}


@pytest.mark.parametrize("read", READS_HERE.values(), ids=READS_HERE)
def test_a_tool_that_reads_where_it_is_started(tmp_path, read):
    (tmp_path / "tool").mkdir()
    program = Program(tmp_path / "tool")
    source = f"require 'pathname'\nrequire 'yaml'\nclass App\n  @read = {read} if File.exist?('settings')\n  def self.loads = @read\nend\n"
    left = program.feature("left", source)
    program.feature("harmless", "")
    training.a_tool_that_reads_where_it_is_started(program, tmp_path / "starts", left, "left")


def test_a_feature_of_every_run_may_patch_what_is_there(program):
    program.feature("patches", "class String\n  def shout = upcase\nend\n")
    program.feature("uses", "require 'patches'\nVALUE = 'a'.shout\n")
    assert "must be left" not in program.freeze("uses", "patches").out
    assert program.learnt() == ["uses", "patches"]
    assert program.starts_alike("uses") == "uses 1 \n"


def test_what_a_library_loads_is_not_loaded_without_it(program):
    # By itself the part would make another class of the same name.
    program.feature("whole", "puts 1\nclass Whole < Array\nend\nrequire 'whole/part'\n")
    program.feature("whole/part", "class Whole\n  VALUE = 2\nend\n")
    program.freeze("whole")
    assert program.learnt() == []
    assert program.starts_alike("whole").startswith("1\n")


def test_what_the_program_sets_before_it_loads_something(tmp_path):
    program = Program(tmp_path, "ENV['MODE'] = 'fast'\nrequire_relative 'lib/late'\nputs MODE\n")
    late = program.feature("late", "MODE = ENV['MODE']\n")
    assert f"{late} reads the variable MODE" in program.freeze("").out
    assert program.starts_alike() == "fast\n"


# Sets one before it loads what does.
GLOBALS = """$chosen = nil
$VERBOSE = true
def load_late
  require_relative 'lib/late'
end
load_late
p $chosen, $VERBOSE
"""
USES_GLOBALS = {
    "is set": "$chosen = 1\n",
    "is set where it has no value": "$chosen ||= 2\n",
    "is read": "CHOSEN = $chosen\n$stdout.sync if CHOSEN\n",
    "is set by a method": "def choose = $chosen = 3\nchoose\n",
    "is set by a method of another": "require_relative 'chooser'\nChooser.choose\n",
    "is set by code in a text": "eval '$chosen = 4'\n",
    "has another name": "$other = 5\nalias $chosen $other\n",
    "of Ruby is set": "$VERBOSE = nil\n",
}


@pytest.mark.parametrize("source", USES_GLOBALS.values(), ids=USES_GLOBALS)
def test_a_feature_uses_a_global_variable_that_the_script_sets(tmp_path, source):
    program = Program(tmp_path, GLOBALS)
    late = program.feature("late", source)
    program.feature("chooser", "module Chooser\n  def self.choose = $chosen = 6\nend\n")
    variable = "changes $VERBOSE or $DEBUG" if "VERBOSE" in source else "uses the global variable $chosen"
    assert f"{late} {variable}" in program.freeze("").out
    assert "late" not in program.learnt()
    program.starts_alike()


def test_a_global_variable_that_only_a_file_of_the_program_names(tmp_path):
    program = Program(tmp_path, "load \"#{__dir__}/settings\"\nrequire_relative 'lib/late'\nputs late\n")
    (tmp_path / "settings").write_text("$level = 1\n")
    late = program.feature("late", "$level = 2\ndef late = $level\n")
    assert f"{late} uses the global variable $level" in program.freeze("").out
    assert program.starts_alike() == "2\n"


def test_the_last_of_several_features_sets_a_global_variable(program):
    for name in ("one", "two"):
        program.feature(name, f"$last = '{name}'\n")
    program.feature("tells", "puts $last\n")
    program.freeze("one", "two")
    assert program.learnt() == []
    assert program.starts_alike("one", "tells").startswith("one 1 \none\n")
    assert program.starts_alike("two", "one", "tells").startswith("two 1 \none 1 \none\n")


def test_a_global_variable_of_one_library_is_in_the_image(program):
    program.feature("whole", "$whole = 1\nrequire 'whole/part'\n")
    program.feature("whole/part", "require 'English'\nPART = $whole\ndef part = [$whole, $CHILD_STATUS]\n")
    assert "must be left" not in program.freeze("whole").out
    assert program.learnt() == ["whole", "whole/part"]
    program.starts_alike("whole")


def test_a_feature_that_ends_the_process_when_it_is_loaded(program):
    ends = program.feature("ends", "exit!(3) unless defined?(App)\n")
    program.feature("harmless", "")
    assert f"{ends} ends the process when it is loaded" in program.freeze("ends harmless").out
    assert program.learnt() == ["harmless"]
    assert program.starts_alike("ends", "harmless") == "ends 1 \nharmless 1 \n"


def test_an_image_that_prints_something_else_is_made_without_what_was_learnt(tmp_path):
    program = Program(tmp_path, "p require_relative('lib/late')\n")
    program.feature("late", "")
    said = program.freeze("")
    assert 'started from the image, "" printed "false" where an ordinary start prints "true"' in said.err
    assert "learnt" not in said.out
    assert program.starts_alike() == "true\n"


def test_a_run_sees_nothing_of_the_training(tmp_path):
    program = Program(tmp_path, "p $LOADED_FEATURES.grep(/snapboot/), ENV.keys.grep(/SNAPBOOT_FREEZE/), $?, Object.constants.grep(/Run/)\n")
    said = program.freeze("")
    assert "started from the image" not in said.err
    program.starts_alike()


def test_no_status_of_a_child_is_left(tmp_path):
    program = Program(tmp_path, "require_relative 'lib/late'\np $?\n")
    program.feature("late", "")
    program.freeze("")
    assert program.learnt() == ["late"]
    assert program.starts_alike() == "nil\n"


# ---- Gems ----

def test_a_script_of_rubygems_is_trained_and_has_the_same_gems(tmp_path):
    gems = Gems(tmp_path / "gems")
    image = tmp_path / "tool.img"
    made = support.freeze(image, [gems.script], env=support.environment(**gems.variables))
    assert made.status == 0, made
    assert "must be left" not in made.out
    assert "from training runs" in made.out
    for arguments, falls_back in ((["a"], False), (["_1.0_", "a"], True), (["_2.0_", "a"], True)):
        thawed, ordinary = gems.start(image, *arguments), gems.start(gems.script, *arguments)
        assert (thawed.status, thawed.out) == (ordinary.status, ordinary.out)
        assert thawed.fell_back == falls_back, thawed
    gems.add_tool("3.0")
    newer = gems.start(image)
    assert newer.fell_back
    assert newer.out.startswith('"3.0"\n')


def test_a_script_that_nobody_has_generated_is_never_run_unasked(program):
    (program.folder / "app.rb").write_text("# See: This file was generated by RubyGems.\nFile.write('ran', 'x')\n")
    program.freeze()
    assert not (program.folder / "ran").exists()


WRITER = r"""def faults
  File.read("/proc/self/stat").rpartition(")").last.split[7].to_i
end

def memory
  File.read("/proc/self/smaps_rollup")[/^Anonymous: +(\d+)/, 1].to_i
end

require_relative "lib/data"
faults
size = memory
before = faults
THINGS.each { |thing| thing.setbyte(0, 65) } unless ARGV[0] == "idle"
warn "#{faults - before} #{size}"
"""


def test_what_a_run_writes_a_start_like_it_has_at_once(tmp_path):
    program = Program(tmp_path, WRITER)
    program.feature("data", "THINGS = Array.new(40_000) { |n| +n.to_s }\n")
    training.pages_come_with_the_start(program)


# Requires a gem in the midst of its work, of a version if one is given.
LATER = """require 'optparse'
require_relative 'lib/own'
if ARGV[0] == 'later'
  gem 'later', ARGV[1] if ARGV[1]
  require 'later'
  p LATER, Gem.loaded_specs['later'].version.to_s, NEEDED
end
"""


@pytest.fixture
def later(tmp_path):
    """Such a program, and gems of which it requires one that needs another."""
    gems = Gems(tmp_path / "gems")
    gems.add("needed", "1.0", "NEEDED = 1\n")
    gems.add("later", "1.0", "require 'needed'\nLATER = 1\n", "s.add_runtime_dependency('needed')")
    program = Program(tmp_path, LATER)
    program.feature("own", "")
    return program, gems


def test_a_gem_of_one_version_may_be_active_from_the_beginning(later):
    program, gems = later
    program.freeze("later", "", **gems.variables)
    assert program.learnt("gems") == ["gems/later-1.0/lib/later", "gems/needed-1.0/lib/needed"]
    assert program.starts_alike("later", **gems.variables) == '1\n"1.0"\n1\n'
    assert program.starts_alike(**gems.variables) == ""
    gems.add("later", "2.0", "require 'needed'\nLATER = 2\n", "s.add_runtime_dependency('needed')")
    newer = support.run([program.image, "later"], env=support.environment(**gems.variables), cwd=program.folder)
    assert newer.fell_back
    assert newer.out == '2\n"2.0"\n1\n'


@pytest.mark.parametrize("first", ["own", "later"])
def test_a_gem_of_several_versions_is_left_to_each_start(later, first):
    program, gems = later
    if first == "later":
        program.script.write_text(LATER.replace("require_relative 'lib/own'\n", ""))
    gems.add("later", "2.0", "require 'needed'\nLATER = 2\n", "s.add_runtime_dependency('needed')")
    said = program.freeze("later", "later", **gems.variables)
    assert f"is found in {gems.folder}/gems/later-2.0/lib, which the program adds to $LOAD_PATH" in said.out
    assert '"2.0"' in program.starts_alike("later", **gems.variables)
    assert '"1.0"' in program.starts_alike("later", "1.0", **gems.variables)


def test_a_gem_that_needs_one_of_several_versions_is_left_to_each_start(later):
    program, gems = later
    gems.add("needed", "2.0", "NEEDED = 2\n")
    program.freeze("later", **gems.variables)
    assert program.learnt("gems") == []
    assert program.starts_alike("later", **gems.variables) == '1\n"1.0"\n2\n'


def test_a_gem_in_which_something_has_the_name_of_another_feature_is_left_to_each_start(later):
    program, gems = later
    shadow = gems.folder / "gems/later-1.0/lib/optparse"
    shadow.mkdir()
    (shadow / "uri.rb").write_text("raise 'not the one of Ruby'\n")
    program.freeze("later", **gems.variables)
    assert program.learnt("gems") == ["gems/needed-1.0/lib/needed"]
    assert program.starts_alike("later", **gems.variables) == '1\n"1.0"\n1\n'


def test_gems_with_extensions_may_be_active_from_the_beginning(later):
    program, gems = later
    extension = "s.extensions = ['ext/extconf.rb']"
    gems.add("needed", "1.0", "NEEDED = 1\n", extension)
    gems.add("later", "1.0", "require 'needed'\nLATER = 1\n", f"s.add_runtime_dependency('needed')\n  {extension}")
    gems.complete("later", "needed")
    program.freeze("later", **gems.variables)
    assert program.learnt("gems") == ["gems/later-1.0/lib/later", "gems/needed-1.0/lib/needed"]
    assert program.starts_alike("later", **gems.variables) == '1\n"1.0"\n1\n'


def test_the_gem_bundler_is_left_to_each_start(tmp_path):
    """Of several versions RubyGems takes the one that ARGV or the lock file of the current directory names."""
    program = Program(tmp_path, "if ARGV[0] == 'later'\n  gem 'bundler'\n  require 'bundler'\n  p Bundler::VERSION\nend\n")
    program.freeze("later")
    assert program.starts_alike("later") != ""
    assert program.starts_alike() == ""


def test_a_feature_that_is_searched_where_a_run_says_is_left_to_each_start(tmp_path):
    program = Program(tmp_path, "$LOAD_PATH.unshift(\"#{__dir__}/#{ARGV[0]}\")\nrequire 'late'\nputs LATE\n")
    for folder in ("one", "two"):
        program.feature(f"../{folder}/late", f"LATE = '{folder}'\n")
    said = program.freeze("one", "two").out
    assert "one, which the program adds to $LOAD_PATH" in said
    for folder in ("one", "two"):
        assert program.starts_alike(folder) == f"{folder}\n"
