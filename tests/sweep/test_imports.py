"""A sample of the sweep over imports with Python's archive (SNAPBOOT_SWEEP=all: the whole of it), and what the sweep sees."""

import os
import sys

import pytest

from .sweep import sample

sys.path.insert(0, os.path.dirname(__file__))

import imports as sweeping  # noqa: E402

SAMPLE = 10
SERVED = "[f for f in sys.meta_path if type(f).__name__ == 'Finder']"
# Modules that tell the starts apart, by what the sweep has to say of them.
MADE = {
    "made_same": ("same", "import sys, json\nNAMES = ('a', 1)\n"),
    "made_failing": ("same", "raise ValueError('always')\n"),
    "made_wrong": ("same", "def (\n"),
    "made_exit": ("same", "import os\nos._exit(3)\n"),
    "made_time": ("same", "import time\nBEGUN = time.monotonic_ns()\n"),
    "made_name": ("different", f"import sys\nif {SERVED}: A = 1\n"),
    "made_value": ("different", f"import sys\nA = len({SERVED})\n"),
    "made_output": ("different", f"import sys\nif {SERVED}: print('with', file=sys.stderr)\n"),
    "made_status": ("different", f"import os, sys\nif {SERVED}: os._exit(4)\n"),
    "made_modules": ("different", f"import sys\nif {SERVED}: import colorsys; del colorsys\n"),
    "made_warm": ("different", "import json, os\nif os.path.exists(os.environ['SNAPBOOT_ARCHIVE']): A = 1\n"),
}


@pytest.fixture
def sweep(tmp_path):
    return sweeping.Sweep(tmp_path)


def test_modules(sweep):
    modules = sweep.modules()
    assert len(modules) > 300
    if os.environ.get("SNAPBOOT_SWEEP") != "all":
        modules = sample(modules, SAMPLE)
    outcomes = list(sweep.outcomes(modules, len(os.sched_getaffinity(0))))
    faults = [f"{outcome.module}: {outcome.text}" for outcome in outcomes if outcome.kind == "different"]
    assert not faults, "\n".join(faults)
    assert any(outcome.kind == "same" for outcome in outcomes)


def test_what_the_sweep_sees(sweep, tmp_path):
    made = tmp_path / "made"
    made.mkdir()
    for name, (_, text) in MADE.items():
        (made / f"{name}.py").write_text(text)
    sweep.environment["PYTHONPATH"] = str(made)
    assert {outcome.module: outcome.kind for outcome in sweep.outcomes(MADE, 2)} == {name: kind for name, (kind, _) in MADE.items()}
