"""The table of require's semantics (require/*.toml): with the boot archive every case prints what it prints without.

A case is a directory of files and a program. It is started the ordinary way in one copy of the directory and with the archive in
another, as often: the first start fills the archive, the others are served by it; after `change` has been run in both, three more.

Keys: name, shows, program; files, setup (shell, in the directory), load_path (-I), options, gems (with RubyGems on the JVMs, where
it is slow to start), change (shell), writes (the program itself changes files), only (these Rubies), unprivileged (root may not
read all files either; CRuby alone), differs ({ruby = why}).
"""

import dataclasses
import difflib
import pathlib
import re
import subprocess
import time
import tomllib

import pytest

from .rubies import KINDS, SETUP, archive_options, environment

TABLE = pathlib.Path(__file__).parent / "require"
PRELUDE = (TABLE / "prelude.rb").read_text()
# Addresses; the runtime's own lines of a backtrace; where CRuby says that a file requires itself (in RubyGems, if that is in between, and
# else in the file); what a method in Java is called in errors; what a frozen array held.
UNIMPORTANT = (
    r"0x[0-9a-f]+",
    r"^\tfrom (<internal:.*|\S+:in +[`']require')\n",
    r"<internal:[^>]*>\S*",
    r"^\S*:? warning: \S*:? (?=warning: loading in progress)",
    r"`require': (?=wrong)",
    r"(?<=frozen Array: )\[.*",
)
SETTLED_SECONDS = 0.05  # what has only just changed is not stored


@dataclasses.dataclass(frozen=True)
class Case:
    """One case of the table; the module says what the keys are."""

    name: str
    shows: str
    program: str
    files: dict = dataclasses.field(default_factory=dict)
    setup: str = ""
    load_path: tuple = ()
    options: tuple = ()
    gems: bool = False
    change: str = ""
    writes: bool = False
    only: tuple = ()
    unprivileged: bool = False
    differs: dict = dataclasses.field(default_factory=dict)

    def write(self, directory):
        """Make the case's directory."""
        for name, text in {**self.files, "main.rb": PRELUDE + self.program}.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        shell(self.setup, directory)

    def words(self, ruby_name, directory):
        """The command line that starts it, without the archive."""
        load_path = [word for name in self.load_path for word in ("-I", directory / name)]
        gems = ["--disable-gems"] if ruby_name != "cruby" and not self.gems else []
        return [*gems, *load_path, *self.options], ["main.rb"]


def cases():
    """All cases of the table."""
    for path in sorted(TABLE.glob("*.toml")):
        for case in tomllib.loads(path.read_text())["case"]:
            yield pytest.param(Case(**case), id=f"{path.stem[3:]}-{case['name']}")


def shell(script, directory):
    """Run a case's shell script in its directory, then wait until times can tell the next change from it."""
    if script:
        subprocess.run(["sh", "-ec", script], cwd=directory, env=environment(), check=True, timeout=60)
    time.sleep(SETTLED_SECONDS)


def shown(result, directory):
    """What a boot printed and how it ended, with its directory by another name and without what is UNIMPORTANT."""
    text = str(result).replace(str(directory), "DIR").replace(directory.name, "DIR")
    for pattern in UNIMPORTANT:
        text = re.sub(pattern, "", text, flags=re.MULTILINE)
    return text


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("case", list(cases()))
def test_require(case, kind, rubies, tmp_path):
    only = case.only or ("cruby",) * case.unprivileged
    if only and kind.name not in only:
        pytest.skip(f"concerns {', '.join(only)}")
    if kind.name in case.differs:
        pytest.skip(case.differs[kind.name])
    if not SETUP.exists():
        pytest.skip("this tree has no ruby/lib/snapboot/setup.rb")
    ruby = rubies(kind.name)
    boot = ruby.boot_unprivileged if case.unprivileged else ruby.boot
    plain, archived = tmp_path / "ordinary", tmp_path / "archived"
    for directory in (plain, archived):
        directory.mkdir()
        case.write(directory)
    switch, variables = archive_options(kind, tmp_path)
    for change in ("", case.change) if case.change else ("",):
        if change:
            for directory in (plain, archived):
                shell(change, directory)
        expected = None
        for start in ("filling", "served", "served again"):
            if expected is None or case.writes:
                before, after = case.words(kind.name, plain)
                expected = shown(boot(plain, [*before, *after]), plain)
            before, after = case.words(kind.name, archived)
            got = shown(boot(archived, [*before, *switch, *after], **variables), archived)
            moment = f"{start}{' after the change' if change else ''}"
            different = difflib.unified_diff(expected.splitlines(), got.splitlines(), "ordinary", moment, lineterm="")
            assert got == expected, "\n" + "\n".join(different)
