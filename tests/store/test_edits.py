"""A few of the edits that `make edits` makes in projects of Django, pytest and Rails: each start after one is as an ordinary one."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]

import edits  # noqa: E402
import workloads  # noqa: E402

pytestmark = pytest.mark.sample(3)


@pytest.mark.parametrize("name", edits.PROJECTS)
def test_each_start_after_an_edit_is_as_an_ordinary_one(name):
    project = edits.PROJECTS[name]
    try:
        entry = edits.lived(project, 4, seed=7)
    except workloads.Unavailable as reason:
        pytest.skip(str(reason))
    assert entry["wrong"] == []
    assert entry["retired by an own file"] == []


def test_each_kind_of_edit_is_made_as_often_as_another():
    chosen = edits.chosen_edits(edits.PROJECTS["django"], 100, 1)
    counts = {name: chosen.count(name) for name in edits.DJANGO}
    assert len(chosen) == 100 and max(counts.values()) - min(counts.values()) <= 1
    assert chosen != edits.chosen_edits(edits.PROJECTS["django"], 100, 2)
