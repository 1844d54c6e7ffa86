"""A clock that was set back: what the store has noted lies in the future, and bars nothing."""

import json
import os
import time

import pytest
from common.languages import PYTHON, both

from store.stores import Store, is_thawed
from store.test_hostile import write

pytestmark = pytest.mark.sample(4, whole=True)

AHEAD = 400 * 24 * 3600


def set_back(store):
    """Makes all that the store has noted so far look as after a clock that was set back by more than a year."""
    for note in store.place.glob("cache/*/*.json"):
        content = json.loads(note.read_text())
        for noted in [content, *content.get("outcomes", [])]:
            if "at" in noted:
                noted["at"] += AHEAD
        note.write_text(json.dumps(content))
    for path in [*store.place.rglob("*"), *(store.folder / "state").rglob("*")]:
        ahead = path.stat().st_mtime + AHEAD
        os.utime(path, (ahead, ahead))


@both
@pytest.mark.fault("the clock was set back", "images are made and used as ever")
def test_a_clock_that_was_set_back_bars_no_image(tmp_path, language):
    store = Store(tmp_path)
    (tmp_path / "state").mkdir()
    words = write(store, language)
    tool = tmp_path / words[-1]
    source = tool.read_text()
    # The program cannot be frozen, and that was found under the other clock.
    tool.write_text({"python": "raise SystemExit(", "ruby": "raise("}[language.name])
    store.run(*words)
    store.wait()
    (note,) = store.place.glob("cache/*/attempt.json")
    attempt = json.loads(note.read_text())
    assert "made" not in attempt["outcomes"][-1]["outcome"], attempt
    tool.write_text(source)
    store.run(*words)
    store.wait()
    assert is_thawed(store.run(*words))
    # An image of the future is stale now, and made again.
    set_back(store)
    assert is_thawed(store.run(*words)) and [row["state"] for row in store.list()] == ["fresh"]
    tool.write_text(source.replace("right", "right again"))
    assert store.run(*words).out.startswith("right again")
    assert [row["state"] for row in store.wait()] == ["fresh"]
    assert is_thawed(store.run(*words))


@pytest.mark.fault("the clock was set back after a failure", "the next start asks for an image")
def test_a_failure_of_the_future_is_no_reason_to_wait(tmp_path):
    store = Store(tmp_path)
    words = write(store, PYTHON)
    store.run(*words)
    store.wait()
    (image,) = store.place.glob("cache/*/1.img")
    image.unlink()
    (note,) = store.place.glob("cache/*/attempt.json")
    noted = json.loads(note.read_text())
    ahead = int(time.time()) + AHEAD
    failed = {"failed": {"why": "something", "passing": False}}
    noted["outcomes"] = [{**noted["outcomes"][-1], "outcome": failed, "failed": 20, "at": ahead}]
    note.write_text(json.dumps({**noted, "in_vain": 40, "at": ahead}))
    store.run(*words)
    assert [row["state"] for row in store.wait()] == ["fresh"]
