"""What an interpreter takes from its environment at its start: a thaw renews it, unless the program has read it while it booted."""

import json
import sys

import pytest

from tests.common import support
from tests.common.support import needs_ruby

pytestmark = pytest.mark.sample(20)

LOCALE = {"LANG": "C"}
DONT_WRITE = {"PYTHONDONTWRITEBYTECODE": None}
ENCODING = {"PYTHONIOENCODING": "latin-1"}
UNBUFFERED = {"PYTHONUNBUFFERED": "1"}
ALL = (LOCALE, DONT_WRITE, ENCODING, UNBUFFERED)
# From CPython 3.15 on, every locale has UTF-8 mode, and so the same streams.
ALWAYS_UTF8 = sys.version_info >= (3, 15)
BY_LOCALE = [] if ALWAYS_UTF8 else [LOCALE]
PROGRAM = """\
import boot
import locale, os, sys
if __name__ == "__main__":
    print(boot.KEPT, sys.flags, sys.dont_write_bytecode, locale.getpreferredencoding(False), os.environ.get("LC_CTYPE"))
    print([(stream.encoding, stream.errors, stream.write_through) for stream in (sys.stdin, sys.stdout, sys.stderr)])
"""


def answers(image, program, env, changed):
    """Whether a start with these variables fell back. It must answer as the ordinary one."""
    env = {name: value for name, value in {**env, **changed}.items() if value is not None}
    ordinary = support.run([support.PYTHON, program], env=env, log=False)
    result = support.run([image], env=env)
    assert (result.status, result.out) == (ordinary.status, ordinary.out), (changed, ordinary, result)
    return result.fell_back


def freeze(tmp_path, boot):
    """Freezes a program that does this while it boots. Returns the image, the script and the environment."""
    (tmp_path / "boot.py").write_text(boot + "\n")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    return support.frozen(tmp_path / "app.img", [support.PYTHON, program], env=env), program, env


HARMLESS = {
    "nothing": "KEPT = 0",
    "libraries": "import _strptime, argparse, calendar, gettext, logging, pathlib, subprocess; KEPT = 0",
    "a file that is closed again": "KEPT = open('/dev/null').read() + __import__('pathlib').Path('/dev/null').read_text()",
    "bytecode switched off": "import sys; sys.dont_write_bytecode = True; KEPT = 0",
    "bytecode switched on": "import sys; sys.dont_write_bytecode = False; KEPT = 0",
    "bytecode switched off for a while": """
import sys
old = sys.dont_write_bytecode
sys.dont_write_bytecode = True
import decimal
sys.dont_write_bytecode = old
del old
KEPT = 0
""",
    "streams that are only kept": "import sys; KEPT = len([sys.stdin, sys.stdout, sys.stderr])",
}


@pytest.mark.parametrize("what", HARMLESS)
def test_what_reads_no_setting_binds_to_none(what, tmp_path):
    image, program, env = freeze(tmp_path, HARMLESS[what])
    together = {name: value for one in ALL for name, value in one.items()}
    for changed in (*ALL, {"LANG": None}, {"LC_ALL": "C"}, {"LC_ALL": "C.utf8"}, together):
        assert not answers(image, program, env, changed), changed


READS = {
    "UTF-8 mode": ("import sys; KEPT = sys.flags.utf8_mode", BY_LOCALE),
    "the flag for bytecode": ("import sys; KEPT = sys.flags.dont_write_bytecode", [DONT_WRITE]),
    "its name in sys": ("import sys; KEPT = sys.dont_write_bytecode", [DONT_WRITE]),
    "the same in a list": ("import sys; KEPT = [sys.dont_write_bytecode]", [DONT_WRITE]),
    "a choice by it": ("import sys; KEPT = 1 if sys.dont_write_bytecode else 2", [DONT_WRITE]),
    "the encoding of a stream": ("import sys; KEPT = sys.stdout.encoding", [ENCODING]),
    "the errors of a stream": ("import sys; KEPT = sys.stdin.errors", [*BY_LOCALE, ENCODING]),
    "how a stream is buffered": ("import sys; KEPT = sys.stdout.line_buffering, sys.stdout.write_through", [UNBUFFERED]),
    "a stream's buffer": ("import sys; held = sys.stdout.buffer; KEPT = 0", [UNBUFFERED]),
    "a stream that is set up": ("import sys; sys.stdout.reconfigure(errors='replace'); KEPT = 0", [LOCALE, ENCODING, UNBUFFERED]),
    # Python has C.UTF-8 in the place of C.
    "the locale": ("import locale; KEPT = locale.getlocale()", []),
    "its name": ("import locale; KEPT = locale.setlocale(locale.LC_CTYPE)", []),
    "a locale that is chosen": ("import locale; KEPT = locale.setlocale(locale.LC_ALL, '')", [LOCALE]),
    "the encoding of the C library": ("import locale; KEPT = locale.nl_langinfo(locale.CODESET)", []),
    "what Python has put in the place of C": ("import os; KEPT = os.environ.get('LC_CTYPE')", [LOCALE]),
    "a variable": ("import os; KEPT = os.environ.get('PYTHONUNBUFFERED')", [UNBUFFERED]),
    "all variables": ("import os; KEPT = sorted(name for name in os.environ if name[:4] != 'SNAP')", list(ALL)),
}


