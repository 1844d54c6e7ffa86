#!/usr/bin/env python3
"""Follows the advice of `snapboot explain` to the letter, for the three programs of docs/stories.md, and writes what came of it there.

    bench/stories.py            all of them, 20 pairs each, into bench/results/<machine>-stories-<date>.json and the document
    bench/stories.py -n 1 cli   one, quickly; stored and written nowhere
    bench/stories.py --write    the document anew, from the newest results

Each story is lived in a folder of its own that is removed afterwards: `explain` is asked, its first command is given to a shell as it
stands, and the image that appears is started in place of the program. It must do the same, and the whole start must be LEAST times as
fast: otherwise nothing is written, and the exit status is 1.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]

import marked  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402
import run as harness  # noqa: E402
import workloads  # noqa: E402

DOCUMENT = ROOT / "docs/stories.md"
SNAPBOOT = pathlib.Path(os.environ.get("SNAPBOOT", ROOT / "target/release/snapboot"))
LEAST = 5
# What is shown: sorts and parts from these shares of the ordinary start on, and no more parts than these. A part that is so much of the
# one above it says nothing new.
SORTS = 0.05
PARTS = 0.1
NEARLY_ALL = 0.98
ROWS = 10


class Untold(Exception):
    """A story did not go as it should; the text says what was expected and what happened."""


@dataclasses.dataclass(frozen=True)
class Story:
    """A program that somebody waits for."""

    title: str  # its heading in the document
    typed: str  # what its user types
    workload: str  # of tools/workloads.py
    prepare: Callable[["Place"], None]  # fills the folder where it is typed
    env: dict[str, str] = dataclasses.field(default_factory=dict)


class Place:
    """The folder and the environment of one story: that of a user who has the program and Snapboot on the PATH."""

    def __init__(self, story: Story, top: pathlib.Path):
        self.folder, home = top / "project", top / "home"
        self.folder.mkdir()
        home.mkdir()
        self.offered = workloads.prepare(story.workload)
        programs = [self.offered["bin"]] if "bin" in self.offered else []
        path = os.pathsep.join([*programs, str(SNAPBOOT.resolve().parent), os.environ["PATH"]])
        self.env = workloads.clean_environment(PATH=path, HOME=str(home), SNAPBOOT_LOG="1", **story.env)
        story.prepare(self)

    def copy(self, source: pathlib.Path) -> None:
        """Have the content of a folder here, without what programs write there while they run."""
        ignored = shutil.ignore_patterns("log", "tmp", "__pycache__")
        shutil.copytree(source, self.folder, symlinks=True, ignore=ignored, dirs_exist_ok=True)

    def without_folder(self, text: str) -> str:
        """What was printed, as it would read wherever the folder is."""
        return text.replace(f"{self.folder}/", "")

    def run(self, words: list[str]) -> subprocess.CompletedProcess:
        """Run a command here. Raises Untold when it fails, or an image starts the ordinary way."""
        done = subprocess.run(words, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0 or measure.FALLBACK in done.stderr:
            raise Untold(f"`{shlex.join(words)}` should have ended with 0, and ended with {done.returncode}:\n{done.stderr}")
        return done


def prepare_cli(place: Place) -> None:
    place.copy(ROOT / "examples/python-cli")
    place.run(["black", "-q", "spending.py"])


def prepare_rails(place: Place) -> None:
    place.copy(pathlib.Path(place.offered["dir"]))
    (place.folder / "log").mkdir()


def prepare_model_server(place: Place) -> None:
    place.copy(ROOT / "examples/model-server")
    place.run(["python", "train.py"])


STORIES = {
    "cli": Story("A slow command-line tool", "black --check spending.py", "black", prepare_cli),
    "rails": Story("A Rails boot", "bin/rails runner 'puts 1'", "rails", prepare_rails, {"RAILS_ENV": "production"}),
    "model-server": Story("A model server", "python serve.py --check", "scikit-learn", prepare_model_server),
}


def lived(story: Story, pairs: int) -> dict:
    """What happens in a story, with `pairs` starts of each kind where times count. Raises Untold or Unavailable."""
    with tempfile.TemporaryDirectory(prefix="snapboot-story-") as name:
        place = Place(story, pathlib.Path(name))
        told = followed(story, place, min(pairs, 5))
        commands = [*shlex.split(story.typed), "--vs", *shlex.split(told["start"])]
        timed = json.loads(place.run(["snapboot", "time", "--json", "-n", str(pairs), "--", *commands]).stdout)
        cases = zip(report.PAIR, timed["commands"], strict=True)
        told["cases"] = {case: {"n": command["n"], "median": command["median_ms"]} for case, command in cases}
        told["times as fast"] = timed["ratio"]
        return told


def followed(story: Story, place: Place, runs: int) -> dict:
    """Ask explain, do what it says, and start what there is then. Raises Untold where that does not do what the program did."""
    words = shlex.split(story.typed)
    saved = place.folder.parent / "report.json"  # the program's folder is left as it is
    saved.write_text(place.run(["snapboot", "explain", "-q", "--json", "--no-archive", "-n", str(runs), "--", *words]).stdout)
    shown = place.run(["snapboot", "explain", str(saved)]).stdout
    ordinary = json.loads(saved.read_text())
    advice = ordinary["otherData"]["advice"][0]
    if not advice["remedy"]:
        raise Untold(f"the first advice should be a command, and is: {advice['headline']}. {advice['text']}")
    froze = place.run(["sh", "-c", advice["remedy"]])
    images = [path.name for path in place.folder.glob("*.img")]
    if len(images) != 1:
        raise Untold(f"`{advice['remedy']}` should have made one image in the current folder, and there are: {images}")
    remedy = shlex.split(advice["remedy"])
    start = [f"./{images[0]}", *words[len(remedy) - remedy.index("--") - 1 :]]
    before, after = place.run(words), place.run(start)
    if (before.stdout, before.stderr) != (after.stdout, after.stderr):
        raise Untold(f"`{shlex.join(start)}` should print {before.stdout + before.stderr!r}, not {after.stdout + after.stderr!r}")
    thawed = json.loads(place.run(["snapboot", "explain", "-q", "--json", "-n", "1", *start]).stdout)
    return {
        "shown": cut(place.without_folder(shown)),
        "remedy": advice["remedy"],
        "froze": place.without_folder(froze.stdout + froze.stderr).strip(),
        "start": shlex.join(start),
        "printed": (before.stdout + before.stderr).strip(),
        "system calls": dict(zip(report.PAIR, [system_calls(ordinary), system_calls(thawed)], strict=True)),
    }


def system_calls(explained: dict) -> int:
    """How many the first start of a report made, all in all. Raises Untold where they are not counted."""
    process = next(event for event in explained["traceEvents"] if event.get("cat") == "process")
    if "system calls" not in process["args"]:
        raise Untold("system calls should have been counted, and no process may be traced here")
    return process["args"]["system calls"]


def cut(shown: str) -> str:
    """The rows of `explain` that matter: the sorts and the parts of the ordinary start that cost most, and the first advice."""
    sorts, tree, *others = shown.strip("\n").split("\n\n")
    advice = next(part for part in others if part.startswith(" 1. "))
    return "\n\n".join([cut_sorts(sorts.splitlines()), cut_tree(tree.splitlines()), advice])


def milliseconds(row: str) -> float:
    """The first time in a row, 0 where there is none."""
    time = re.search(r"([\d.]+) ms", row)
    return float(time.group(1)) if time else 0


def cut_sorts(rows: list[str]) -> str:
    heading, *sorts, whole = rows
    least = milliseconds(whole) * SORTS
    return "\n".join([heading, *(row for row in sorts if milliseconds(row[:42]) >= least), whole])


def cut_tree(rows: list[str]) -> str:
    """The title, the heading, and the parts that cost most; of these, those deepest in others are left out first."""
    title, _, heading, *parts = rows
    costly: list[tuple[int, float, str]] = []
    above: list[tuple[int, float]] = []  # depth and time of those that a row lies in
    for row in parts:
        depth, time = depth_of(row), milliseconds(row)
        while above and above[-1][0] >= depth:
            above.pop()
        says_nothing_new = row.endswith(" more") or (above and time >= above[-1][1] * NEARLY_ALL)
        if time >= milliseconds(parts[0]) * PARTS and not says_nothing_new:
            costly.append((depth, time, row))
        above.append((depth, time))
    kept = sorted(costly, key=lambda part: (part[0], -part[1]))[:ROWS]
    return "\n".join([title, heading, *(part[2] for part in costly if part in kept)])


def depth_of(row: str) -> int:
    """In how many parts that of a row lies: its name stands behind so many lines."""
    return len(re.findall("[│├└]", row))


def page(name: str, entry: dict) -> str:
    """The Markdown of one story."""
    story = STORIES[name]
    exports = [f"$ export {variable}={value}" for variable, value in story.env.items()]
    asked = [*exports, f"$ snapboot explain --no-archive -- {story.typed}", entry["shown"]]
    done = [f"$ {entry['remedy']}", entry["froze"], f"$ {entry['start']}", entry["printed"]]
    before, after = (report.figure(report.median_of(entry, case), "ms") for case in report.PAIR)
    calls = entry["system calls"]
    return "\n\n".join(
        [
            "\n".join(["```console", *asked, "```"]),
            "The command of the first advice, as it stands, and a start of what it made:",
            "\n".join(["```console", *done, "```"]),
            f"**Before {before}, after {after}: {times(entry)} times as fast**, with {calls['thawed']:,} system calls instead of "
            f"{calls['ordinary']:,}.",
        ]
    )


def times(entry: dict) -> str:
    return f"{entry['times as fast']['value']:.0f}"


def summary(result: dict) -> str:
    """The table at the top, and where the figures come from."""
    rows = []
    for name, entry in result["scenarios"].items():
        figures = [report.figure(report.median_of(entry, case), "ms") for case in report.PAIR]
        title = STORIES[name].title
        rows.append([f"[{title}](#{title.lower().replace(' ', '-')})", f"`{STORIES[name].typed}`", *figures, times(entry)])
    heading = ["", "typed", "before", "after", "times as fast"]
    return f"{report.table(heading, rows)}\n\n{report.origin(result)}"


def document(result: dict) -> str:
    """What docs/stories.md should hold with these results."""
    text = marked.filled_in(DOCUMENT.read_text(), summary(result), tool="bench/stories.py")
    for name in STORIES:
        text = marked.filled_in(text, page(name, result["scenarios"][name]), tool=f"bench/stories.py {name}")
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    which = f"{', '.join(STORIES)}: what is named is neither stored nor written (default: all)"
    parser.add_argument("names", nargs="*", metavar="STORY", help=which)
    parser.add_argument("-n", type=int, default=20, metavar="N", help="starts of each kind (default 20)")
    parser.add_argument("--write", action="store_true", help="measure nothing: write the document from the newest results")
    options = parser.parse_args()
    if unknown := set(options.names) - set(STORIES):
        parser.error(f"no such story: {', '.join(sorted(unknown))}; there are: {', '.join(STORIES)}")
    if options.n < 1:
        parser.error("-n must be at least 1")
    if options.write:
        DOCUMENT.write_text(document(report.newest_result("stories")))
        return 0
    result, status = harness.new_result("stories"), 0
    for name in options.names or STORIES:
        try:
            entry = result["scenarios"][name] = lived(STORIES[name], options.n)
        except (Untold, workloads.Unavailable) as reason:
            print(f"{name}: {reason}", file=sys.stderr)
            return 1
        print(f"{name}: {harness.spoken(entry)}: {times(entry)} times as fast", flush=True)
        if entry["times as fast"]["value"] < LEAST:
            print(f"{name}: it should be at least {LEAST} times as fast", file=sys.stderr)
            status = 1
    if status == 0 and not options.names:
        DOCUMENT.write_text(document(result))
        harness.store(result, harness.result_path(result), f", written to {os.path.relpath(DOCUMENT)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
