"""A program that looks at its terminal while it loads has an image for starts at one, and another for starts without."""

import json
import os
import pty
import subprocess

import pytest
from common import support
from common.languages import both

from .stores import Store, is_thawed

pytestmark = pytest.mark.sample(8)

PROGRAMS = {
    "python": {
        "app.py": "import sys, seen\nif 'loud' in sys.argv: import loud\nprint(seen.COLOURS, seen.TERM, *sys.argv[1:])\n",
        "loud.py": "import sys\nif sys.stdout.isatty():\n    print('at a terminal')\n",
        "seen.py": "import os, sys\nCOLOURS = sys.stdout.isatty() and sys.stderr.isatty()\nTERM = os.environ.get('TERM')\n",
    },
    "ruby": {
        "app.rb": "require_relative 'seen'\nrequire_relative 'loud' if ARGV.include?('loud')\n"
        "puts [COLOURS.to_s.capitalize, KIND, *ARGV].join(' ')\n",
        "loud.rb": "puts 'at a terminal' if STDOUT.tty?\n",
        "seen.rb": "COLOURS = STDOUT.tty? && STDERR.tty?\nKIND = ENV['TERM']\n",
    },
}

END = b"\0end"


class Terminal:
    """Starts a program of a store at a terminal or without one."""

    def __init__(self, folder, language):
        self.store = Store(folder, TERM="vt100")
        self.command = self.store.write_program(language, PROGRAMS[language.name])

    def without(self, *arguments):
        """What it prints without one, and whether nothing was said."""
        result = self.store.run(*self.command, *arguments)
        return result.out, is_thawed(result)

    def at_terminal(self, *arguments, streams=(0, 1, 2), **env):
        """What it shows at one; `streams` says which of the standard streams that is."""
        return self._shown([support.SNAPBOOT, "run", "--", *self.command, *arguments], streams, env)

    def image_at(self, image, *arguments):
        """What an image shows at one."""
        return self._shown([image, *arguments], (0, 1, 2), {})

    def _shown(self, words, streams, env):
        other_end, terminal = pty.openpty()
        given = {stream: terminal if stream in streams else subprocess.DEVNULL for stream in range(3)}
        process = subprocess.Popen(
            words, stdin=given[0], stdout=given[1], stderr=given[2], env={**self.store.env, **env}, cwd=self.store.folder
        )
        assert process.wait() == 0
        # What was written arrives piece by piece, and the kernel may drop it when the terminal is closed: the end comes last.
        os.write(terminal, END)
        shown = b""
        while not shown.endswith(END):
            shown += os.read(other_end, 4096)
        os.close(terminal)
        os.close(other_end)
        return shown.removesuffix(END).decode()

    def thaws(self):
        """How many starts were from images, for each image; that which a terminal has no part in counts as fresh."""
        rows = self.store.wait()
        assert all(row["state"] == "fresh" for row in rows), rows
        return [row["thawed"] for row in rows]


@both
def test_each_kind_of_start_has_its_image(tmp_path, language):
    program = Terminal(tmp_path, language)
    # What the first image has not, its first start tells.
    for _ in range(3):
        assert program.without("a")[0] == "False vt100 a\n"
        program.store.wait()
    assert program.without("a") == ("False vt100 a\n", True)
    for _ in range(3):
        assert program.at_terminal("a") == "True vt100 a\r\n"
        program.store.wait()
    before = program.thaws()
    assert len(before) == 2
    assert program.at_terminal("b") == "True vt100 b\r\n" and program.without("b") == ("False vt100 b\n", True)
    assert [after - thaws for after, thaws in zip(program.thaws(), before, strict=True)] == [1, 1]
    rows = program.store.list()
    assert program.image_at(rows[0]["path"], "c") == "True vt100 c\r\n"
    handed_over = program.store.list()
    assert [row["fallen_back"] for row in handed_over] == [row["fallen_back"] for row in rows], "the other image took it"
    assert sum(row["thawed"] for row in handed_over) == sum(row["thawed"] for row in rows) + 1
    for image in (row["path"] for row in rows):
        facts = json.loads(program.store.snapboot("inspect", "--json", image, log=False).out)["facts"]
        assert any("terminal" in str(fact) for fact in facts), "it looks when it is loaded, which the image saves"


@both
def test_a_start_that_fits_no_image_is_an_ordinary_one(tmp_path, language):
    program = Terminal(tmp_path, language)
    for _ in range(3):
        program.at_terminal("a")
        program.store.wait()
    assert program.at_terminal("b", streams=(0, 1)) == "False vt100 b\r\n"
    assert program.at_terminal("b", TERM="dumb") == "True dumb b\r\n"
    assert program.without("b")[0] == "False vt100 b\n"


@both
def test_an_image_that_is_made_again_is_for_the_same_starts(tmp_path, language):
    program = Terminal(tmp_path, language)
    for _ in range(3):
        program.at_terminal("a")
        program.store.wait()
    (path,) = (row["path"] for row in program.store.list())
    again = program.store.snapboot("refreeze", path, stdin=subprocess.DEVNULL)
    assert again.status == 0, again
    before = program.thaws()
    assert program.at_terminal("b") == "True vt100 b\r\n"
    assert program.thaws() == [before[0] + 1]


@both
def test_what_is_printed_at_a_terminal_alone_is_printed_by_each_start(tmp_path, language):
    program = Terminal(tmp_path, language)
    for _ in range(4):
        assert program.at_terminal("loud") == "at a terminal\r\nTrue vt100 loud\r\n"
        program.store.wait()
    (before,) = program.thaws()
    assert program.at_terminal("loud") == "at a terminal\r\nTrue vt100 loud\r\n"
    assert program.thaws() == [before + 1]
