"""What imports mean: each program prints the same in an ordinary start, while its archive is filled, and when it serves everything.

The newest interpreter runs all of them, each fourth also in a process that was thawed; each other one runs every sixteenth.
SNAPBOOT_PYTHONS=all: all on each, and all thawed.
"""

import importlib
import os
import pathlib
import shutil
import subprocess

import pytest
from common.waiting import settle

from . import cases as table
from . import starts

pytestmark = pytest.mark.sample(5)

TABLE = {}
for path in sorted(pathlib.Path(table.__file__).parent.glob("[a-z]*.py")):
    module = importlib.import_module(f"{table.__name__}.{path.stem}")
    TABLE.update({f"{path.stem}-{name}": value for name, value in module.CASES.items()})


def is_whole():
    """Whether all cases run on every interpreter, and in a thawed process, too."""
    return os.environ.get("SNAPBOOT_PYTHONS") == "all"


def newest():
    """The version of the newest interpreter."""
    return max(starts.interpreters(), default=None)


def rows():
    """Which case runs on which interpreter."""
    rows = []
    for version in starts.interpreters():
        for number, (name, value) in enumerate(TABLE.items()):
            if value.since <= version <= value.until and (is_whole() or version == newest() or number % 16 == version[1] % 16):
                rows.append(pytest.param(version, name, id="%d.%d-%s" % (*version, name)))
    return rows


@pytest.mark.parametrize("version, name", rows())
def test_same(version, name, tmp_path):
    row, python = TABLE[name], starts.interpreters()[version]
    folder = tmp_path / "app"
    started = starts.Starts(python, folder, **row.env)

    def fresh():
        shutil.rmtree(folder, ignore_errors=True)
        starts.write(folder, row.files)
        if row.prepare:
            done = subprocess.run([python, "-I", "-c", row.prepare], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        settle()

    def start(how):
        if row.between:
            subprocess.run(["sh", "-ec", row.between], cwd=folder, check=True)
        return [how(words, cwd=folder / row.cwd, input=row.stdin.encode()) for words in row.starts()]

    fresh()
    ordinary = [start(started.ordinary) for _ in (1, 2)]
    assert row.shows in "".join(result.out + result.err for result in ordinary[0]), ordinary[0]
    compared = [(ordinary[0], started.with_archive)] + [(ordinary[1], started.with_archive)] * 2
    # An ImportError of later CPythons than 3.13.0 has a hint that none has after a thaw: see docs/limits/visible.md.
    is_the_same = name != "modules-circular" or "(consider renaming" not in ordinary[0][0].out
    if version == newest() and is_the_same and name.startswith("modules") and (is_whole() or list(TABLE).index(name) % 4 == 0):
        fresh()
        not_thawed = [start(started.not_thawed) for _ in (1, 2)]
        compared[2:] = [(not_thawed[1], started.thawed)] * 2
    fresh()
    for number, (expected, way) in enumerate(compared, 1):
        for one, other in zip(expected, start(way), strict=True):
            starts.same(one, other, f"start {number}, {way.__name__}")
