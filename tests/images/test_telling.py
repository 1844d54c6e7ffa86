"""What the command shows at a terminal, and what it does not: escape codes, colours, progress."""

import json
import re

import pytest
from common import support, terminal

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*([A-Za-z])")


def codes(cwd, *words, **env):
    """The final letters of the escape codes that a call shows at a terminal: m for a colour."""
    shown, status = terminal.shown_on([support.SNAPBOOT, *words], support.environment(**env), cwd)
    assert status == 0, shown
    return {letter.decode() for letter in ESCAPES.findall(shown)}


def freeze(*options):
    return ["freeze", "-o", "app.img", *options, "--", support.PYTHON]


def test_progress_and_colours_are_shown_where_they_can_be(tmp_path):
    assert "m" in codes(tmp_path, "freeze", "--help", TERM="xterm")
    assert "K" in codes(tmp_path, *freeze(), TERM="xterm")
    assert codes(tmp_path, *freeze("-q"), TERM="xterm") == set()


CALLS = [
    freeze(),
    ["verify", "app.img"],
    ["inspect", "app.img"],
    ["inspect", "--why", "app.img"],
    ["time", "-n", "1", "--", "true"],
    ["freeze", "--help"],
]


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {}, {"TERM": "xterm", "NO_COLOR": "1"}], ids=str)
def test_nothing_is_drawn_or_coloured_where_that_is_not_wanted(environment, tmp_path):
    for words in CALLS:
        assert codes(tmp_path, *words, **environment) <= ({"K"} if environment.get("TERM") == "xterm" else set()), words


def test_why_is_told_as_json(tmp_path):
    source = tmp_path / "app.py"
    source.write_text("print(1)\n")
    image = support.frozen(tmp_path / "app.img", [support.PYTHON, "app.py"], cwd=tmp_path)

    def why():
        result = support.run([support.SNAPBOOT, "inspect", "--why", "--json", image], log=False)
        return result.status, json.loads(result.out)

    assert why() == (0, {"path": str(image), "state": "fresh", "why": []})
    source.write_text("print(1 + 1)\n")
    status, told = why()
    assert status == 1 and told["state"] == "stale" and str(source) in told["why"][0], told
