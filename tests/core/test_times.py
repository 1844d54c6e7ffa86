"""A freeze says which times of its own the program keeps: each start of the image has them."""

import pytest

from . import support
from .languages import PYTHON, RUBY, names

# For each language what a preload keeps, and by what name that is told.
KEPT = {
    "seconds": (PYTHON, "import time\nSTART = time.time()", "boot.START"),
    "nanoseconds": (PYTHON, "import time\nSTART = time.time_ns()", "boot.START"),
    "another clock": (PYTHON, "import time\nSTART = time.monotonic()", "boot.START"),
    "a date": (PYTHON, "import datetime\nSTART = datetime.datetime.now()", "boot.START"),
    "in a class": (PYTHON, "import datetime\nclass A:\n    at = datetime.datetime.now(datetime.timezone.utc)", "boot.A.at"),
    "Ruby's time": (RUBY, "START = Time.now", "START"),
    "Ruby's seconds": (RUBY, "module A; @at = Time.now.to_f; end", "A@at"),
    "Ruby's other clock": (RUBY, "class A; AT = Process.clock_gettime(Process::CLOCK_MONOTONIC); end", "A::AT"),
}
# What is no time of the freeze, however it looks.
OTHER = {
    "large numbers": (PYTHON, "A, B, C = 2**1100, -(2**70), 0"),
    "numbers": (PYTHON, "import datetime\nA, B, C, D = 30.0, 10**18, datetime.datetime.min, datetime.datetime.max"),
    "read and thrown away": (PYTHON, "import time\ntime.time()"),
    "the time of a log": (PYTHON, "import logging"),
    "Ruby's numbers": (RUBY, "A, B, C = 30.0, 10**18, Time.at(0)"),
}


def frozen(language, folder, source):
    env, path = language.write(folder, source)
    preload = "boot" if language is PYTHON else str(path.with_suffix(""))
    return support.freeze(folder / "x.img", [language.program], "--preload", preload, env=env)


@pytest.mark.parametrize("name", names(KEPT))
def test_a_time_that_is_kept_is_told(name, tmp_path):
    language, source, told = KEPT[name]
    result = frozen(language, tmp_path, source)
    assert result.status == 0, result
    assert f"the time of the freeze is kept in {told};" in result.err, result


@pytest.mark.parametrize("name", names(OTHER))
def test_nothing_else_is(name, tmp_path):
    result = frozen(*OTHER[name][:1], tmp_path, OTHER[name][1])
    assert result.status == 0 and "is kept in" not in result.err, result
