"""Libraries that choose by their terminal, when they are loaded, whether they use colours: a thaw chooses again, unless the
program has chosen for itself."""

import re
import shutil

import pytest
from common import support
from common.terminal import shown_on

from .test_session_ruby import RELINE, RELINE_FACE, RELINE_IO
from .test_training_ruby import Program

pytestmark = pytest.mark.sample(6, whole=True)

PROGRAM = r"""$LOAD_PATH.unshift("#{__dir__}/lib")
ARGV.each { |name| require name }
p Rainbow.enabled, Rainbow("x").red if defined?(Rainbow)
p Cucumber::Term::ANSIColor.coloring? if defined?(Cucumber)
Object.constants.grep(/^Mine/).sort.each { |name| p Object.const_get(name).shown }
"""
# A library of the form of the gem rainbow.
CHOICE = """  self.enabled = false unless STDOUT.tty? && STDERR.tty?
  self.enabled = false if ENV['TERM'] == 'dumb'
  self.enabled = true if ENV['CLICOLOR_FORCE'] == '1'
"""
RAINBOW = f"""require_relative 'rainbow/global'
module Rainbow
  def self.new = Wrapper.new(global.enabled)

{CHOICE}end
"""
GLOBAL = """require_relative 'wrapper'
module Rainbow
  def self.global = @global ||= Wrapper.new
  def self.enabled = global.enabled
  def self.enabled=(value)
    global.enabled = value
  end
end

def Rainbow(string) = Rainbow.global.wrap(string)
"""
WRAPPER = """module Rainbow
  class Coloured < String
    def red = Coloured.new("<red>#{self}</red>")
    def bright = Coloured.new("<bright>#{self}</bright>")
  end
  class Plain < String
    def red = self
    def bright = self
  end
  class Wrapper
    attr_accessor :enabled
    def initialize(enabled = true) = @enabled = enabled
    def wrap(string) = (enabled ? Coloured : Plain).new(string)
  end
end
"""
TERM = """module Cucumber
  module Term
    module ANSIColor
      def self.coloring? = @coloring
      def self.coloring=(value)
        @coloring = value
      end
      self.coloring = true
    end
  end
end
"""
CUCUMBER = """require 'cucumber/term/ansicolor'
Cucumber::Term::ANSIColor.coloring = false if !STDOUT.tty? && !ENV.has_key?("AUTOTEST")
"""
DURATION = re.compile(rb"\d+m[\d.]+s")
STARTS = (
    {},
    {"TERM": "xterm"},
    {"TERM": "dumb"},
    {"TERM": "xterm", "CLICOLOR_FORCE": "1"},
    {"TERM": "xterm", "AUTOTEST": ""},
)


def starts_alike(program, *arguments):
    """Starts image and command in pipes and at terminals. Returns the different things that they show."""
    shown = set()
    for variables in STARTS:
        env = support.environment(**variables)
        if "TERM" not in variables:
            env.pop("TERM", None)
        plain = [support.run(argv, env=env, cwd=program.folder, log=False) for argv in both(program, arguments, env)]
        assert (plain[0].out, plain[0].err) == (plain[1].out, plain[1].err), (variables, plain)
        at_terminal = [shown_on(argv, env, cwd=program.folder) for argv in both(program, arguments, env)]
        assert at_terminal[0] == at_terminal[1], (variables, at_terminal)
        shown |= {plain[0].out, at_terminal[0][0].decode().replace("\r\n", "\n")}
    return shown


def both(program, arguments, env):
    """The words of the command, and those of the image, which then may not fall back."""
    yield [support.RUBY, "app.rb", *arguments]
    env["SNAPBOOT_ON_STALE"] = "error"
    yield [program.image, *arguments]


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path, PROGRAM)


@pytest.fixture
def rainbow(program):
    (program.folder / "lib/rainbow").mkdir()
    program.feature("rainbow", RAINBOW)
    program.feature("rainbow/global", GLOBAL)
    program.feature("rainbow/wrapper", WRAPPER)
    return program


def test_a_thaw_chooses_again(rainbow):
    said = rainbow.freeze("rainbow")
    assert "must be left" not in said.out
    assert rainbow.learnt() == ["rainbow", "rainbow/global", "rainbow/wrapper"]
    assert starts_alike(rainbow, "rainbow") == {'false\n"x"\n', 'true\n"<red>x</red>"\n'}
    assert support.freeze(rainbow.image, [support.RUBY, "app.rb"], "--preload", "./lib/rainbow.rb", cwd=rainbow.folder).status == 0
    assert len(starts_alike(rainbow, "rainbow")) == 2


OWN = (
    "Rainbow.enabled = true",
    "Rainbow.enabled = false",
    "Rainbow.global.enabled = false",
    "Rainbow.global.instance_variable_set(:@enabled, false)",
)


