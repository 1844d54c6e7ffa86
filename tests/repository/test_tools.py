"""The repository's own tools: workloads are made once, what is left out is said, a snapshot stays; the Makefile keeps its word."""

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import demo  # noqa: E402
import gaps  # noqa: E402
import lint  # noqa: E402
import run_tests  # noqa: E402
import snapshot  # noqa: E402
import workloads  # noqa: E402
from common import support  # noqa: E402


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """A workload whose build step counts how often it runs."""
    builds = []
    monkeypatch.setattr(workloads, "WORK", tmp_path)

    def build(directory, values):
        builds.append(directory)
        values["made"] = "yes"

    monkeypatch.setitem(workloads.WORKLOADS, "counted", workloads.Workload("counts", build=build))
    return builds


def test_a_workload_is_made_once(counted):
    assert workloads.prepare("counted") == workloads.prepare("counted")
    assert workloads.prepare("counted")["made"] == "yes"
    assert len(counted) == 1


def test_a_workload_is_made_again_when_its_recipe_changes_or_it_was_interrupted(counted, monkeypatch):
    workloads.prepare("counted")
    monkeypatch.setitem(
        workloads.WORKLOADS, "counted", workloads.Workload("counts", debian=("sh",), build=workloads.build_nothing)
    )
    assert "made" not in workloads.prepare("counted")
    (workloads.WORK / "workloads/counted/ready.json").unlink()
    assert workloads.prepare("counted")["dir"].endswith("counted")


def test_a_workload_in_ruby_is_made_again_for_another_ruby(counted, monkeypatch):
    monkeypatch.setitem(
        workloads.WORKLOADS, "counted", dataclasses.replace(workloads.WORKLOADS["counted"], debian=("ruby",))
    )
    monkeypatch.setattr(workloads, "install_debian_packages", lambda packages: None)
    for description in ("ruby 3.1.2", "ruby 3.1.2", "ruby 3.1.7"):
        monkeypatch.setattr(workloads, "ruby_description", lambda description=description: description)
        workloads.prepare("counted")
    assert len(counted) == 2


