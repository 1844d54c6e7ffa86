"""`snapboot enable`: every program of a virtual environment has its boot archive, until `snapboot disable`."""

import os
import re
import shutil
import subprocess

import pytest
from common import support
from common.waiting import settle

# The codec by which `site` reads .pth files is there from CPython 3.13 on: see docs/limits/archive.md.
PROGRAM = """\
import argparse, asyncio, csv, email.message, json
import sys
print(len(set(sys.modules) - {'encodings.utf_8_sig'}), sys.argv)
"""
COUNTED = re.compile(r"snapboot: (\d+) hit, (\d+) miss")
FILE = "00_snapboot.pth"


class Environment:
    """A virtual environment, and a home for its archives."""

    def __init__(self, folder):
        self.folder, self.home = folder / "venv", folder / "home"
        self.home.mkdir()
        subprocess.run([support.PYTHON, "-m", "venv", "--without-pip", self.folder], check=True)
        (folder / "main.py").write_text(PROGRAM)
        self.program = folder / "main.py"
        (self.site,) = self.folder.glob("lib/python3.*/site-packages")

    def snapboot(self, *words, **variables):
        return support.run([support.SNAPBOOT, *words], env=self.variables(**variables), log=False)

    def variables(self, **variables):
        return support.environment(HOME=os.fspath(self.home), **{"SNAPBOOT_STORE": "off", **variables})

    def start(self, *words, **variables):
        """How a start ended, without the line about the archive, and how much that has served; None: there was none."""
        words = words or [os.fspath(self.program)]
        result = support.run([self.folder / "bin/python", *words], env=self.variables(SNAPBOOT_STATS="1", **variables), log=False)
        told = COUNTED.search(result.err)
        return (result.status, result.out), told and int(told[1])


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path)


def test_enabled_and_disabled(environment):
    ordinary, served = environment.start()
    assert ordinary[0] == 0 and served is None
    settle()
    told = environment.snapboot("enable", environment.folder)
    assert told.status == 0 and FILE in told.out, told
    assert environment.start() == (ordinary, 0)
    warm, served = environment.start()
    assert warm == ordinary and served > 50
    # By `snapboot run`, too: there is one archive and one finder.
    again = environment.snapboot("run", "--no-freeze", "--", environment.folder / "bin/python", environment.program)
    assert (again.status, again.out) == ordinary, again
    assert environment.start("-S", os.fspath(environment.program))[1] is None
    assert environment.start(SNAPBOOT_ARCHIVE="off") == (ordinary, None)
    told = environment.snapboot("disable", environment.folder)
    assert told.status == 0 and "removed" in told.out, told
    assert not (environment.site / FILE).exists()
    assert environment.start() == (ordinary, None)
    assert environment.snapboot("disable", environment.folder).status == 0


def test_the_active_one(environment):
    assert environment.snapboot("enable", "-q", VIRTUAL_ENV=os.fspath(environment.folder)).out == ""
    assert (environment.site / FILE).exists()
    assert environment.snapboot("disable", CONDA_PREFIX=os.fspath(environment.folder)).status == 0
    assert not (environment.site / FILE).exists()


@pytest.mark.parametrize("words", [["enable"], ["disable"]], ids=" ".join)
def test_what_is_no_environment(words, environment, tmp_path):
    refused = environment.snapboot(*words)
    assert refused.status == 2 and "No virtual environment is active" in refused.err, refused
    refused = environment.snapboot(*words, tmp_path)
    assert refused.status == 2 and "should be a virtual environment" in refused.err, refused


def test_snapboot_taken_away(environment):
    """An environment goes on as ever, silently."""
    ordinary, _ = environment.start()
    environment.snapboot("enable", environment.folder)
    file = environment.site / FILE
    file.write_text(file.read_text().replace("/sitecustomize.py", "/taken_away.py"))
    assert environment.start() == (ordinary, None)


def test_frozen(environment, tmp_path):
    """An image of a program of the environment has a finder of the archive after the thaw, as an ordinary start has."""
    environment.snapboot("enable", environment.folder)
    environment.start()
    image = tmp_path / "main.img"
    frozen = environment.snapboot("freeze", "-q", "-o", image, "--", environment.folder / "bin/python", environment.program)
    assert frozen.status == 0, frozen
    code = "import sys; print(any(hasattr(finder, 'is_of_archive') for finder in sys.meta_path))"
    environment.program.write_text(code)
    shutil.rmtree(environment.home)
    frozen = environment.snapboot("freeze", "-q", "-o", image, "--", environment.folder / "bin/python", environment.program)
    assert frozen.status == 0, frozen
    thawed = support.run([image], env=environment.variables(SNAPBOOT_ON_STALE="error"), log=False)
    assert (thawed.status, thawed.out) == (0, "True\n"), thawed