@pytest.mark.parametrize("setting", OWN)
def test_what_the_program_has_chosen_stays(rainbow, setting):
    rainbow.feature("own", f"require 'rainbow'\n{setting}\n")
    rainbow.freeze("own")
    assert "own" in rainbow.learnt()
    assert len(starts_alike(rainbow, "own")) == 1
    # A start that does not load it chooses as ever.
    said = rainbow.freeze("own", "rainbow")
    assert "own.rb chooses what a library chooses by its terminal" in said.out
    assert rainbow.learnt() == ["rainbow", "rainbow/global", "rainbow/wrapper"]
    assert len(starts_alike(rainbow, "own")) == 1
    assert len(starts_alike(rainbow, "rainbow")) == 2


def test_what_the_program_has_chosen_before(rainbow):
    rainbow.feature("own", "require 'rainbow/global'\nRainbow.enabled = false\nrequire 'rainbow'\n")
    rainbow.freeze("own")
    assert "own" in rainbow.learnt()
    # Nobody but the variable chooses colours then.
    assert len(starts_alike(rainbow, "own")) == 2


TAKEN = {
    "value": "VALUE = Rainbow.enabled\n  def self.shown = VALUE",
    "string": 'VALUE = [Rainbow("x").red]\n  def self.shown = VALUE',
    "other": "VALUE = Rainbow.new\n  def self.shown = VALUE.wrap('x').red",
    "copy": "VALUE = Rainbow.global.dup\n  def self.shown = VALUE.wrap('x').red",
    "variable": "VALUE = Rainbow.global.instance_variable_get(:@enabled)\n  def self.shown = VALUE",
    "in an expression": 'VALUE = eval("Rainbow.enabled")\n  def self.shown = VALUE',
    "used in the next line": 'MARK = Rainbow("x").red\n  VALUE = "(#{MARK})"\n  def self.shown = VALUE',
    "used in a method": 'MARK = Rainbow("x").red\n  def self.shown = @shown ||= "(#{MARK})"\n  shown',
    "private": 'MARK = Rainbow("x").red\n  private_constant :MARK\n  def self.shown = MARK',
}


def test_what_takes_the_choice_is_left_to_the_start(rainbow):
    names = [f"mine{number}" for number in range(len(TAKEN))]
    for name, source in zip(names, TAKEN.values(), strict=True):
        rainbow.feature(name, f"require 'rainbow'\nmodule {name.capitalize()}\n  {source}\nend\n")
    said = rainbow.freeze(" ".join([*names, "rainbow"])).out
    assert f"{len(names)} more must be left" in said
    assert rainbow.learnt() == ["rainbow", "rainbow/global", "rainbow/wrapper"]
    assert len(starts_alike(rainbow, *names)) == 2


def test_what_takes_the_choice_binds_the_image(rainbow):
    """Where somebody asks for it nevertheless, the image is good where the answers are the same."""
    for source in (TAKEN["value"], "MARK = Rainbow('x').red"):
        mine = rainbow.feature("mine", f"require 'rainbow'\nmodule Mine\n  {source}\nend\n")
        made = support.freeze(rainbow.image, [support.RUBY, "app.rb"], "--preload", str(mine), cwd=rainbow.folder)
        assert made.status == 0, made
        shown = shown_on([rainbow.image], support.environment(TERM="xterm", SNAPBOOT_LOG="1"), cwd=rainbow.folder)[0]
        assert b"starting the ordinary way" in shown


def test_constants_of_the_choice_are_made_again(rainbow):
    rainbow.feature(
        "mine",
        "require 'rainbow'\nmodule Mine\n  MARK = Rainbow('•').red.bright\n  DOT = Rainbow(\".\").red\n"
        "  def self.shown = [MARK, DOT, MARK.class, const_source_location(:DOT)[1]]\nend\n",
    )
    rainbow.freeze("mine")
    assert "mine" in rainbow.learnt()
    shown = starts_alike(rainbow, "mine")
    assert len(shown) == 2 and any("<bright><red>•</red></bright>" in text for text in shown), shown
    # What uses one when it is loaded is left out, and nothing else.
    user = rainbow.feature("user", "require 'mine'\nUSER = Mine::MARK.size\n")
    assert f"{user} reads what its terminal is ({user}:2)" in rainbow.freeze("user", "mine").out
    assert "mine" in rainbow.learnt() and "user" not in rainbow.learnt()
    assert len(starts_alike(rainbow, "user")) == 2
    # The program's own choice is not theirs.
    rainbow.feature("own", "require 'mine'\nRainbow.enabled = true\n")
    rainbow.freeze("own")
    assert "own" in rainbow.learnt()
    assert len(starts_alike(rainbow, "own")) == 2


