"""`snapboot explain` shows starts with the boot archive beside ordinary ones, by the same cases in both languages.

What must come from the archive is compared, and never how long that takes: what a module waits for is known, and no archive spares it.
"""

import json
import pathlib

import pytest
from common import languages, support

from .unseen import UNSEEN

pytestmark = pytest.mark.sample(10, whole=True)

# Milliseconds that the module `slow` sleeps.
SLEEP = 40
# What the archive can hold of a program: modules, a data file, and what only this language has of it.
SOURCES = {
    "python": {
        "slow": f"import time\ntime.sleep({SLEEP / 1000})\nimport inner\n",
        "inner": "import re\nPATTERN = re.compile(r'some(thing|body) [a-z]+ 12345')\n",
        "app": "import json, textwrap, slow\nimport codecs\nwith open('data.json') as file:\n    assert len(json.load(file)) == 400\n",
    },
    "ruby": {
        "slow": f"sleep {SLEEP / 1000}\nrequire_relative 'inner'\n",
        "inner": "def something(one, other = [])\n  [one, *other]\nend\n",
        "app": "require 'yaml'\nrequire_relative 'slow'\nexit 1 unless YAML.load_file('data.yml').size == 400\n",
    },
}
ANSWERS = {"python": {"regular expressions", "data.json"}, "ruby": {"data.yml"}}
NOTHING = {"python": "-c", "ruby": "-e"}


def explained(command, *options, env=None, cwd=None):
    command = [support.SNAPBOOT, "explain", "--no-freeze", "-n", "1", *options, "--", *command]
    return support.run(command, env=env, cwd=cwd, log=False)


def report(result):
    """The parts of each start by its title, and what else the report says."""
    assert result.status == 0, result
    read = json.loads(result.out)
    titles = {event["pid"]: event["args"]["name"] for event in read["traceEvents"] if event["name"] == "process_name"}
    starts = {title: [] for title in titles.values()}
    for event in read["traceEvents"]:
        if event["ph"] == "X":
            starts[titles[event["pid"]]].append(event)
    return starts, read["otherData"]


def milliseconds(part):
    return part["args"]["time in ms"]


def names(parts, *kinds):
    """The last parts of the names of those parts, or of their files."""
    return {pathlib.Path(part["name"]).name.removesuffix(".rb") for part in parts if part["cat"] in kinds}


@pytest.fixture
def program(language, tmp_path):
    """A program of which an archive holds something of each sort: its command."""
    for name, source in SOURCES[language.name].items():
        (tmp_path / (name + language.ending)).write_text(source)
    (tmp_path / "data.json").write_text(json.dumps([f"number {number}" for number in range(400)]))
    (tmp_path / "data.yml").write_text("".join(f"- number {number}\n" for number in range(400)))
    return [language.program, "app" + language.ending]


@languages.both
def test_what_comes_from_the_archive_is_told_apart(language, program, tmp_path):
    temporary, home = tmp_path / "temporary", tmp_path / "home"
    temporary.mkdir()
    home.mkdir()
    env = support.environment(TMPDIR=temporary, HOME=home)
    starts, about = report(explained(program, "--json", env=env, cwd=tmp_path))
    assert list(starts) == ["ordinary", "with archive"] and "no_archive" not in about, about
    parts = starts["with archive"]
    (process,) = [part for part in parts if part["cat"] == "process"]
    tops = [part for part in parts if part["name"] in ("snapboot run", "the interpreter's own start", "__main__")]
    assert [part["name"] for part in tops] == ["snapboot run", "the interpreter's own start", "__main__"]
    # The parts are all of it.
    of_process = [part for part in parts if part is not process and depth(part, parts) == 1]
    assert sum(map(milliseconds, of_process)) == pytest.approx(milliseconds(process), rel=0.03)
    assert [part["name"] for part in parts if part["cat"] == "archive"] == ["snapboot run", "opening the boot archive"]
    assert {"slow", "inner"} <= names(parts, "lookup") & names(parts, "stored") & names(parts, "body")
    assert not {"slow", "inner"} & names(parts, "search", "code")
    assert ANSWERS[language.name] <= {part["name"].rpartition("/")[2] for part in parts if part["cat"] == "data"}
    assert not {part["cat"] for part in starts["ordinary"]} & {"archive", "lookup", "stored", "data"}
    (slow,) = [part for part in parts if part["cat"] == "body" and part["name"].rpartition("/")[2] == "slow"]
    assert milliseconds(slow) >= SLEEP and "slow" in slow["args"]["detail"]
    assert slow["args"]["system calls"] > 0
    # The archive is one of its own, and gone.
    assert not list(temporary.iterdir()) and not list(home.rglob("*archive*"))


def depth(part, parts):
    """How many parts it lies in."""
    end = part["ts"] + part["dur"]
    return sum(
        other is not part and other["ts"] <= part["ts"] and end <= other["ts"] + other["dur"] and parts.index(other) < parts.index(part)
        for other in parts
    )


# Who is warned when this is compiled is warned at each start: its code is not kept.
WARNS = {"python": "IS_ONE = 1 is 1\n", "ruby": "DOUBLE = { a: 1, a: 2 }\n"}


