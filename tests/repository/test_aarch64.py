"""tools/aarch64.py, with a machine that only pretends to run commands."""

import aarch64
import cpus
import kernels
import pytest


def outcome_of(name, cpu, broken):
    """What such a machine shows for a command: `broken` names one that shows something else."""
    program, _, what = name.rpartition("-")
    if name == broken:
        return 1, "broken"
    if name in ("wheel", "gem"):
        return 0, "snapboot 0.1.0\n"
    if name == "level":
        return 2, "--cpu v3 is a level of x86-64"
    if what == "freeze":
        return 0, ""
    if program.startswith("draws"):
        return 0, f"{what} {program}\n"
    return (3, f"snapboot: {cpus.STALE}: atomics\nshown\n") if cpu == aarch64.LESSER_CPU else (3, "shown\n")


@pytest.mark.parametrize("broken", ["", "wheel", "behaves.py-freeze", "behaves.rb-second", "draws.py-first", "level", "behaves.py"])
def test_all_is_tried_and_what_is_wrong_is_counted(broken, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(aarch64, "PACKAGES_FOLDER", tmp_path)
    for name in ("snapboot.whl", "snapboot.gem"):
        (tmp_path / name).touch()
    places = []

    def there(commands, name, suite=aarch64.SUITE, cpu=aarch64.CPU):
        places.append(name)
        return {key: outcome_of(key, cpu, broken) for key in commands}

    monkeypatch.setattr(aarch64, "there", there)
    tried = kernels.Counted()
    aarch64.installed_there(tried)
    aarch64.thawed_elsewhere(aarch64.frozen_there(list(aarch64.PROGRAMS), tried), tried)
    assert places == ["installed", "frozen", "kernel-bookworm", "kernel-sid", "lesser-cpu"]
    assert bool(tried.result["failed"]) == bool(broken), tried.result
    assert tried.result["passed"] > 0 and (not broken or capsys.readouterr().out)
