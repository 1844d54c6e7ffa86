"""docs/reference.md lists each command, option and variable, and none that is not there."""

import re
import sys

import pytest
from common import sources, support

sys.path.insert(0, str(support.ROOT / "tools"))

import reference  # noqa: E402

REFERENCE = (support.ROOT / "docs/reference.md").read_text()
PROTOCOL = (support.ROOT / "docs/internals/protocol.md").read_text()
COMMANDS = ["freeze", "refreeze", "run", "install", "uninstall", "list", "shellenv"]
COMMANDS += ["enable", "disable", "inspect", "verify", "check", "time", "explain", "completion"]
GROUPS = {"archive": ["build", "list", "verify", "prune", "push", "pull"], "remote": ["push", "pull", "list", "verify", "prune", "key"]}
BELOW = [f"{group} {command}" for group, commands in GROUPS.items() for command in commands]
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


def sections():
    """The part of docs/reference.md about each command, and about each command below it."""
    parts = re.split(r"^####? snapboot ([a-z ]+)$", REFERENCE.split("## How `snapboot explain`")[0], flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_the_reference_is_up_to_date():
    assert REFERENCE == reference.filled_in(REFERENCE), "run: tools/reference.py --write"


@pytest.mark.parametrize("command", [*COMMANDS, *BELOW])
def test_every_option_is_listed(command):
    items = re.findall(r"^- ((?:`-[^`]*`(?:, )?)+): \S", sections()[command], re.MULTILINE)
    listed = {", ".join(re.findall(r"`(--?[a-z][a-z-]*)", item)) for item in items}
    assert listed == options(*command.split())


def test_every_command_is_there():
    help = support.run([support.SNAPBOOT, "--help"], log=False).out
    listed = re.findall(r"^  ([a-z]+) ", help.split("Commands:")[1].split("Options:")[0], re.MULTILINE)
    assert sorted(listed) == sorted([*COMMANDS, *GROUPS, "help"])
    assert sorted(sections()) == sorted([*COMMANDS, *GROUPS, *BELOW])


def test_every_variable_has_its_row():
    texts = [text for facts in sources.product().values() for text in facts.texts()]
    texts += [text for facts in sources.front_ends().values() for text in facts.literals]
    # Variables of parts of the archive are put together; the help has them whole.
    texts += reference.sections().values()
    read = {name for text in texts for name in VARIABLE.findall(text)}
    rows = {name for text in (REFERENCE, PROTOCOL) for name in VARIABLE.findall(text)}
    assert read - OF_TESTS == rows