@languages.both
def test_what_is_left_to_the_interpreter_is_told_of_as_before(language, program, tmp_path):
    (tmp_path / ("warns" + language.ending)).write_text(WARNS[language.name])
    load = {"python": "import warns\n", "ruby": "require_relative 'warns'\n"}[language.name]
    with open(tmp_path / ("app" + language.ending), "a") as file:
        file.write(load)
    starts, about = report(explained(program, "--json", env=support.environment(PYTHONDONTWRITEBYTECODE="1"), cwd=tmp_path))
    parts = starts["with archive"]
    assert "warns" in names(parts, "code") and "slow" not in names(parts, "code")
    assert "warns" in names(parts, "lookup")


@languages.both
def test_it_stands_beside_the_others(language, program, tmp_path):
    result = support.run([support.SNAPBOOT, "explain", "-n", "1", "--", *program], cwd=tmp_path, log=False)
    assert result.status == 0, result
    assert result.out.splitlines()[0].split() == ["ordinary", "with", "archive", "thawed"]
    for words in ["the archive's own start", "look-ups from the archive", "code from the archive", "Start with archive of "]:
        assert words in result.out


@languages.both
def test_the_program_sees_nothing_of_it(language, tmp_path):
    (tmp_path / ("app" + language.ending)).write_text(UNSEEN[language.name])
    starts, about = report(explained([language.program, "app" + language.ending], "--json", cwd=tmp_path))
    assert "with archive" in starts, about


@languages.both
def test_where_there_is_no_archive_one_line_says_why(language, program, tmp_path):
    off = support.environment(SNAPBOOT_ARCHIVE="off")
    result = explained(program, env=off, cwd=tmp_path)
    assert result.status == 0 and result.out.count("SNAPBOOT_ARCHIVE=off switches it off") == 1, result
    assert result.out.splitlines()[0].split() == ["ordinary"]
    starts, about = report(explained(program, "--json", env=off, cwd=tmp_path))
    assert list(starts) == ["ordinary"] and "SNAPBOOT_ARCHIVE=off" in about["no_archive"]
    # Nobody has asked for it.
    starts, about = report(explained(program, "--json", "--no-archive", env=off, cwd=tmp_path))
    assert list(starts) == ["ordinary"] and "no_archive" not in about


@pytest.mark.parametrize(
    "command, why",
    [
        ([support.PYTHON, "-c", "1"], "loads so little"),
        ([support.PYTHON, "-I", "-c", "import json.tool"], "-I, -E, -S"),
        pytest.param([languages.RUBY.program, "--disable=rubyopt", "-e", "1"], "could not record", marks=support.needs_ruby),
    ],
)
def test_a_start_that_has_none_says_why(command, why):
    starts, about = report(explained(command, "--json"))
    assert list(starts) == ["ordinary"] and why in about["no_archive"]


def differing(result):
    """The lines of what differs most."""
    assert result.status == 0, result
    return result.out.split("What differs most")[1].split("\n\n")[0].splitlines()[2:]


@languages.both
def test_starts_of_saved_reports_are_compared_by_their_kind(language, program, tmp_path):
    saved = explained(program, "--json", cwd=tmp_path)
    (tmp_path / "a.json").write_text(saved.out)

    def compared(kinds):
        words = [support.SNAPBOOT, "explain", "--start", kinds, "--diff", "a.json", "a.json"]
        return support.run(words, cwd=tmp_path, log=False)

    result = compared("ordinary,archive")
    lines = differing(result)
    assert result.out.splitlines()[0].split() == ["A,", "ordinary", "B,", "with", "archive"]
    assert "B, start with archive of " in result.out
    assert any("opening the boot archive" in line or "snapboot run" in line for line in lines), result
    # One kind is meant for both.
    result = compared("archive")
    assert result.out.splitlines()[0].split() == ["A,", "with", "archive", "B,", "with", "archive"]
    assert {line.split("ms")[2].strip() for line in differing(result)} == {"+0.00"}, result
    none = compared("thawed")
    assert none.status == 2 and "should have a start that is thawed, but it has 2 starts: ordinary, with archive" in none.err, none


@languages.both
@pytest.mark.parametrize(("kind", "column"), [("archive", ["with", "archive"]), ("thawed", ["thawed"])])
def test_starts_of_two_commands_are_compared_by_kind(kind, column, language, program, tmp_path):
    other = program[:1] + ["other" + language.ending]
    source = (tmp_path / ("app" + language.ending)).read_text()
    wait = {"python": "import time\ntime.sleep(0.2)\n", "ruby": "sleep 0.2\n"}[language.name]
    (tmp_path / ("other" + language.ending)).write_text(source + wait)
    words = [support.SNAPBOOT, "explain", "-n", "1", "--start", kind, "--", *program, "--vs", *other]
    result = support.run(words, cwd=tmp_path, log=False)
    # What else differs, and how much, is up to the machine; a sleep takes no less time on any.
    mains = [line.split("ms") for line in differing(result) if "__main__" in line]
    assert len(mains) == 1 and float(mains[0][1].replace(",", "")) >= 200, result
    assert result.out.splitlines()[0].split() == ["A,", *column, "B,", *column]


def test_a_kind_is_named_only_where_starts_are_compared():
    command = [support.PYTHON, "-c", "import json.tool"]
    for options in (["--start", "archive"], ["--start", "ordinary,archive,thawed"]):
        words = [support.SNAPBOOT, "explain", *options, "--", *command, *(["--vs", *command] if "," in options[1] else [])]
        result = support.run(words, log=False)
        assert result.status == 2 and "--start says which starts are compared" in result.err, result
