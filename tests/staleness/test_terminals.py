"""A program that asks for its terminal while it boots: an image serves starts at one and without where the program comes to the same.

Each is started with the image and in the ordinary way: the same must come out, thawed or not.
"""

import pytest
from common import support
from common.terminal import shown_on

from .test_other_start import LANGUAGES, Program

pytestmark = pytest.mark.sample(4)

# What is done with the answer, in each language, and whether one image serves both kinds of starts. V stands for it.
WAYS = {
    "nothing": (("None", "nil"), True),
    "the same in both cases": (("[1] if V else [1]", "V ? [1] : [1]"), True),
    "kept": (("V", "V"), False),
    "a branch": (("{'colour': 1} if V else {}", "V ? { colour: 1 } : {}"), False),
    "said": (("print('at a terminal') if V else None", "(puts 'at a terminal' if V)"), False),
    "said by another program": (
        ("__import__('subprocess').call(['echo', 'at a terminal']) if V else 0", "(V ? system('echo at a terminal') && 0 : 0)"),
        False,
    ),
    "with the locale": (
        ("V and os.environ.get('LC_ALL', '') != 'C'", "V && ENV['LC_ALL'] != 'C'"),
        False,
    ),
    "without and the locale": (
        ("not V and os.environ.get('LC_ALL', '') == 'C'", "!V && ENV['LC_ALL'] == 'C'"),
        True,
    ),
}
ASKED = {
    "python": "V = sys.stdout.isatty()\nVALUE = {way}\ndel V",
    "ruby": "V = $stdout.tty?\nVALUE = {way}\nObject.send(:remove_const, :V)",
}
BASE = {"LC_ALL": "C.UTF-8", "TERM": "vt100"}


class AtTerminal(Program):
    """A program that is also started at a terminal."""

    def check_at_terminal(self, is_served, **changes):
        """A start at one shows what an ordinary one shows. is_served: whether the image serves it, or None."""
        env = {name: value for name, value in {**self.env, **changes}.items() if value is not None}
        argv = [[program, self.option, self.show] for program in (self.image, self.program)]
        image, plain = (shown_on(words, env, cwd=self.start) for words in argv)
        assert image == plain
        if is_served is not None:
            shown, status = shown_on(argv[0], {**env, "SNAPBOOT_ON_STALE": "error"}, cwd=self.start)
            assert (status == 0 and shown == plain[0]) == is_served, (shown, status)


@pytest.mark.parametrize("language", ["python", pytest.param("ruby", marks=support.needs_ruby)])
@pytest.mark.parametrize("way", WAYS)
def test_terminal_or_not(tmp_path, language, way):
    ways, is_one = WAYS[way]
    source = ASKED[language].format(way=ways[list(LANGUAGES).index(language)])
    program = AtTerminal(tmp_path, source, BASE, language)
    program.check(True)
    program.check_at_terminal(is_one)
    for locale in ("C", "en_US.UTF-8"):
        program.check(None, LC_ALL=locale)
        program.check_at_terminal(None, LC_ALL=locale)


def test_the_size_of_a_terminal_counts_where_it_is_kept(tmp_path):
    program = AtTerminal(tmp_path, "VALUE = shutil.get_terminal_size().columns", BASE)
    program.check(True)
    program.check_at_terminal(False)


def test_what_c_code_has_asked_counts(tmp_path):
    program = AtTerminal(tmp_path, "import ctypes\nctypes.CDLL(None).isatty(1)\nVALUE = 1", BASE)
    program.check(True)
    program.check_at_terminal(False)


def test_settings_of_a_terminal_count(tmp_path):
    source = "import termios\ntry:\n    termios.tcgetattr(1)\n    VALUE = True\nexcept termios.error:\n    VALUE = False"
    program = AtTerminal(tmp_path, source, BASE)
    program.check(True)
    program.check_at_terminal(False)
