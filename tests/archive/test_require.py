"""The table of require's semantics (require/*.toml): with the boot archive every case prints what it prints without.

A case is a directory of files and a program. It is started the ordinary way in one copy of the directory and with the archive in
another, as often: the first start fills the archive, the others are served by it; after `change` has been run in both, three more.

Keys: name, shows, program; files, setup (shell, in the directory), load_path (-I), options, gems (with RubyGems on the JVMs
and with the pure back end, where there is more to start), change (shell), writes (the program itself changes files), only (these
Rubies), unprivileged (root may not read all files either; CRuby alone), differs ({ruby = why}).
"""

import dataclasses
import difflib
import pathlib
import re
import subprocess
import tomllib

import pytest
from common.waiting import settle

from .rubies import KINDS, archive_options, environment

pytestmark = pytest.mark.sample(3)

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

    def words(self, kind, directory):
        """The command line that starts it, without the archive."""
        load_path = [word for name in self.load_path for word in ("-I", directory / name)]
        gems = [] if self.gems or str(kind) == "cruby-native" else ["--disable-gems"]
        return [*gems, *load_path, *self.options], ["main.rb"]


def cases():
    """All cases of the table, each with every Ruby that it concerns and that does not differ there, which the case says."""
    for path in sorted(TABLE.glob("*.toml")):
        for row in tomllib.loads(path.read_text())["case"]:
            case = Case(**row)
            for kind in KINDS:
                only = case.only or ("cruby" if case.unprivileged else kind.name,)
                if kind.name in only and kind.name not in case.differs:
                    yield pytest.param(case, kind, id=f"{path.stem[3:]}-{case.name}-{kind}")


def shell(script, directory):
    """Run a case's shell script in its directory, then wait until times can tell the next change from it."""
    if script:
        subprocess.run(["sh", "-ec", script], cwd=directory, env=environment(), check=True, timeout=600)
    settle()


def shown(result, directory):
    """What a boot printed and how it ended, with its directory by another name and without what is UNIMPORTANT."""
    text = str(result).replace(str(directory), "DIR").replace(directory.name, "DIR")
    for pattern in UNIMPORTANT:
        text = re.sub(pattern, "", text, flags=re.MULTILINE)
    return text


@pytest.mark.parametrize(("case", "kind"), list(cases()))
def test_require(case, kind, rubies, tmp_path):
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
                before, after = case.words(kind, plain)
                expected = shown(boot(plain, [*before, *after]), plain)
            before, after = case.words(kind, archived)
            got = shown(boot(archived, [*before, *switch, *after], **variables), archived)
            moment = f"{start}{' after the change' if change else ''}"
            different = difflib.unified_diff(expected.splitlines(), got.splitlines(), "ordinary", moment, lineterm="")
            assert got == expected, "\n" + "\n".join(different)
