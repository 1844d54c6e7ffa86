"""The house's own tools: workloads are made once and again when their recipe changes; the Makefile keeps its word."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import run_tests  # noqa: E402
import workloads  # noqa: E402


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


def test_what_cannot_be_had_is_named(monkeypatch):
    monkeypatch.setattr(workloads.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(workloads.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    with pytest.raises(workloads.Unavailable, match="no-such-package.*as root: apt-get install no-such-package"):
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
    for part in ("/somewhere/bin", "/somewhere/lib/snapboot", "/lib/snapboot/python", "/lib/snapboot/ruby"):
        assert part in planned


def test_counts_add_up():
    total = run_tests.Count(1, 2, 3) + run_tests.Count(10, 20, 30)
    assert str(total) == "11 passed, 22 failed, 33 skipped"


def test_every_suite_is_in_the_closing_line(monkeypatch, capsys):
    def missing(_):
        raise workloads.Unavailable("no such runtime here")

    suites = {
        "good": lambda _: (run_tests.Count(passed=3, skipped=1), 0),
        "broken": lambda suite: (run_tests.Count(passed=1), suite.command(["sh", "-c", "echo it says so; exit 2"])[1]),
        "missing": missing,
    }
    monkeypatch.setattr(run_tests, "SUITES", suites)
    monkeypatch.setattr(sys, "argv", ["run_tests.py"])
    assert run_tests.main() == 1
    printed = capsys.readouterr().out
    assert "it says so" in printed
    assert "broken ended with status 2 and named no failed test" in printed
    assert "missing skipped: no such runtime here" in printed
    assert printed.splitlines()[-1] == "4 passed, 1 failed, 2 skipped"


def test_suites_hear_what_is_meant_for_them_and_nothing_else(monkeypatch):
    monkeypatch.setenv("SNAPBOOT_THAWS", "7")
    monkeypatch.setenv("SNAPBOOT_ON_STALE", "error")
    environment = run_tests.environment()
    assert environment["SNAPBOOT_THAWS"] == "7" and "SNAPBOOT_ON_STALE" not in environment
