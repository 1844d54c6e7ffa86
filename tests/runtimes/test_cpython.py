"""CPython's own tests inside a thawed interpreter: each test has the outcome that it has in an ordinary one.

cpython/files.toml lists the files, cpython/differences.toml the differences that are known, with their reasons. Runs on every
CPython from 3.8 on that has its tests installed; `make test RUNTIME_TESTS=all` runs all files on each, whole files and many more of them.
"""

import dataclasses
import functools
import pathlib
import subprocess

import pytest
from common import pythons

from . import comparison

pytestmark = pytest.mark.sample(6)

RUNNER = str(comparison.HERE / "cpython/runner.py")
FILES = comparison.table("cpython/files.toml")
DIFFERENCES = comparison.table("cpython/differences.toml")["difference"]
PRELOADED = (3, 11)  # has one more image, with what all the tests import already loaded
ENOUGH = 40  # files on each CPython, at least


@functools.cache
def interpreters():
    """(major, minor) -> path of an interpreter and the directory of its tests: pyenv's, else those on the PATH."""
    found = {}
    for path in pythons.candidates():
        code = "import sys, test.test_dict; print(*sys.version_info[:2], sys.abiflags + '.', test.__path__[0])"
        told = subprocess.run([path, "-c", code], capture_output=True, text=True, env=comparison.environment())
        words = told.stdout.split(maxsplit=3)
        if told.returncode == 0 and words[2] == ".":
            version = int(words[0]), int(words[1])
            if version in pythons.VERSIONS:
                found[version] = str(path), pathlib.Path(words[3].strip())
    return found


@dataclasses.dataclass(frozen=True)
class Case:
    """One file of tests on one CPython."""

    version: tuple
    name: str

    def __str__(self):
        return f"{self.version[0]}.{self.version[1]}-{self.name}"

    def arguments(self):
        selected = FILES["selected"].get(self.name, {})
        patterns = [] if comparison.ALL else [
            word for option in ("only", "without") if option in selected for word in (f"--{option}", *selected[option])
        ]
        return [RUNNER, "RECORD", self.name, *patterns]

    def accepted(self):
        number = "%d.%d" % self.version
        return [d["test"] for d in DIFFERENCES if number in d.get("versions", [number])]

    def compare(self, images):
        interpreter, _ = interpreters()[self.version]
        made = [images.get(f"python{self.version[0]}.{self.version[1]}", [interpreter])]
        if self.version == PRELOADED:
            made.append(images.get("preloaded", [interpreter], ("test.support", "unittest")))
        return comparison.compare(interpreter, made, self.arguments(), self.accepted())


def cases():
    names = [*FILES["quick"], *FILES["selected"], *(FILES["more"] if comparison.ALL else [])]
    for version, (_, folder) in interpreters().items():
        paths = {name: folder / name.replace(".", "/") for name in names}
        there = [name for name, path in paths.items() if path.is_dir() or path.with_suffix(".py").exists()]
        # All files on one CPython; on the others one half or the other, and as many more as make it ENOUGH.
        is_whole = comparison.ALL or version == PRELOADED
        some = there if is_whole else there[version[1] % 2 :: 2]
        more = [name for name in there if name not in some][: max(0, ENOUGH - len(some))]
        for name in some + more:
            yield Case(version, name)


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_same_outcomes(case, workers):
    result = workers.result(case)
    assert result.differences == [], result.said[-4000:]
    assert result.outcomes, f"{case.name} ran no test:\n{result.said[-2000:]}"


@pytest.mark.parametrize("version", pythons.VERSIONS, ids="{0[0]}.{0[1]}".format)
def test_enough_files(version):
    if version not in interpreters():
        pytest.skip("CPython %d.%d with its tests is not installed here (pyenv install, or libpython3-testsuite)" % version)
    assert len([case for case in cases() if case.version == version]) >= ENOUGH


def test_reasons_are_given():
    for difference in DIFFERENCES:
        assert difference["reason"].endswith("."), difference
