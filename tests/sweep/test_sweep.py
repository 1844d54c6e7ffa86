"""A sample of the sweep over all installed features (SNAPBOOT_SWEEP=all: the whole of it), and whether the sweep sees what it looks for."""

import os
import sys

import pytest

from . import sweep as sweeping

sys.path.insert(0, str(sweeping.ROOT / "tools"))

import workloads  # noqa: E402

SAMPLE = 50
# Features that tell the starts apart, by what the sweep has to say of them. On their load path there is nothing else of such names.
MADE = {
    "made_same": ("same", "module MadeSame; autoload :Part, 'json'; end"),
    "made_failing": ("same", "raise 'always'"),
    "made_wrong": ("same", "class"),
    "made_ending": ("same", "exit! 3"),
    "made_killed": ("same", "Process.kill :KILL, $$"),
    "made_result": ("different", "raise 'with the archive' if defined?(Snapboot)"),
    "made_output": ("different", "warn 'with the archive' if defined?(Snapboot)"),
    "made_status": ("different", "at_exit { exit! 4 if defined?(Snapboot) }"),
    "made_features": ("different", "require 'set' if defined?(Snapboot)"),
    "made_constants": ("different", "MADE = 1 unless defined?(Snapboot)"),
    "made_methods": ("different", "class String; def made; end; end unless defined?(Snapboot)"),
    "made_autoload": ("different", "module Made; defined?(Snapboot) ? autoload(:Part, 'made_same') : Part = 1; end"),
    "made_when_warm": ("different", "raise 'warm' if defined?(Snapboot) && Snapboot::Archive.counters[:hit] > 0"),
    "made_useless": ("useless", "Snapboot::Archive.singleton_class.define_method(:flush) { } if defined?(Snapboot)"),
    "made_unstable": ("unstable", "puts rand, 'with' + (defined?(Snapboot) ? '' : 'out')"),
}


@pytest.fixture
def sweep(tmp_path):
    """The sweep of this tree."""
    return sweeping.Sweep(sweeping.ROOT, tmp_path)


@pytest.fixture(scope="module", autouse=True)
def ruby():
    """Skips where no Ruby can be had."""
    try:
        workloads.prepare("ruby")
    except workloads.Unavailable as reason:
        pytest.skip(str(reason))


def check(sweep, features):
    """Fails the test when one of these features does not come to the same with the archive."""
    outcomes = list(sweep.outcomes(features, len(os.sched_getaffinity(0))))
    faults = [f"{outcome.feature}: {outcome.kind}: {outcome.text}" for outcome in outcomes if outcome.kind in ("different", "useless")]
    assert not faults, f"{len(faults)} of {len(features)}:\n" + "\n".join(faults)
    assert any(outcome.kind == "same" for outcome in outcomes), outcomes


def test_what_once_failed(sweep):
    check(sweep, sweeping.chosen(sweep.features(), sweeping.read_features()["failed_once"]))


def test_installed_features(sweep):
    features = sweep.features()
    check(sweep, features if os.environ.get("SNAPBOOT_SWEEP") == "all" else sweeping.sample(features, SAMPLE))


def test_what_the_sweep_sees(tmp_path):
    made = tmp_path / "made"
    made.mkdir()
    for name, (_, text) in MADE.items():
        (made / f"{name}.rb").write_text(f"{text}\n")
    (made / "made_endless.rb").write_text("sleep\n")
    sweep = sweeping.Sweep(sweeping.ROOT, tmp_path, {"RUBYLIB": str(made)})
    assert not {*MADE, "made_endless"} - set(sweep.features())
    assert {outcome.feature: outcome.kind for outcome in sweep.outcomes(MADE, 2)} == {name: kind for name, (kind, _) in MADE.items()}
    impatient = sweeping.Sweep(sweeping.ROOT, tmp_path, {"RUBYLIB": str(made)}, seconds=1)
    assert impatient.outcome("made_endless").kind == "endless"
