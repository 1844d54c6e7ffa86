"""Completion and manual pages say what the program's own help says, and name nothing that nobody types."""

import re
import shutil
import subprocess

import pytest
from common import support

HIDDEN = ("confined", "watched", "traced", "manual", "reference", "tables", "build-image", "learn", "fallback")
SHELLS = ("bash", "fish", "zsh")
# Calls the function as bash does, for the words of a line; prints what it offers.
IN_BASH = """
source <("$1" completion bash)
[[ $(complete -p snapboot) =~ -F\\ ([^ ]+) ]]
COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
"${BASH_REMATCH[1]}" snapboot "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def commands():
    """Those that `snapboot --help` lists."""
    help = support.run([support.SNAPBOOT, "--help"], log=False).out
    listed = re.findall(r"^  ([a-z]+) ", help.split("Commands:")[1].split("Options:")[0], re.MULTILINE)
    return sorted(set(listed) - {"help"})


@pytest.fixture(name="programs")
def programs_(tmp_path):
    """A directory for PATH, with a program in it."""
    program = tmp_path / "frobnicate"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return f"{tmp_path}:/usr/bin:/bin"


def in_bash(programs, *words):
    run = subprocess.run(
        ["bash", "--norc", "-c", IN_BASH, "bash", support.SNAPBOOT, *words],
        env={"PATH": programs}, capture_output=True, text=True, check=True,
    )
    assert run.stderr == ""
    return run.stdout.split()


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_name_what_is_typed(shell):
    script = support.run([support.SNAPBOOT, "completion", shell], log=False).out
    for command in commands():
        assert re.search(rf"\b{command}\b", script), command
    for command in HIDDEN:
        assert not re.search(rf"\b{command}[\b_)]", script), command


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_read_their_script(shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell}")
    script = tmp_path / "script"
    script.write_text(support.run([support.SNAPBOOT, "completion", shell], log=False).out)
    run = subprocess.run([shell, "-n", script], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_bash_completes_words(programs):
    assert in_bash(programs, "snapboot", "refr") == ["refreeze"]
    assert in_bash(programs, "snapboot", "freeze", "--pol") == ["--policy"]
    assert in_bash(programs, "snapboot", "freeze", "--policy", "") == ["check", "content", "trust"]
    assert in_bash(programs, "snapboot", "install", "--in") == ["--in-place"]
    assert in_bash(programs, "snapboot", "conf") == []


@pytest.mark.parametrize("before", [["install"], ["run", "--"], ["freeze", "-o", "x.img", "--"], ["archive", "build", "--"]], ids=" ".join)
def test_bash_completes_commands(programs, before):
    assert in_bash(programs, "snapboot", *before, "frobni") == ["frobnicate"]


@pytest.mark.skipif(not shutil.which("fish"), reason="there is no fish")
@pytest.mark.parametrize("line", ["install ", "run -- ", "freeze -o x.img -- "])
def test_fish_completes_commands(programs, tmp_path, line):
    script = tmp_path / "snapboot.fish"
    script.write_text(support.run([support.SNAPBOOT, "completion", "fish"], log=False).out)
    asked = f"source {script}; complete -C 'snapboot {line}frobni'"
    offered = subprocess.run(
        ["fish", "--no-config", "-c", asked], env={"PATH": programs, "HOME": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert [word.split("\t")[0] for word in offered.stdout.splitlines()] == ["frobnicate"]


def test_every_command_has_its_page(tmp_path):
    assert support.run([support.SNAPBOOT, "manual", tmp_path], log=False).status == 0
    pages = {page.name for page in tmp_path.iterdir()}
    parts = {f"snapboot-archive-{part}.1" for part in ("build", "list", "verify", "prune", "push", "pull")}
    parts |= {f"snapboot-remote-{part}.1" for part in ("push", "pull", "list", "verify", "prune", "key")}
    assert pages == {"snapboot.1", *(f"snapboot-{command}.1" for command in commands()), *parts}
    freeze = (tmp_path / "snapboot-freeze.1").read_text()
    assert "\\-\\-no\\-recipe" in freeze and '.SH "EXAMPLES"' in freeze
    if shutil.which("mandoc"):
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "error", *tmp_path.iterdir()], capture_output=True, text=True)
        assert lint.stdout == ""
