"""CPython's own tests with the boot archive on: each test has the outcome that it has without it, while the archive is filled and warm.

Two files on each CPython that has its tests installed; `make test RUNTIME_TESTS=all` runs all of them. A difference counts when it shows
each time: some tests depend on the machine's load.
"""

import dataclasses

import pytest
from runtimes import comparison, test_cpython

from . import starts

FILES = [
    "test_importlib", "test_import", "test_pkgutil", "test_runpy", "test_inspect", "test_zipimport", "test_marshal", "test_code",
    "test_traceback", "test_re", "test_gc", "test_atexit", "test_weakref", "test_warnings", "test_frozen", "test_compileall",
    "test_modulefinder",
]  # fmt: skip
SAMPLE = ["test_pkgutil", "test_code"]
SECONDS = 300


@dataclasses.dataclass(frozen=True)
class Case:
    """One file of tests on one CPython."""

    version: tuple
    name: str

    def __str__(self):
        return "%d.%d-%s" % (*self.version, self.name)


def cases():
    names = FILES if comparison.ALL else SAMPLE
    for version, (_, folder) in test_cpython.interpreters().items():
        for name in names:
            path = folder / name
            if path.is_dir() or path.with_suffix(".py").exists():
                yield Case(version, name)


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_same_outcomes(case, tmp_path):
    python, _ = test_cpython.interpreters()[case.version]
    words = [python, test_cpython.RUNNER, "RECORD", case.name]
    place = tmp_path / "archives"
    place.mkdir(mode=0o700)
    switch = ["env", f"PYTHONPATH={starts.RUN}", f"SNAPBOOT_ARCHIVE={place / 'boot.archive'}", "SNAPBOOT_LOG=0"]
    ordinary = comparison.run(words, SECONDS)
    assert ordinary.outcomes, ordinary.said[-2000:]
    for start in ("cold", "warm"):
        remaining = None
        for attempt in range(comparison.ATTEMPTS):
            if attempt:
                ordinary = comparison.run(words, SECONDS)
            started = comparison.run([*switch, *words], SECONDS)
            found = comparison.differences(ordinary, started, ())
            remaining = found if remaining is None else {key: value for key, value in found.items() if key in remaining}
            if not remaining:
                break
        assert not remaining, (start, remaining, started.said[-4000:])
