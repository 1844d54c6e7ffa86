"""Consoles of rich that an image holds: each start finds out anew what its terminal is. rich is the one that pip carries along."""

import subprocess

import pytest
from common import support, terminal

CONSOLE = "pip._vendor.rich.console"

pytestmark = [pytest.mark.skipif(
    subprocess.run([support.PYTHON, "-c", f"import {CONSOLE}"], capture_output=True).returncode != 0,
    reason="this Python's pip carries no rich along",
), pytest.mark.sample(20, whole=True)]

SHOW = "import made; print([(each.color_system, each.is_interactive, each.is_terminal) for each in made.ALL])"


class Made:
    """An image that holds consoles, and the same program without one."""

    def __init__(self, tmp_path, source):
        (tmp_path / "made.py").write_text(f"from {CONSOLE} import Console\n{source}\n")
        self.folder = tmp_path
        self.env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1", TERM="xterm-256color")
        self.image = tmp_path / "x.img"
        result = support.freeze(self.image, [support.PYTHON], "--preload", "made", env=self.env, cwd=tmp_path)
        assert result.status == 0, result
        self.said = result.out

    def same(self, code=SHOW, **variables):
        """What the program prints in a pipe and at a terminal, which must be what it prints without an image."""
        env = {**self.env, "SNAPBOOT_ON_STALE": "error", **variables}
        piped, shown = [], []
        for program in (support.PYTHON, self.image):
            argv = [str(program), "-c", code]
            piped.append(support.run(argv, env=env, log=False, cwd=self.folder).out)
            shown.append(terminal.shown_on(argv, env, cwd=self.folder))
        assert piped[0] == piped[1] and shown[0] == shown[1], (piped, shown)
        return piped[0], shown[0][0].decode()


ALL_KINDS = """
import sys
ALL = [
    Console(), Console(stderr=True), Console(color_system=None), Console(color_system="truecolor"),
    Console(force_interactive=False), Console(no_color=True),
]
"""


def test_each_start_has_its_own_terminal(tmp_path):
    made = Made(tmp_path, ALL_KINDS)
    assert "terminal" not in made.said
    piped, shown = made.same()
    assert piped.startswith("[(None, False, False), ") and shown.startswith("[('256', True, True), "), (piped, shown)
    made.same(TERM="dumb")
    made.same(TERM="xterm", COLORTERM="truecolor")
    made.same("import made; made.ALL[0].print('[bold red]red[/] and :warning:')")


def test_one_that_is_told_to_be_a_terminal(tmp_path):
    Made(tmp_path, "ALL = [Console(force_terminal=True), Console(force_terminal=False)]").same()


@pytest.mark.parametrize(
    "decides",
    [
        "ALL[0].is_terminal",
        "ALL[0].is_interactive",
        "ALL[0].color_system",
        "getattr(ALL[0], '_color_system')",
        "__import__('sys').stdout.isatty()",
    ],
)
def test_who_decides_by_it_while_booting_has_variants_for_both(decides, tmp_path):
    made = Made(tmp_path, f"ALL = [Console()]\nIS = {decides}")
    assert "2 variants (1 for terminals)" in made.said


def test_no_trace_is_left(tmp_path):
    made = Made(tmp_path, "ALL = [Console()]")
    made.same("import made; print(sorted(vars(type(made.ALL[0]))), sorted(vars(made.ALL[0])), made.ALL[0].is_interactive)")
