"""`snapboot archive build` for a Python program: what it imports is served from its first start on, wherever its files have been copied."""

import json
import os
import subprocess

import pytest
from common import support
from common.waiting import settle

from . import starts

FILES = {
    "main.py": "import argparse, csv, json, own.part, wrong_only_if_run\nprint(own.part.NAME, __import__('sys').argv)\n",
    "own/__init__.py": "",
    "own/part.py": "NAME = __name__\n",
    "own/tests/test_it.py": "NAME = __name__\n",
    "own/wrong.py": "def (:\n",
    "wrong_only_if_run.py": "import sys\nif 'builder' in sys.argv[0]: raise SystemExit('it was run')\n",
}

# The rest of a start: it lies in the archive only once the program was run. Files of Python's own would change directories.
SERVED = {"SNAPBOOT_ARCHIVE_READONLY": "1", "SNAPBOOT_ARCHIVE_PATTERNS": "off", "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def program(tmp_path):
    folder = tmp_path / "program"
    starts.write(folder, FILES)
    settle()
    return starts.Starts(support.PYTHON, folder, tmp_path / "built.archive")


def build(program, *words, **variables):
    env = support.environment(HOME=os.fspath(program.place), **variables)
    return support.run([support.SNAPBOOT, "archive", "build", *words], env=env, cwd=program.folder, log=False)


def names(archive):
    done = subprocess.run([support.SNAPBOOT, "archive", "list", "--json", archive], capture_output=True, text=True, check=True)
    return {entry["name"] for entry in json.loads(done.stdout)["entries"] if entry["kind"] == "code"}


def test_what_is_built_is_served(program):
    built = build(program, "-o", program.archive, "--", support.PYTHON, "main.py")
    assert built.status == 0, built
    assert "1 files cannot be compiled" in built.err, built
    own = {name for name in names(program.archive) if name.startswith(os.fspath(program.folder))}
    assert {os.path.relpath(name, program.folder) for name in own} == {"main.py", "own/__init__.py", "own/part.py", "wrong_only_if_run.py"}
    assert not list(program.folder.rglob("*.pyc"))
    program.variables.update(SERVED)
    ordinary = program.ordinary(["main.py", "word"])
    result, counts = program.counted(["main.py", "word"])
    starts.same(ordinary, result, "the first start")
    assert counts["hits"] > 10 and (counts["misses"], counts["stale"]) == (0, 0), counts
    # As in a container that was built elsewhere.
    for path in [*program.folder.rglob("*"), program.folder]:
        os.utime(path, (2, 2))
    program.variables["SNAPBOOT_ARCHIVE_POLICY"] = "content"
    result, counts = program.counted(["main.py"])
    assert result.status == 0 and (counts["misses"], counts["stale"]) == (0, 0), (result, counts)
    (program.folder / "own/part.py").write_text("NAME = 'other.p'\n")
    result, counts = program.counted(["main.py"])
    assert "other.p" in result.out and counts["stale"] == 1, (result, counts)


def test_by_the_module(program):
    """`python -m snapboot.archive build` is for the Python that runs it."""
    env = support.environment(HOME=os.fspath(program.place), PYTHONPATH=os.fspath(support.ROOT / "python"))
    words = [support.PYTHON, "-m", "snapboot.archive", "build", "-o", program.archive, program.folder]
    done = support.run(words, env=env, cwd=program.folder, log=False)
    assert done.status == 0, done
    assert os.fspath(program.folder / "own/part.py") in names(program.archive)


def test_the_place_of_a_script(program):
    """Without -o it is where a start of that script looks."""
    home = program.place
    assert build(program, "--", support.PYTHON, "main.py").status == 0
    (archive,) = (home / ".cache/snapboot/archives").iterdir()
    program.archive = archive
    _, counts = program.counted(["main.py"])
    assert counts["hits"] > 10, counts


def test_mistakes(program):
    nowhere = build(program, "--", support.PYTHON)
    assert nowhere.status == 2 and "write it with -o FILE" in nowhere.err, nowhere
    other = build(program, "-o", program.archive, "--", "/bin/true")
    assert other.status == 2 and "should be a Ruby or Python command" in other.err, other
    assert not program.archive.exists()