def test_a_choice_that_is_not_known_is_left_to_the_start(rainbow):
    path = rainbow.feature("rainbow", RAINBOW.replace("'dumb'", "'xterm'"))
    assert f"{path} reads" in rainbow.freeze("rainbow").out
    assert "rainbow" not in rainbow.learnt()
    assert len(starts_alike(rainbow, "rainbow")) == 2


def test_what_any_recipe_renews_is_learnt(program):
    """Only when all of the library is loaded, its recipe knows."""
    (program.folder / "lib/reline").mkdir()
    sources = {"reline": RELINE, "reline/io": RELINE_IO, "reline/face": RELINE_FACE}
    for name, source in sources.items():
        program.feature(name, source)
    program.feature("mine", "require 'reline'\nmodule Mine\n  def self.shown = [Reline::IOGate.class, Reline::Face.shown]\nend\n")
    program.freeze("mine")
    assert program.learnt() == ["mine", "reline", "reline/io", "reline/face"]
    assert starts_alike(program, "mine") == {f"[Reline::{gate}, false]\n" for gate in ("ANSI", "Dumb")}
    # Another library of this name.
    path = program.feature("reline", "module Mine\n  TERM = ENV['TERM']\n  def self.shown = TERM\nend\n")
    said = program.freeze("mine reline")
    assert f"{path} reads the variable TERM" in said.out
    assert program.learnt() == []


def test_others_reads_of_the_same_count(rainbow):
    rainbow.feature("reads", "require 'rainbow'\nTHEIRS = STDOUT.tty?\n")
    native = rainbow.feature(
        "native",
        "require 'rainbow'\nrequire 'fiddle'\n"
        "Fiddle::Function.new(Fiddle::Handle::DEFAULT['getenv'], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOIDP).call('TERM')\n",
    )
    said = rainbow.freeze("rainbow native reads")
    assert "reads.rb reads what its terminal is" in said.out
    assert f"{native} reads the variable TERM" in said.out
    assert rainbow.learnt() == ["rainbow", "rainbow/global", "rainbow/wrapper"]


def test_colours_of_cucumber(program):
    for folder in ("formatter", "term"):
        (program.folder / "lib/cucumber" / folder).mkdir(parents=True)
    program.feature("cucumber/term/ansicolor", TERM)
    program.feature("cucumber/formatter/ansicolor", CUCUMBER)
    program.feature("own", "require 'cucumber/formatter/ansicolor'\nCucumber::Term::ANSIColor.coloring = false\n")
    program.freeze("cucumber/formatter/ansicolor")
    assert program.learnt() == ["cucumber/formatter/ansicolor", "cucumber/term/ansicolor"]
    assert starts_alike(program, "cucumber/formatter/ansicolor") == {"true\n", "false\n"}
    program.freeze("own")
    assert "own" in program.learnt()
    assert starts_alike(program, "own") == {"false\n"}


REAL = {
    "rubocop": ([["--version"], ["--nonsense"], ["--cache", "false", "-f", "pacman", "bad.rb"]], "bad.rb", "def  bad( a )\nend\n"),
    "cucumber": ([["--version"], ["--nonsense"], ["--format", "pretty"]], "features/a.feature", "Feature: a\n  Scenario: b\n    Given c\n"),
}


@pytest.mark.parametrize("name", REAL)
def test_installed_programs(tmp_path, name):
    command = shutil.which(name)
    if command is None:
        pytest.skip(f"needs {name}")
    runs, file, text = REAL[name]
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    env = support.environment(HOME=str(tmp_path), SNAPBOOT_STORE="off")
    image = tmp_path / "x.img"
    made = support.freeze(image, [command], env=env, cwd=tmp_path)
    assert made.status == 0 and "reads what its terminal is" not in made.out, made
    at_terminals = set()
    for arguments in runs:
        for variables in ({"TERM": "xterm"}, {"TERM": "dumb"}, {"TERM": "dumb", "CLICOLOR_FORCE": "1"}):
            more = env | variables
            at_terminal = [shown_on([word, *arguments], more, cwd=tmp_path) for word in (command, image)]
            # In a pipe only the last run, which prints colours at a terminal.
            words = (command, image) if arguments == runs[-1] else ()
            plain = [support.run([word, *arguments], env=more, cwd=tmp_path) for word in words]
            assert not any(run.fell_back for run in plain), plain
            for ordinary, thawed in filter(None, (at_terminal, [(run.out.encode(), run.status) for run in plain])):
                assert (DURATION.sub(b"", ordinary[0]), ordinary[1]) == (DURATION.sub(b"", thawed[0]), thawed[1])
            at_terminals.add(b"\x1b[" in at_terminal[0][0])
    assert at_terminals == {True, False}
