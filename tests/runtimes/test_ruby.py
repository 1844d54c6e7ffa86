"""A selection of tests for Ruby (Debian ships none of MRI's own): each has the same outcome thawed as in an ordinary start.

Run twice: from an image of the bare interpreter, and from one in which everything that the selection requires is loaded.
"""

import dataclasses
import re

import pytest

from . import comparison

RUBY = comparison.HERE / "ruby"
SELECTION = sorted((RUBY / "selection").glob("*.rb"))


# An image with these is fresh in one directory only, and each run has its own: RubyGems looks for a lockfile from the current directory
# upwards to find which Bundler it is to be, and Minitest 6 keeps a pattern with that directory.
FROM_THE_DIRECTORY = {"bundler", "minitest"}


def required():
    """The features that the files of the selection require at their top."""
    texts = [path.read_text() for path in [RUBY / "runner.rb", *SELECTION]]
    names = {name for text in texts for name in re.findall(r'^require "(.*)"', text, re.MULTILINE)}
    return sorted(names - FROM_THE_DIRECTORY)


@dataclasses.dataclass(frozen=True)
class Case:
    """One file of the selection. preload: with what it requires in the image."""

    name: str
    preload: bool

    def __str__(self):
        return f"{self.name}{'-preloaded' * self.preload}"

    def compare(self, images):
        ruby = comparison.workloads.prepare("ruby")["ruby"]
        image = images.get(f"ruby{'-preloaded' * self.preload}", [ruby], required() if self.preload else ())
        arguments = [str(RUBY / "runner.rb"), "RECORD", str(RUBY / f"selection/{self.name}.rb")]
        return comparison.compare(ruby, [image], arguments)


CASES = [Case(path.stem, preload) for preload in (False, True) for path in SELECTION]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_same_outcomes(case, workers):
    try:
        result = workers.result(case)
    except comparison.workloads.Unavailable as reason:
        pytest.skip(str(reason))
    assert result.differences == [], result.said[-4000:]
    failed = [name for name, outcome in result.outcomes.items() if outcome != "ok"]
    assert failed == [], f"fails in an ordinary start too:\n{result.said[-4000:]}"
