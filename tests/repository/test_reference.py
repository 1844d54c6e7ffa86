"""docs/reference.md has a row for each option and each variable, and none for what is not there."""

import re

import pytest
from common import support

REFERENCE = (support.ROOT / "docs/reference.md").read_text()
PROTOCOL = (support.ROOT / "docs/internals/protocol.md").read_text()
COMMANDS = ["freeze", "refreeze", "run", "install", "uninstall", "list", "shellenv"]
COMMANDS += ["enable", "disable", "inspect", "verify", "check", "time", "explain", "completion"]
ARCHIVE = ["build", "list", "verify", "prune"]
OPTION = re.compile(r"^ +((?:-[a-z], )?--[a-z-]+)", re.MULTILINE)
VARIABLE = re.compile(r"\bSNAPBOOT_[A-Z_]*[A-Z]\b")
# Of which the tests alone make use.
OF_TESTS = {"SNAPBOOT_NOT_SET", "SNAPBOOT_NO_SUCH_VARIABLE", "SNAPBOOT_SEED", "SNAPBOOT_TEST_PLACE", "SNAPBOOT_TEST_EVENTS"}


def options(*words):
    """The options that the program has, each as `-o, --output`, without --help."""
    result = support.run([support.SNAPBOOT, *words, "--help"], log=False)
    assert result.status == 0, result
    listed = result.out[result.out.index("\nOptions:") :].split("\nEnvironment of the boot:")[0].split("\nExamples:")[0]
    return set(OPTION.findall(listed)) - {"-h, --help"}


def in_table(text):
    """The options in these rows, or between the semicolons of one."""
    return {", ".join(re.findall(r"--?[a-z][a-z-]*", row)) for row in re.findall(r"`-[^|;\n]*", text)}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_its_row(command):
    (section,) = re.findall(rf"^### `snapboot {command}\b.*?\n(.*?)(?=^##)", REFERENCE, re.MULTILINE | re.DOTALL)
    rows = "\n".join(re.findall(r"^\| (`-.*?) \|", section, re.MULTILINE))
    assert in_table(rows) == options(command)


@pytest.mark.parametrize("command", ARCHIVE)
def test_every_option_of_archives_is_in_its_row(command):
    (row,) = re.findall(rf"^\| `{command}[ `][^|]*\|[^|]*\|([^|]*)\|$", REFERENCE, re.MULTILINE)
    assert in_table(row) == options("archive", command)


def test_every_command_is_there():
    help = support.run([support.SNAPBOOT, "--help"], log=False).out
    listed = re.findall(r"^  ([a-z]+) ", help.split("Commands:")[1].split("Options:")[0], re.MULTILINE)
    assert sorted(listed) == sorted([*COMMANDS, "archive", "help"])


def test_every_variable_has_its_row():
    places = ("crates", "python/snapboot", "ruby/lib")
    files = [path for place in places for path in (support.ROOT / place).rglob("*") if path.suffix in (".rs", ".py", ".rb")]
    read = {name for path in files if "tests" not in path.parts for name in VARIABLE.findall(path.read_text())}
    rows = {name for text in (REFERENCE, PROTOCOL) for name in VARIABLE.findall(text)}
    assert read - OF_TESTS == rows