@pytest.mark.parametrize("what", READS)
def test_what_was_read_binds(what, tmp_path):
    boot, bound = READS[what]
    image, program, env = freeze(tmp_path, boot)
    # What is bound to the locale has a process for each encoding.
    assert in_other_locale(image) == (LOCALE in bound)
    assert not answers(image, program, env, {})
    for changed in ALL:
        is_served = changed not in bound or (changed is LOCALE and what != "all variables")
        assert answers(image, program, env, changed) is not is_served, changed


def in_other_locale(image):
    """How many processes of an image are for another encoding than the first."""
    return json.loads(support.run([support.SNAPBOOT, "inspect", "--json", image], log=False).out)["in_other_locale"]


def test_the_freeze_says_what_is_bound(tmp_path):
    image, _, _ = freeze(tmp_path, "import sys\nsys.stdout.reconfigure(errors='strict'); KEPT = 0")
    said = support.run([support.SNAPBOOT, "inspect", image], log=False).out
    assert "the locale of text (LC_ALL, LC_CTYPE, LANG), read by" in said and "boot.py:2" in said, said


@pytest.mark.parametrize("option", ["-B", "-u", "-E", "-I", "-Xutf8"])
def test_options_that_decide_bind(option, tmp_path):
    """What an option says and what the environment says cannot be told apart afterwards. For the locale C there is a process of its own."""
    env = support.environment()
    code = "import sys; print(sys.flags, sys.dont_write_bytecode, sys.stdout.write_through)"
    command = [support.PYTHON, option, "-c", code]
    image = support.frozen(tmp_path / "app.img", command, env=env)
    for changed in (LOCALE, UNBUFFERED, {"PYTHONDONTWRITEBYTECODE": "1"}):
        ordinary = support.run(command, env={**env, **changed}, log=False)
        result = support.run([image], env={**env, **changed})
        assert result.out == ordinary.out and result.fell_back is (changed is not LOCALE), result
    assert in_other_locale(image) == 1


RUBY = "p Encoding.default_external, Encoding.find('locale'), $0.encoding, ENV['PATH'].encoding, KEPT"


@needs_ruby
@pytest.mark.parametrize("locale", [None, "C.UTF-8"])
def test_an_image_of_ruby_serves_locales_of_both_encodings(locale, tmp_path):
    env = support.environment(LANG=locale)
    (tmp_path / "boot.rb").write_text("KEPT = 0\n")
    program = tmp_path / "program.rb"
    program.write_text("require_relative 'boot'\n" + RUBY)
    command = [support.RUBY, program]
    image = support.frozen(tmp_path / "app.img", command, "--preload", tmp_path / "boot.rb", env=env, serves_others=True)
    of_c = [{"LANG": None}, {"LANG": "C"}, {"LC_ALL": "POSIX"}]
    of_utf8 = [{"LANG": "C.UTF-8"}, {"LC_ALL": "C.utf8"}, {"LC_CTYPE": "C.UTF-8"}]
    for changed in (*of_c, *of_utf8, {"LANG": "xx_XX.UTF-8"}):
        start = {name: value for name, value in {**env, **changed}.items() if value is not None}
        ordinary = support.run([support.RUBY, program], env=start, log=False)
        result = support.run([image], env=start)
        assert result.out == ordinary.out, (changed, ordinary, result)
        assert result.fell_back is (changed not in (*of_utf8, *of_c)), (changed, result)
    assert in_other_locale(image) == 1


@needs_ruby
def test_whoever_names_the_locale_has_one_process(tmp_path):
    env = support.environment()
    image = support.frozen(tmp_path / "app.img", [support.RUBY], "--env", "LANG", env=env, serves_others=True)
    assert in_other_locale(image) == 0
    assert support.thawed([image, "-e", "p Encoding.default_external"], env=env).out == "#<Encoding:UTF-8>\n"
