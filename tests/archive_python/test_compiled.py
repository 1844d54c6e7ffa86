"""Snapboot's own Python files are compiled when it is installed: many a start may not write compiled files beside them."""

import os
import shutil
import subprocess
import sys

import pytest
from common import pythons, support

from . import starts

# Has the archive opened, and what it has for regular expressions, parsers and collections.
PROGRAM = "import argparse, csv, json, logging, importlib.metadata\nimportlib.metadata.entry_points()\n"
RELEASE = support.ROOT / "target/release"


class Tree:
    """Snapboot, as `make install` leaves it, without compiled files."""

    def __init__(self, folder):
        self.folder = folder
        library = folder / "libexec/snapboot"
        self.python = library / "python"
        shutil.copytree(support.ROOT / "python", self.python, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "bin").mkdir()
        shutil.copy(RELEASE / "snapboot", folder / "bin")
        for name in ("snapboot-launcher", "snapboot-entry", "libsnapboot_python.so"):
            shutil.copy(RELEASE / name, library)

    def compiled_at_start(self, python):
        """Which of its files a start compiles. The start writes no compiled files, as where it may not."""
        run = self.python / "snapboot/archive/run"
        variables = {"PYTHONPATH": os.fspath(run), "SNAPBOOT_ARCHIVE": os.fspath(self.folder / "archive"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = support.run([python, "-v", "-c", PROGRAM], env=support.environment(**variables), log=False)
        assert done.status == 0, done
        told = [line for line in done.err.splitlines() if os.fspath(self.python) in line]
        assert any(line.startswith("# code object from ") for line in told), told
        files = {line.rpartition(" ")[2].strip("'") for line in told if line.startswith("# code object from ")}
        return {os.path.basename(name) for name in files if name.endswith(".py")}


def compile_in(tree):
    subprocess.run([sys.executable, support.ROOT / "tools/compiled.py", tree.python], check=True)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("tree"))


@pytest.mark.parametrize("version", pythons.VERSIONS)
def test_installed(version, tree):
    python = starts.interpreters().get(version) or pytest.skip("there is no Python %d.%d" % version)
    own = {"sitecustomize.py", "imports.py", "collector.py", "patterns.py", "metadata.py"}
    if not list(tree.python.rglob("*.pyc")):
        assert tree.compiled_at_start(python) >= own
        compile_in(tree)
    assert tree.compiled_at_start(python) == set()


def test_edited_after_that(tmp_path):
    """A compiled file is of its source, whatever the source's time."""
    tree = Tree(tmp_path)
    python = starts.interpreters()[max(starts.interpreters())]
    compile_in(tree)
    edited = tree.python / "snapboot/archive/imports.py"
    before = edited.stat()
    edited.write_text(edited.read_text().replace("PLACES", "PIECES"))
    os.utime(edited, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert tree.compiled_at_start(python) == {"imports.py"}


def test_by_archive_build(tmp_path):
    tree = Tree(tmp_path)
    code = f"import runpy; runpy.run_path({os.fspath(tree.python / 'snapboot/archive/build.py')!r})['compile_own_files']()"
    subprocess.run([support.PYTHON, "-B", "-c", code], check=True)
    assert tree.compiled_at_start(support.PYTHON) == set()


def test_by_enable(tmp_path):
    tree = Tree(tmp_path / "tree")
    subprocess.run([support.PYTHON, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    env = support.environment(PYTHONDONTWRITEBYTECODE="1")
    assert support.run([tree.folder / "bin/snapboot", "enable", tmp_path / "venv"], env=env, log=False).status == 0
    assert tree.compiled_at_start(support.PYTHON) == set()
