"""The README's table of tried runtimes is the stored results'; a result says what pytest reported, and takes the place of an older one."""

import json
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

import marked  # noqa: E402
import try_runtimes as runtimes  # noqa: E402
from common import pythons  # noqa: E402

REPORT = """<testsuites><testsuite>
<testcase name="a"/><testcase name="b"/>
<testcase name="c"><failure message="no"/></testcase><testcase name="d"><error message="no"/></testcase>
<testcase name="e"><skipped message="needs numpy"/></testcase><testcase name="f"><skipped message="needs numpy"/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def results(monkeypatch, tmp_path):
    """A file of results that has none yet."""
    path = tmp_path / "runtimes.json"
    monkeypatch.setattr(runtimes, "RESULTS", path)
    return path


def test_the_readme_is_what_the_stored_results_generate():
    text = runtimes.README.read_text()
    made = marked.filled_in(text, runtimes.table(runtimes.stored()), tool="tools/try_runtimes.py")
    assert text == made, "run: tools/try_runtimes.py --write"


def test_what_is_tried_can_be_frozen():
    tried = [tuple(map(int, version.split("."))) for system in runtimes.SYSTEMS.values() for version in system.pythons]
    assert tried and set(tried) <= set(pythons.VERSIONS)
    rubies = re.search(r"RUBIES: .* = \[(.*)\];", (ROOT / "crates/runtime/src/probe.rs").read_text())[1]
    tried = {f'"{version}"' for system in runtimes.SYSTEMS.values() for version in system.rubies}
    assert tried and tried <= set(rubies.split(", "))


def test_each_part_names_tests_that_there_are():
    paths = [path for part in runtimes.PARTS.values() for path in (*part.python, *part.ruby)]
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_a_report_is_counted(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT)
    counted = runtimes.counted(tmp_path / "report.xml")
    assert counted == {"passed": 2, "failed": ["c", "d"], "not run": {"needs numpy": 2}}


def test_a_newer_version_takes_the_place_of_an_older_one(results):
    good, bad = ({"passed": 3, "failed": failed, "not run": {}} for failed in ([], ["c"]))
    runtimes.store("sid", "2.43", "CPython 3.14.9", "archive", bad)
    runtimes.store("sid", "2.43", "CPython 3.15.2", "archive", good)
    runtimes.store("sid", "2.43", "CPython 3.14.10", "archive", good)
    runtimes.store("sid", "2.43", "CPython 3.14.10", "behaviour", bad)
    stored = json.loads(results.read_text())["systems"]["sid"]["runtimes"]
    parts = {name: list(results) for name, results in stored.items()}
    assert parts == {"CPython 3.15.2": ["archive"], "CPython 3.14.10": ["archive", "behaviour"]}


def test_the_table_names_what_failed(results):
    runtimes.store("sid", "2.43", "CPython 3.14.10", "behaviour", {"passed": 1499, "failed": ["test_same[exit]"], "not run": {}})
    rows = runtimes.table(runtimes.stored()).splitlines()
    assert "| CPython 3.14.10 | Debian sid, glibc 2.43 | 1,499 of 1,500 | – | – | – |" in rows
    assert "Failed: `CPython 3.14.10, behaviour: test_same[exit]`." in rows[-1]


def test_systems_that_are_not_known_are_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["try_runtimes.py", "potato"])
    with pytest.raises(SystemExit):
        runtimes.main()
    assert "no such system: potato; there are: trixie, sid" in capsys.readouterr().err
