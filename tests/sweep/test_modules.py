"""A sample of the sweep over Python's library (SNAPBOOT_SWEEP=all: the whole of it), and whether the sweep sees what it looks for."""

import os

import pytest

from . import modules as sweeping
from .sweep import sample

SAMPLE = 16
# Modules that tell a thaw from an ordinary start, by what the sweep has to say of them.
MADE = {
    "made_same": ("same", "import sys\nNAMES = ('a', 1)\n"),
    "made_folder": ("same", "import os\nMADE = os.path.abspath(__file__)\n"),
    "made_state": ("different", "import snapboot\nSTATE = str(snapboot.state() == 'ordinary')\n"),
    "made_name": ("different", "import snapboot\nif snapboot.state() == 'ordinary':\n    A = 1\n"),
    "made_kept": ("kept", "import time\nBEGUN = time.monotonic_ns()\n"),
    "made_failing": ("failing", "raise ValueError('always')\n"),
}


@pytest.fixture
def sweep(tmp_path):
    return sweeping.Sweep(tmp_path)


def test_modules_of_the_standard_library(sweep):
    modules = sweep.modules()
    assert len(modules) > 300
    if os.environ.get("SNAPBOOT_SWEEP") != "all":
        modules = sample(modules, SAMPLE)
    outcomes = list(sweep.outcomes(modules, len(os.sched_getaffinity(0))))
    faults = [f"{outcome.module}: {outcome.kind}: {outcome.text}" for outcome in outcomes if not outcome.is_good]
    assert not faults, "\n".join(faults)
    assert any(outcome.kind == "same" for outcome in outcomes)


def test_what_the_sweep_sees(sweep, tmp_path):
    made = tmp_path / "made"
    made.mkdir()
    for name, (_, text) in MADE.items():
        (made / f"{name}.py").write_text(text)
    sweep.environment["PYTHONPATH"] = os.pathsep.join([str(made), str(sweeping.ROOT / "python")])
    assert {outcome.module: outcome.kind for outcome in sweep.outcomes(MADE, 2)} == {name: kind for name, (kind, _) in MADE.items()}