def test_what_cannot_be_had_is_named(monkeypatch):
    monkeypatch.delenv("SNAPBOOT_NO_INSTALLS", raising=False)
    monkeypatch.setattr(workloads.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(workloads.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    with pytest.raises(workloads.Unavailable, match="no-such-package.*as root: apt-get install no-such-package"):
        workloads.install_debian_packages(("no-such-package",))


def test_nothing_is_installed_into_a_snapshot(monkeypatch):
    monkeypatch.setenv("SNAPBOOT_NO_INSTALLS", "1")
    monkeypatch.setattr(workloads, "run", lambda argv: pytest.fail(f"{argv} is run"))
    with pytest.raises(workloads.Unavailable, match="while tests run: no-such-package; as root: apt-get install"):
        workloads.install_debian_packages(("no-such-package",))


def test_a_set_up_step_that_fails_says_how():
    with pytest.raises(workloads.Unavailable, match="status 7:\nwhat it said"):
        workloads.run(["sh", "-c", "echo what it said; exit 7"])


def test_programs_get_a_clean_environment(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("RUBYOPT", "-w")
    environment = workloads.clean_environment(EXTRA="1")
    assert environment["EXTRA"] == "1"
    assert not {"PYTHONDONTWRITEBYTECODE", "RUBYOPT"} & set(environment)
    assert not {"PYTHONDONTWRITEBYTECODE", "RUBYOPT"} & set(run_tests.environment())


def test_the_makefile_has_every_promised_target():
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", text, re.MULTILINE))
    assert {"build", "test", "demo", "bench", "lint", "fuzz", "install", "clean"} <= targets
    dry = ["make", "-n", "install", "PREFIX=/somewhere"]
    planned = subprocess.run(dry, cwd=ROOT, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True).stdout
    for part in ("/somewhere/bin", "/somewhere/libexec/snapboot", "/libexec/snapboot/python", "/libexec/snapboot/ruby"):
        assert part in planned


def test_counts_add_up():
    total = run_tests.Count(1, 2, 3) + run_tests.Count(10, 20, 30)
    assert str(total) == "11 passed, 22 failed, 33 skipped"


@pytest.fixture
def closing(monkeypatch, capsys, tmp_path):
    """Runs the suites that it is given, with the environment variable CI. Returns exit status and output."""
    monkeypatch.setattr(run_tests, "undisturbed", lambda: contextlib.nullcontext([]))
    monkeypatch.setattr(workloads, "install_all_debian_packages", lambda: None)
    monkeypatch.setattr(gaps, "TABLE", tmp_path / "known_gaps.toml")
    gaps.TABLE.write_text("[[gap]]\nreason = '^there is no moon'\nwhy = 'it is behind clouds'\n")

    def run(suites, ci):
        monkeypatch.setenv("CI", ci)
        monkeypatch.setattr(run_tests, "SUITES", suites)
        monkeypatch.setattr(sys, "argv", ["run_tests.py"])
        return run_tests.main(), capsys.readouterr().out

    return run


def skipping(*reasons):
    """A suite with one test that passes, and one for each of these reasons that is skipped."""

    def suite(suite):
        suite.skipped += reasons
        return run_tests.Count(passed=1), 0

    return suite


def test_every_suite_is_in_the_closing_line(closing):
    def missing(_):
        raise workloads.Unavailable("no such runtime here")

    suites = {
        "good": lambda _: (run_tests.Count(passed=3), 0),
        "broken": lambda suite: (run_tests.Count(passed=1), suite.command(["sh", "-c", "echo it says so; exit 2"])[1]),
        "missing": missing,
    }
    status, printed = closing(suites, ci="")
    assert status == 1
    assert "it says so" in printed
    assert "broken ended with status 2 and named no failed test" in printed
    assert "1 not run: the suite missing cannot run: no such runtime here (not a known gap)" in printed
    assert printed.splitlines()[-1] == "4 passed, 1 failed, 1 skipped"


def test_failed_tests_are_named_at_the_end(closing, monkeypatch, tmp_path):
    """Of a long output often only the last lines are kept."""
    (tmp_path / "test_it.py").write_text("def test_this():\n    assert 1 == 2, 'words ' * 500 + 'and the last'\n")
    monkeypatch.setattr(workloads, "prepare", lambda name: {"python": sys.executable, "ruby": shutil.which("ruby")})
    monkeypatch.setattr(run_tests, "WORK", tmp_path)
    cargo = "printf 'test a::b ... ok\\ntest a::c ... FAILED\\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\\n'; exit 101"
    monkeypatch.setattr(run_tests.Suite, "command", lambda suite, argv, run=run_tests.Suite.command: run(suite, planned(argv)))

    def planned(argv):
        return ["sh", "-c", cargo] if argv[0] == "cargo" else argv

    suites = {"pytest": lambda suite: run_tests.pytest(suite, [str(tmp_path / "test_it.py")]), "rust": run_tests.rust}
    status, printed = closing({**suites, "gone": skipping("the sun is gone")}, ci="true")
    end = printed.splitlines()[-5:]
    assert status == 1 and end[-1] == "2 passed, 3 failed, 0 skipped"
    assert end[0].startswith("failed: pytest: ") and "test_it test_this: AssertionError: words words" in end[0]
    assert " […] " in end[0] and "and the last" in end[0] and len(end[0]) < 2 * run_tests.MESSAGE
    assert end[1:] == [
        "failed: rust: a::c",
        "failed: not run, and no known gap: the sun is gone",
        "",
        "2 passed, 3 failed, 0 skipped",
    ]


def test_no_more_suites_run_at_once_than_may(closing, monkeypatch):
    monkeypatch.setattr(run_tests, "AT_ONCE", 2)
    running, most = set(), []
    both = threading.Barrier(2)

    def suite(suite):
        running.add(suite.name)
        both.wait(support.SECONDS)  # for the other one
        most.append(len(running))
        both.wait(support.SECONDS)
        running.discard(suite.name)
        return run_tests.Count(passed=1), 0

    assert closing(dict.fromkeys("abcd", suite), ci="")[0] == 0 and most == [2, 2, 2, 2]


def collected(folder, **variables):
    """The tests of a folder that pytest would run."""
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", folder]
    done = subprocess.run(words, cwd=ROOT, env={**run_tests.environment(), **variables}, capture_output=True, text=True)
    return {line for line in done.stdout.splitlines() if "::" in line}


def test_a_sample_is_always_the_same_and_has_some_of_each_test():
    some, everything = collected("tests/archive_python"), collected("tests/archive_python", SNAPBOOT_ALL_TESTS="1")
    assert some < everything and some == collected("tests/archive_python")
    assert {test.partition("[")[0] for test in some} == {test.partition("[")[0] for test in everything}
    named = sorted(everything - some)[0]
    assert collected(named) == {named}, "who names a test means it"
    assert run_tests.DESELECTED.findall("..  [100%]\n5 passed, 214 deselected, 1 warning in 12.3s (0:00:12)\n") == ["214"]


def test_what_is_skipped_is_said_with_its_reason(closing):
    status, printed = closing({"a": skipping("there is no moon today", "it rains"), "b": skipping("it rains")}, ci="")
    assert status == 0
    assert "1 not run: there is no moon today (it is behind clouds)" in printed
    assert "2 not run: it rains (not a known gap)" in printed
    assert printed.splitlines()[-1] == "2 passed, 0 failed, 3 skipped"


def test_in_ci_only_known_gaps_may_be_skipped(closing):
    suites = {"a": skipping("there is no moon today"), "b": skipping()}
    assert closing(suites, ci="true")[0] == 0
    status, printed = closing({**suites, "b": skipping("it rains", "it rains")}, ci="true")
    assert status == 1
    assert printed.splitlines()[-1] == "2 passed, 2 failed, 1 skipped"


def test_known_gaps_have_reasons():
    for gap in tomllib.loads(gaps.TABLE.read_text())["gap"]:
        assert set(gap) == {"reason", "why"} and re.compile(gap["reason"]) and gap["why"]


def test_the_runners_name_what_is_skipped(monkeypatch, tmp_path):
    """The reasons of pytest, of minitest, and of cargo's tests, which say that they were not tried."""
    (tmp_path / "test_a.py").write_text("import pytest\ndef test_a(): pytest.skip('too dark')\ndef test_b(): pass\n")
    monkeypatch.setattr(run_tests, "WORK", tmp_path)
    suite = run_tests.Suite("some", [str(tmp_path / "test_a.py")])
    assert (str(run_tests.pytest(suite, [])[0]), suite.skipped) == ("1 passed, 0 failed, 0 skipped", ["too dark"])
    lines = "Run options:\n\nnot tried: too wet\n..\nnot tried: too dry: 2 %\n"
    assert run_tests.NOT_TRIED.findall(lines) == ["too wet", "too dry: 2 %"]


@support.needs_ruby
def test_minitest_names_what_is_skipped(tmp_path):
    (tmp_path / "a_test.rb").write_text("class ATest < Minitest::Test; def test_a = skip('too dark'); end\n")
    words = ["ruby", f"-I{ROOT}/tests/ruby", "-rminitest/autorun", "-rsupport/not_tried", tmp_path / "a_test.rb"]
    said = subprocess.run(words, capture_output=True, text=True).stdout
    assert run_tests.NOT_TRIED.findall(said) == ["too dark"]


def test_a_style_check_that_is_missing_is_a_failure_in_ci(monkeypatch, capsys):
    def prepare(name):
        raise workloads.Unavailable("no network")

    monkeypatch.setattr(workloads, "prepare", prepare)
    for ci, status, said in (("", 0, "ruff skipped: no network"), ("true", 1, "ruff FAILED")):
        monkeypatch.setenv("CI", ci)
        assert lint.main() == status
        assert said in capsys.readouterr().out


def test_the_demo_says_which_row_is_missing(monkeypatch, capsys, tmp_path):
    def prepare(name):
        raise workloads.Unavailable(f"{name} cannot be had: no network")

    monkeypatch.setattr(workloads, "prepare", prepare)
    monkeypatch.setattr(workloads, "WORK", tmp_path)
    assert demo.main() == 1
    printed = capsys.readouterr().out
    for scenario in tomllib.loads((ROOT / "examples/demo.toml").read_text())["scenario"].values():
        assert f"missing: {scenario['title']}: " in printed
    assert "cannot be had: no network" in printed
    assert "0 of 5 rows could be measured" in printed.splitlines()[-1]


def test_a_snapshot_stays_while_the_machine_changes(tmp_path):
    """In a process of its own: the namespace would be that of all further tests."""
    support.in_mount_namespace("true")
    place, copies = tmp_path / "place", tmp_path / "copies"
    place.mkdir()
    copies.mkdir()
    (place / "name").write_text("before")
    code = (
        "import os, pathlib, sys, snapshot\n"
        "place, copies = map(pathlib.Path, sys.argv[1:])\n"
        "snapshot.PLACES = [str(place)]\n"
        "snapshot.enter(copies)\n"
        "print(flush=True); input()\n"
        "print((place / 'name').read_text(), sorted(os.listdir(place)), os.geteuid(), (place / 'name').stat().st_mtime_ns)\n"
    )
    words = [sys.executable, "-c", code, place, copies]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, env={"PYTHONPATH": str(ROOT / "tools"), "PATH": os.environ["PATH"]}, **pipes) as process:
        process.stdout.readline()
        time = (place / "name").stat().st_mtime_ns
        (place / "new").write_text("after")
        os.replace(place / "new", place / "name")
        (place / "other").touch()
        said, _ = process.communicate("\n")
    assert said == f"before ['name'] {os.geteuid()} {time}\n"


def test_where_no_snapshot_can_be_had_the_tests_run_and_say_so(monkeypatch):
    def enter(folder):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(snapshot, "enter", enter)
    with run_tests.undisturbed() as notes:
        assert "Operation not permitted" in notes[0] and "installed" in notes[0]


def test_suites_hear_what_is_meant_for_them_and_nothing_else(monkeypatch):
    monkeypatch.setenv("SNAPBOOT_THAWS", "7")
    monkeypatch.setenv("SNAPBOOT_ON_STALE", "error")
    environment = run_tests.environment()
    assert environment["SNAPBOOT_THAWS"] == "7" and "SNAPBOOT_ON_STALE" not in environment
