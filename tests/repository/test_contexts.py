"""The count of starts that one image serves: it tells served starts from others, and right output from wrong."""

import argparse
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]

import contexts  # noqa: E402
import contexts_table  # noqa: E402
import started  # noqa: E402
import workloads  # noqa: E402

SNAPBOOT = ROOT / "target/release/snapboot"


def test_the_plan_is_what_the_count_is_about():
    plan = contexts.read_plan()
    assert 24 <= len(plan.contexts) - 1 <= 26
    languages = [program.language for program in plan.programs]
    assert (languages.count("Python"), languages.count("Ruby")) == (22, 8)
    assert plan.contexts[0].name == "base"


def test_contexts_change_the_base(tmp_path):
    plan = contexts.read_plan()
    place = contexts.Place(plan, plan.programs[0], tmp_path / "venv-of-it/bin/jc", tmp_path / "top")
    of = {context.name: place.environment(context) for context in plan.contexts}
    base = of.pop("base")
    assert base["PATH"].startswith(f"{tmp_path}/venv-of-it/bin:")
    assert set(of["cron"]) == {"HOME", "LOGNAME", "SHELL", "PATH"}
    assert set(base) - set(of["no-shell"]) == {"SHELL"}
    assert not any("{" in value for variables in of.values() for value in variables.values())
    in_other_ways = {context.name for context in plan.contexts if context.terminal or context.umask != 0o022}
    assert {name for name, variables in of.items() if variables == base} == in_other_ways


def measured(tmp_path: pathlib.Path, text: str, module: str = "") -> dict[tuple, dict]:
    """What comes of a program in four contexts, by context and kind of start."""
    python = workloads.prepare("bare")["python"]
    command = tmp_path / "prefix/bin/made"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!{python}\nimport made_module\n{text}\n")
    (command.parent / "made_module.py").write_text(module)
    command.chmod(0o755)
    program = contexts.Program("made", "Python", "made", task=("a.txt",), files={"a.txt": "text\n"})
    plan = contexts.read_plan()
    chosen = [it for it in plan.contexts if it.name in ("base", "directory", "home", "terminal")]
    plan = contexts.Plan(plan.base, tuple(chosen), (program,))
    result = contexts.Measurement(contexts.Place(plan, program, command, tmp_path / "top"), SNAPBOOT).results()
    assert result["froze"] == 0, result["said"]
    return {(start["context"], start["start"]): start for start in result["starts"]}


def test_a_start_that_thaws_and_prints_the_same_is_served(tmp_path):
    starts = measured(tmp_path, "import sys\nif 'a.txt' in sys.argv: print(open('a.txt').read())")
    assert len(starts) == 8
    assert {start["outcome"] for start in starts.values()} == {"same"}


def test_reasons_are_told_of_a_start_that_does_not_thaw(tmp_path):
    starts = measured(tmp_path, "print(1)", "import os\nH = len(os.environ['HOME'])\n")
    outcomes = {key: start["outcome"] for key, start in starts.items()}
    assert {key for key, outcome in outcomes.items() if outcome == "not served"} == {("home", "version"), ("home", "task")}
    assert contexts_table.keys({**starts["home", "task"], "depends on all": False}) == ["variable HOME"]


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        ("wrong", "print('.img' in open('/proc/self/maps').read())"),
        ("wrong", "if '.img' in open('/proc/self/maps').read(): open('left', 'w')"),
        ("unstable", "import os; print(os.urandom(4))"),
    ],
)
def test_what_differs_is_found(tmp_path, outcome, text):
    starts = measured(tmp_path, text)
    assert {start["outcome"] for start in starts.values()} == {outcome}
    assert all(start["difference"] for start in starts.values())


def test_a_terminal_is_one(tmp_path):
    code = "import os; print(os.isatty(0), os.get_terminal_size(1), os.ctermid(), os.open('/dev/tty', 2) > 2); os.write(2, b'x')"
    seen = started.run([sys.executable, "-c", code], cwd=tmp_path, env={}, terminal=(80, 24))
    assert seen.stdout == b"True os.terminal_size(columns=80, lines=24) /dev/tty True\r\nx"
    assert (seen.stderr, seen.status) == (b"", 0)


def program(**outcomes: str) -> dict:
    """A stored result, of one start in each of these contexts."""
    starts = [
        {"context": context, "start": "task", "outcome": outcome, "difference": "a and b", "reasons": ["HOME: set -> unset"]}
        for context, outcome in outcomes.items()
    ]
    return {"name": "p", "language": "Ruby", "depends": [], "starts": starts}


def test_the_table_adds_up():
    table = contexts_table.Table({"base": "", "x": "", "y": "", "z": ""}, [program(base="same", x="same", y="wrong", z="not served")])
    summary = table.summary()
    assert (summary["served"], summary["total"], summary["wrong"]) == (2, 3, 1)
    assert [(row["reason"], row["alone"], row["contexts"]) for row in summary["reasons"]["Ruby"]] == [("variable HOME", 1, {"z": 1})]
    assert table.is_wrong() and "p, y, task: a and b" in table.text()
    json.dumps(summary)


@pytest.mark.parametrize(
    ("reason", "key"),
    [
        ("HOME: another value (only digests are kept)", "variable HOME"),
        ("stale: the image was thawed as often as --max-thaws allows", "the image was thawed as often as --max-thaws allows"),
        ("locale of text (the first of LC_ALL, LC_CTYPE, LANG that is set): another one (only digests are kept)", "locale of text"),
        ("{home}/.rc: 1 -> 22 bytes, modified 2026-01-01T00:00:00Z -> 2026-01-01T00:00:01Z", "{home}/.rc: another size"),
        ("standard output: no terminal -> a terminal", "standard output"),
        ("stale: standard output is not a terminal; it was one when the image was made", "standard output"),
        ("current directory: /a -> /b", "current directory"),
    ],
)  # fmt: skip
def test_reasons_that_one_change_remedies_are_one(reason, key):
    assert contexts_table.key(reason) == key


def test_a_program_that_reads_all_variables_has_one_reason():
    assert contexts_table.key("FOO: unset -> set", depends_on_all=True) == contexts_table.WHOLE
    assert contexts_table.key("PYTHONUNBUFFERED: unset -> set", depends_on_all=True) == "variable PYTHONUNBUFFERED"


def test_two_builds_are_compared():
    before, after = program(x="not served", y="same", z="same"), program(x="same", y="wrong", z="not served")
    told = contexts_table.changes([before], [after])
    assert "1 served now that were not: variable HOME" in told
    assert "p, y, task: same -> wrong: a and b" in told
    assert "p, z, task: same -> not served: a and b" in told


def test_a_result_is_made_once(tmp_path, monkeypatch):
    plan = contexts.read_plan()
    options = argparse.Namespace(again=False, report=False, keep=False, snapboot=SNAPBOOT)
    made = []
    monkeypatch.setattr(contexts.Program, "prepare", lambda self: tmp_path / "bin/jc")
    monkeypatch.setattr(contexts.Measurement, "results", lambda self: made.append(1) or {"starts": []})
    for again in (False, False, True):
        options.again = again
        contexts.measured(plan, plan.programs[0], options, tmp_path)
    assert len(made) == 2
