"""A free-threaded Python, or another one whose objects begin otherwise than in the stable ABI, has no boot archive. Its programs run as
ever, also beside an ordinary Python with the same archive."""

import os
import shutil
import subprocess
import sys

import pytest
from common import installed, pythons, support
from common.waiting import settle

from . import starts

PROGRAM = """\
import argparse, csv, email.message, json, re, sys
print(json.loads('[1, {"a": 2.5}]'), re.sub("a+", "b", "caat"), sys.argv[1:], any(hasattr(it, "is_of_archive") for it in sys.meta_path))
"""
SITE = "lib/python3.13t/site-packages"


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    settle()
    return path


@pytest.fixture
def free_threaded():
    return pythons.free_threaded() or pytest.skip("there is no free-threaded Python here")


@pytest.fixture
def ordinary_build():
    """The Python that runs the tests."""
    return support.PYTHON if "t" not in sys.abiflags else pytest.skip("the Python that runs the tests is a free-threaded one")


def started(command, python, program, archive):
    """The Result of an ordinary start, and of one with an archive, which says why it has none."""
    words = [python, program, "word"]
    env = support.environment(SNAPBOOT_ARCHIVE=os.fspath(archive), SNAPBOOT_LOG="1")
    return support.run(words, log=False), support.run([command, "run", "--no-freeze", "--", *words], env=env, log=False)


@pytest.fixture
def other_objects(tmp_path):
    """A command that expects a larger head of each object."""
    top = tmp_path / "installation"
    command = installed.copy(top)
    shutil.copy(support.launcher().parent / "libsnapboot_python.so", top / "libexec/snapboot")
    installed.edit(top, "python/snapboot/archive/run/sitecustomize.py", "\nHEAD = 16\n", "\nHEAD = 32\n")
    return command


def test_a_python_of_other_objects_has_no_archive(ordinary_build, other_objects, program, tmp_path):
    archive = tmp_path / "boot.archive"
    for _ in range(2):
        ordinary, result = started(other_objects, ordinary_build, program, archive)
        assert (result.status, result.out.replace("True", "False")) == (0, ordinary.out), result
        assert "no archive: this is no ordinary build: its objects begin with 16 bytes" in result.err, result
    assert not archive.exists()


def test_no_archive_is_built_for_a_python_of_other_objects(ordinary_build, other_objects, program, tmp_path):
    archive = tmp_path / "boot.archive"
    result = support.run([other_objects, "archive", "build", "-o", archive, tmp_path, "--", ordinary_build], log=False)
    assert result.status == 1 and "there is no archive to fill: this is no ordinary build" in result.err, result
    assert not archive.exists()


@pytest.mark.parametrize("ordinary", [False, True])
def test_an_environment_of_a_free_threaded_build_is_not_enabled(ordinary, tmp_path):
    """One that also has an ordinary Python of that version is enabled for that alone."""
    (tmp_path / "pyvenv.cfg").write_text("")
    (tmp_path / SITE).mkdir(parents=True)
    if ordinary:
        (tmp_path / "lib/python3.13/site-packages").mkdir(parents=True)
    result = support.run([support.SNAPBOOT, "enable", tmp_path], log=False)
    if ordinary:
        assert result.status == 0 and "python3.13t" not in result.out, result
    else:
        assert result.status == 2 and "free-threaded build of CPython, which has no boot archive yet" in result.err, result
    assert not list((tmp_path / SITE).iterdir())
    # What an older version of Snapboot has left there can be removed.
    file = tmp_path / SITE / "00_snapboot.pth"
    file.write_text("")
    assert support.run([support.SNAPBOOT, "disable", tmp_path], log=False).status == 0 and not file.exists()


@pytest.mark.parametrize("gil", [[], ["-X", "gil=1"]], ids=" ".join)
def test_a_free_threaded_python_has_no_archive(gil, free_threaded, program, tmp_path):
    archive = tmp_path / "boot.archive"
    words = [free_threaded, *gil, program, "word"]
    ordinary = support.run(words, log=False)
    env = support.environment(SNAPBOOT_ARCHIVE=os.fspath(archive), SNAPBOOT_LOG="1")
    result = support.run([support.SNAPBOOT, "run", "--no-freeze", "--", *words], env=env, log=False)
    assert (result.status, result.out.replace("True", "False")) == (0, ordinary.out), result
    assert "no archive: this is a free-threaded build" in result.err, result
    assert not archive.exists()
    built = support.run([support.SNAPBOOT, "archive", "build", "-o", archive, tmp_path, "--", free_threaded], log=False)
    assert built.status == 1 and "there is no archive to fill: this is a free-threaded build" in built.err, built
    assert not archive.exists()


def test_an_archive_of_an_ordinary_build_is_left_alone(ordinary_build, free_threaded, program, tmp_path):
    """Though both have the same cache tag or magic number, neither gets the other's code."""
    archive = tmp_path / "boot.archive"
    for _ in range(2):
        ordinary, result = started(support.SNAPBOOT, ordinary_build, program, archive)
        assert (result.status, result.out.replace("True", "False")) == (0, ordinary.out), result
    before = archive.read_bytes()
    ordinary, result = started(support.SNAPBOOT, free_threaded, program, archive)
    assert (result.status, result.out.replace("True", "False")) == (0, ordinary.out), result
    assert archive.read_bytes() == before


def test_a_free_threaded_environment_is_not_enabled(free_threaded, program, tmp_path):
    environment = tmp_path / "venv"
    subprocess.run([free_threaded, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = environment.glob("lib/python3.*t/site-packages")
    result = support.run([support.SNAPBOOT, "enable", environment], log=False)
    assert result.status == 2 and "free-threaded build" in result.err and not list(site.glob("snapboot*")), result
    # Enabled by an older version of Snapboot, say: it starts as before.
    run = starts.RUN / "sitecustomize.py"
    names = f"{{'__name__': 'snapboot.archive.run', '__file__': {os.fspath(run)!r}}}"
    line = f"import sys; n = {names}; exec(open(n['__file__']).read(), n); n['switch_on_here']()\n"
    (site / "enabled.pth").write_text(line)
    env = support.environment(SNAPBOOT_ARCHIVE=os.fspath(tmp_path / "boot.archive"), SNAPBOOT_LOG="1")
    started = support.run([environment / "bin/python", program], env=env, log=False)
    assert started.status == 0 and "no archive: this is a free-threaded build" in started.err, started
    assert not (tmp_path / "boot.archive").exists()
