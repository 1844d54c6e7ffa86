"""What bench/agreement.py compares: `explain` and the independent measures tell of the same modules and features."""

import sys

import pytest
from common import languages, support

sys.path.insert(0, str(support.ROOT / "bench"))

import agreement  # noqa: E402

# Milliseconds that each of them sleeps, and sleeps no shorter under load.
SLEEPS = {"outer": 30, "inner": 60}
SOURCES = {
    "python": {
        "outer": "import time\ntime.sleep(0.03)\nimport inner\n",
        "inner": "import time\ntime.sleep(0.06)\n",
        "app": "import outer\n",
    },
    "ruby": {
        "outer": "sleep 0.03\nrequire_relative 'inner'\n",
        "inner": "sleep 0.06\n",
        "app": "require_relative 'outer'\nload \"#{__dir__}/leaves.rb\"\n",
        "leaves": "exit\n",
    },
}


@pytest.fixture
def program(tmp_path):
    def made(language):
        for name, source in SOURCES[language.name].items():
            (tmp_path / (name + language.ending)).write_text(source)
        return agreement.Program([str(language.program), "app" + language.ending], {}, str(tmp_path))

    return made


@languages.both
def test_both_measures_know_the_same_parts(language, program, monkeypatch):
    monkeypatch.setattr(agreement, "STARTS", 1)
    env = agreement.workloads.clean_environment()
    said, found = (
        {name.rpartition("/")[2].removesuffix(".rb"): time for name, time in measure(program(language), env).items()}
        for measure in (agreement.explained, agreement.measured)
    )
    for times in (said, found):
        assert times["inner"] >= SLEEPS["inner"]
        assert times["outer"] >= SLEEPS["inner"] + SLEEPS["outer"]
    if language.name == "ruby":
        assert {"leaves"} <= said.keys() & found.keys()


def test_a_part_that_differs_is_told(monkeypatch, capsys):
    monkeypatch.setattr(agreement, "explained", lambda *_: {"a": 10.0, "b": 5.0})
    for other, agrees in ((10.5, True), (12.0, False)):
        monkeypatch.setattr(agreement, "measured", lambda *_, other=other: {"a": other, "b": 5.0})
        assert agreement.compare("tool", agreement.Program(["tool"], {}), 1) is agrees
    assert "-16.7%" in capsys.readouterr().out
