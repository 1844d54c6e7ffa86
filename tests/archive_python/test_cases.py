"""What imports mean: each program prints the same in an ordinary start, while its archive is filled, and when it serves everything.

The newest interpreter runs all of them, each other one every sixteenth; SNAPBOOT_PYTHONS=all: all on each.
"""

import importlib
import os
import pathlib
import shutil
import subprocess

import pytest

from . import cases as table
from . import starts

TABLE = {}
for path in sorted(pathlib.Path(table.__file__).parent.glob("[a-z]*.py")):
    module = importlib.import_module(f"{table.__name__}.{path.stem}")
    TABLE.update({f"{path.stem}-{name}": value for name, value in module.CASES.items()})


def rows():
    """Which case runs on which interpreter."""
    rows = []
    every = os.environ.get("SNAPBOOT_PYTHONS") == "all"
    newest = max(starts.interpreters(), default=None)
    for version in starts.interpreters():
        for number, (name, value) in enumerate(TABLE.items()):
            if value.since <= version <= value.until and (every or version == newest or number % 16 == version[1] % 16):
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
        starts.settle()

    def start(how):
        if row.between:
            subprocess.run(["sh", "-ec", row.between], cwd=folder, check=True)
        return [how(words, cwd=folder / row.cwd, input=row.stdin.encode()) for words in row.starts()]

    fresh()
    ordinary = [start(started.ordinary) for _ in (1, 2)]
    assert row.shows in "".join(result.out + result.err for result in ordinary[0]), ordinary[0]
    fresh()
    for number, expected in enumerate([ordinary[0], ordinary[1], ordinary[1]], 1):
        for one, other in zip(expected, start(started.with_archive), strict=True):
            starts.same(one, other, f"start {number} with the archive")
