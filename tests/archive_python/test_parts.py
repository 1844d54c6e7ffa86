"""Each part of Python's boot archive can be switched off: the program does the same then, and that part of the archive stays empty."""

import itertools
import json
import subprocess

import pytest
from common import pythons, support
from common.waiting import settle

from . import programs, starts

PARTS = ("code", "lookups", "patterns", "data", "metadata", "collector", "exit")
BY_KIND = {"code": "code", "directory": "lookups", "memo": "patterns"}


@pytest.fixture
def program(tmp_path):
    return programs.made(tmp_path)


def parts_in(archive):
    """Which parts an archive has something of."""
    if not archive.exists():
        return set()
    done = subprocess.run([support.SNAPBOOT, "archive", "list", "--json", archive], capture_output=True, text=True, check=True)
    return {BY_KIND[entry["kind"]] for entry in json.loads(done.stdout)["entries"]}


def switched_off(parts):
    return {f"SNAPBOOT_ARCHIVE_{part.upper()}": "off" for part in parts}


def test_combinations(program):
    """Those that lie in the archive in every combination; the others one by one, and all together."""
    ordinary = program.ordinary(["main.py"])
    ordinary = program.ordinary(["main.py"])
    assert ordinary.status == 3 and "last words" in ordinary.out, ordinary
    settle()
    stored = [off for number in range(4) for off in itertools.combinations(PARTS[:3], number)]
    for off in [*stored, *((part,) for part in PARTS[3:]), PARTS]:
        program.archive.unlink(missing_ok=True)
        for start in ("filling", "served"):
            starts.same(ordinary, program.with_archive(["main.py"], switched_off(off)), f"{off} {start}")
        assert parts_in(program.archive) == set(PARTS[:3]) - set(off), off


def test_what_is_there_is_not_used(program):
    program.warm(["main.py"])
    _, counts = program.counted(["main.py"])
    assert counts["hits"] > 10 and not counts["misses"] and not counts["stale"], counts
    result = program.with_archive(["main.py"], {**switched_off(PARTS), "SNAPBOOT_STATS": "1"})
    assert "snapboot: 0 hit, " in result.err and " 0 stale, 0 revalidated" in result.err, result


@pytest.mark.parametrize("value", ["0", "off"])
def test_values(value, program):
    """`off` and `0` switch off; what is not known is named, and counts as not set."""
    settle()
    program.ordinary(["main.py"])
    result = program.with_archive(["main.py"], {"SNAPBOOT_ARCHIVE_PATTERNS": value, "SNAPBOOT_LOG": "1"})
    assert "snapboot" not in result.err, result
    settle()
    result = program.with_archive(["main.py"], {"SNAPBOOT_ARCHIVE_PATTERNS": value, "SNAPBOOT_LOG": "1"})
    assert parts_in(program.archive) == {"code", "lookups"}
    result = program.with_archive(["main.py"], {"SNAPBOOT_ARCHIVE_PATTERNS": "no", "SNAPBOOT_LOG": "1"})
    assert "snapboot: SNAPBOOT_ARCHIVE_PATTERNS was expected to be on or off, not no: it is ignored\n" in result.err
    assert parts_in(program.archive) == {"code", "lookups", "patterns"}


@pytest.mark.parametrize("version", pythons.VERSIONS)
@pytest.mark.parametrize("library", ["re", "json"])
def test_it_is_opened_in_the_middle_of_any_import(library, version, tmp_path):
    """Also of the modules that a part waits for: most scripts of installed tools begin with `import re`."""
    python = starts.interpreters().get(version) or pytest.skip("there is no Python %d.%d" % version)
    own = [f"own{number}" for number in range(6)]
    files = {f"{name}.py": "" for name in own}
    # What the libraries import first is there before the archive is watching, as where a Debian package has a .pth file.
    files["sitecustomize.py"] = "import collections, copyreg, enum, functools\n"
    files |= {f"{count}.py": f"import {', '.join([*own[:count], library])}\nprint({library})\n" for count in range(7)}
    starts.write(tmp_path / "program", files)
    program = starts.Starts(python, tmp_path / "program", SNAPBOOT_LOG="1", PYTHONPATH=str(tmp_path / "program"))
    for count in range(7):
        program.compared([f"{count}.py"], f"behind {count} imports")


def test_no_archive_at_all(program):
    program.warm(["main.py"])
    program.compared(["main.py"], "off", times=1)
    result = program.with_archive(["main.py"], {"SNAPBOOT_ARCHIVE": "off", "SNAPBOOT_LOG": "1"})
    assert "snapboot: no archive: SNAPBOOT_ARCHIVE is off" in result.err, result
