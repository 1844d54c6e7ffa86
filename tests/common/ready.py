"""Workloads of tools/workloads.py, made ready for a test."""

import sys

import pytest

from . import support

sys.path.insert(0, str(support.ROOT / "tools"))

import workloads  # noqa: E402


def prepared(name, python=sys.executable):
    """What workload `name` offers, see `workloads.prepare`. Skips the test where it cannot be had."""
    try:
        return workloads.prepare(name, python)
    except workloads.Unavailable as reason:
        pytest.skip(f"{name}: {reason}")
