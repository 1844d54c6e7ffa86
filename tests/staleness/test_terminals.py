"""A program that asks for its terminal while it boots: an image serves starts at one and without, in one variant where the program comes
to the same, or else in one for each.

Each is started with the image and in the ordinary way: the same must come out, thawed or not.
"""

import json

import pytest
from common import support
from common.terminal import shown_on

from .test_other_start import LANGUAGES, Program

pytestmark = pytest.mark.sample(24)

# What is done with the answer, in each language, and how many variants serve starts at a terminal and without: 0 where the first kind is
# ordinary. V stands for it.
WAYS = {
    "nothing": (("None", "nil"), 1),
    "the same in both cases": (("[1] if V else [1]", "V ? [1] : [1]"), 1),
    "kept": (("V", "V"), 2),
    "a branch": (("{'colour': 1} if V else {}", "V ? { colour: 1 } : {}"), 2),
    "said": (("print('at a terminal') if V else None", "(puts 'at a terminal' if V)"), 0),
    "said by another program": (
        ("__import__('subprocess').call(['echo', 'at a terminal']) if V else 0", "(V ? system('echo at a terminal') && 0 : 0)"),
        0,
    ),
    "with the locale": (
        ("V and os.environ.get('LC_ALL', '') != 'C'", "V && ENV['LC_ALL'] != 'C'"),
        2,
    ),
    "without and the locale": (
        ("not V and os.environ.get('LC_ALL', '') == 'C'", "!V && ENV['LC_ALL'] == 'C'"),
        1,
    ),
    "one stream alone": (
        ("V and not sys.stdin.isatty()", "V && !$stdin.tty?"),
        2,
    ),
}
ASKED = {
    "python": "V = sys.stdout.isatty()\nVALUE = {way}\ndel V",
    "ruby": "V = $stdout.tty?\nVALUE = {way}\nObject.send(:remove_const, :V)",
}
BASE = {"LC_ALL": "C.UTF-8", "TERM": "vt100"}


class AtTerminal(Program):
    """A program that is also started at a terminal."""

    @property
    def variants(self):
        """How many boots its image holds for the encoding of the freeze."""
        shown = json.loads(support.run([support.SNAPBOOT, "inspect", "--json", self.image]).out)
        return shown["variants"] - shown["in_other_locale"]

    def check_at_terminal(self, is_served, columns=80, **changes):
        """A start at one of so many columns shows what an ordinary one shows. is_served: whether the image serves it, or None."""
        env = {name: value for name, value in {**self.env, **changes}.items() if value is not None}
        argv = [[program, self.option, self.show] for program in (self.image, self.program)]
        image, plain = (shown_on(words, env, cwd=self.start, size=(24, columns)) for words in argv)
        assert image == plain
        if is_served is not None:
            shown, status = shown_on(argv[0], {**env, "SNAPBOOT_ON_STALE": "error"}, cwd=self.start, size=(24, columns))
            assert (status == 0 and shown == plain[0]) == is_served, (shown, status)


@pytest.mark.parametrize("language", ["python", pytest.param("ruby", marks=support.needs_ruby)])
@pytest.mark.parametrize("way", WAYS)
def test_terminal_or_not(tmp_path, language, way):
    ways, variants = WAYS[way]
    source = ASKED[language].format(way=ways[list(LANGUAGES).index(language)])
    program = AtTerminal(tmp_path, source, BASE, language)
    program.check(True)
    program.check_at_terminal(variants > 0)
    assert program.variants == max(variants, 1)
    for locale in ("C", "en_US.UTF-8"):
        program.check(None, LC_ALL=locale)
        program.check_at_terminal(None, LC_ALL=locale)


SIZES = {
    "kept": ("{size}", False),
    "at least": ("max({size}, 100)", False),
    "at most": ("min({size}, 40)", False),
    "not kept": ("{size} and 1", True),
}


@pytest.mark.parametrize("way", SIZES)
def test_the_size_of_a_terminal_counts_where_it_is_kept(tmp_path, way):
    source, is_one = SIZES[way]
    program = AtTerminal(tmp_path, "VALUE = " + source.format(size="shutil.get_terminal_size().columns"), BASE)
    program.check(True)
    for columns in (80, 36, 120):
        program.check_at_terminal(is_one or columns == 80, columns=columns)


def test_what_c_code_has_asked_counts(tmp_path):
    program = AtTerminal(tmp_path, "import ctypes\nctypes.CDLL(None).isatty(1)\nVALUE = 1", BASE)
    program.check(True)
    program.check_at_terminal(True)
    assert program.variants == 2


# What another terminal has differently, in each language.
STATES = {
    "settings": (
        "import termios\ntry:\n    VALUE = termios.tcgetattr(0)\nexcept termios.error:\n    VALUE = None",
        "require 'io/console'\nVALUE = $stdin.tty? && $stdin.echo?",
    ),
    "name": ("VALUE = os.isatty(0) and os.ttyname(0)", None),
}


@pytest.mark.parametrize("language", ["python", pytest.param("ruby", marks=support.needs_ruby)])
@pytest.mark.parametrize("state", STATES)
def test_a_start_at_a_terminal_whose_state_is_kept_is_ordinary(tmp_path, state, language):
    source = STATES[state][list(LANGUAGES).index(language)]
    if source is None:
        return
    program = AtTerminal(tmp_path, source, BASE, language)
    program.check(True)
    program.check_at_terminal(False)
    assert program.variants == 1 and "a start at a terminal is an ordinary one: " in program.result.err
