"""The advice of `snapboot explain`, followed to the letter, is what docs/stories.md says it is."""

import json
import pathlib
import subprocess
import sys

import pytest
from common import support
from common.ready import prepared

sys.path[:0] = [str(support.ROOT / "bench"), str(support.ROOT / "tools")]

import report  # noqa: E402
import stories  # noqa: E402

pytestmark = pytest.mark.sample(2, whole=True)

# Starts of each kind: the middle one of three tells which is faster, whatever disturbs another.
RUNS = 3
SHOWN = """
                                ordinary                 thawed
 path search                     42.1 ms ▏              11.3 ms ▊
 bodies of modules                900 ms ████████▍      83.1 ms █████▎
 launcher                              –                0.60 ms
 the whole process               1000 ms ± 0.00 ms       160 ms ± 0.00 ms

 Ordinary start of tool --version
 1 run; measuring took next to nothing of it
      time       own   calls  failed  part
   1000 ms   0.00 ms     500      20  process
   90.0 ms   90.0 ms     379      62  ├ the interpreter's own start
    800 ms   1.10 ms     100      10  ├ __main__
    700 ms   1.00 ms      50       5  │ ├ heavy
    699 ms    400 ms      50       5  │ │ └ heavy.core
    299 ms    299 ms      20       5  │ │ │ └ heavy.part
    100 ms    100 ms      50       5  │ └ 8 more
    110 ms    110 ms       6          └ end of the interpreter

 Thawed start of tool --version
 1 run; measuring took next to nothing of it
      time       own   calls  failed  part
    160 ms   0.00 ms      50       2  process

 1. Freeze it: 6.2 times as fast (saves 840 ms)
    $ snapboot freeze -- tool

 2. What to know about the image
"""
CUT = """\
                                ordinary                 thawed
 bodies of modules                900 ms ████████▍      83.1 ms █████▎
 the whole process               1000 ms ± 0.00 ms       160 ms ± 0.00 ms

 Ordinary start of tool --version
      time       own   calls  failed  part
   1000 ms   0.00 ms     500      20  process
    800 ms   1.10 ms     100      10  ├ __main__
    700 ms   1.00 ms      50       5  │ ├ heavy
    299 ms    299 ms      20       5  │ │ │ └ heavy.part
    110 ms    110 ms       6          └ end of the interpreter

 1. Freeze it: 6.2 times as fast (saves 840 ms)
    $ snapboot freeze -- tool"""


@pytest.mark.parametrize("name", ["cli", pytest.param("rails", marks=support.needs_ruby)])
def test_the_advice_followed_to_the_letter_leaves_little_of_a_start(name, tmp_path):
    story = stories.STORIES[name]
    prepared(story.workload)
    told = stories.followed(story, stories.Place(story, tmp_path), RUNS)
    calls = told["system calls"]
    assert calls["ordinary"] > 2 * calls["thawed"] > 0, told
    assert told["remedy"] in told["shown"] and str(tmp_path) not in json.dumps(told)


def test_the_document_is_what_the_newest_results_generate():
    result = report.newest_result("stories")
    assert list(result["scenarios"]) == list(stories.STORIES)
    assert stories.DOCUMENT.read_text() == stories.document(result), "run: bench/stories.py --write"
    for entry in result["scenarios"].values():
        assert entry["times as fast"]["value"] >= stories.LEAST


def test_the_rows_that_cost_most_are_shown():
    assert stories.cut(SHOWN) == CUT


def test_parts_that_lie_deepest_are_left_out_first(monkeypatch):
    monkeypatch.setattr(stories, "ROWS", 4)
    assert [row for row in CUT.splitlines() if row not in stories.cut(SHOWN).splitlines()] == [
        "    299 ms    299 ms      20       5  │ │ │ └ heavy.part"
    ]


class Pretended:
    """A place where each command prints what it is told to."""

    def __init__(self, folder: pathlib.Path, remedy: str | None, thawed: str):
        self.folder, self.thawed = folder / "project", thawed
        self.folder.mkdir()
        args = {"system calls": 1}
        advice = [{"headline": "Some", "text": "advice", "remedy": remedy}]
        self.report = json.dumps({"traceEvents": [{"cat": "process", "args": args}], "otherData": {"advice": advice}})

    def run(self, words):
        if words[0] == "sh":
            (self.folder / "black.img").touch()
        prints = {"snapboot": self.report, "./black.img": self.thawed}.get(words[0], "said")
        return subprocess.CompletedProcess(words, 0, prints, "")

    def without_folder(self, text):
        return text


@pytest.mark.parametrize(
    "remedy, thawed, said",
    [(None, "said", "first advice should be a command"), ("snapboot freeze -- black", "else", "should print 'said', not 'else'")],
)
def test_a_story_that_goes_wrong_is_not_told(remedy, thawed, said, tmp_path):
    with pytest.raises(stories.Untold, match=said):
        stories.followed(stories.STORIES["cli"], Pretended(tmp_path, remedy, thawed), 1)


def test_nothing_is_written_where_the_advice_gains_too_little(monkeypatch, tmp_path, capsys):
    entry = {"cases": {}, "times as fast": {"value": stories.LEAST - 0.1}}
    monkeypatch.setattr(stories, "lived", lambda story, pairs: entry)
    monkeypatch.setattr(stories.harness, "RESULTS", tmp_path)
    monkeypatch.setattr(stories, "DOCUMENT", tmp_path / "document")
    monkeypatch.setattr(sys, "argv", ["stories.py"])
    assert stories.main() == 1
    assert f"at least {stories.LEAST} times" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
