#!/usr/bin/env python3
"""Requires every feature of the standard library and of all installed gems, alone in a process of its own: the ordinary way (plain), with
an empty archive (cold), and twice with the archive that the cold start has left (warm). All four must come to the same.

    tests/sweep/sweep.py                            all features
    tests/sweep/sweep.py action_view 'net/*'        those of that name, or that a pattern matches
    tests/sweep/sweep.py --tree /usr/src/snapboot   with another build than this tree's

What is compared is what probe.rb writes down, what is printed, and how the process ends. What differs between two plain starts cannot be
compared, and counts as unstable. A difference counts when it shows twice, each time with an archive of its own.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import difflib
import fnmatch
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import zlib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SECONDS = 30  # for a plain start; one that takes longer is left out
PATIENCE = 4  # how many times longer the others may take
STARTS = ("plain", "cold", "warm", "warm again")
FIELDS = ("status", "stdout", "stderr", "result", "features", "globals", "constants")
LINES = {"result": "result", "feature": "features", "global": "globals"}  # of probe.rb, by the field they belong to; others: constants
KINDS_OF_OUTCOME = ("same", "different", "useless", "unstable", "endless")
# What two starts may have different: addresses, numbers of processes, times, seeds, the frames of backtraces, and the line of the
# innermost one, which error_highlight shows unless that is in RubyGems.
UNIMPORTANT = (
    (r"0x[0-9a-f]{6,}", "ADDRESS"),
    (r"\bpid[ =:]+\d+", "PID"),
    (r"--seed \d+", "SEED"),
    (r"\d+\.\d+ ?s(?:econds)?\b|\d+\.\d+ (?:runs|assertions|tests)/s", "TIME"),
    (r"\\n\\n[^\n]*\\n *\^+", ""),
    (r"(?m)^\tfrom .*\n", ""),
    (r"(?m)^\s+\d+: from .*\n", ""),
    (r"(?m)^\S+:\d+:in [`'].*?': ", ""),
)


@dataclasses.dataclass(frozen=True)
class Start:
    """What came of one start: the text of each of FIELDS, whether it ended in time, and what the archive was asked."""

    fields: dict
    ended: bool
    events: dict


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of one feature. kind: same; different; useless, when the warm starts took nothing from the archive; unstable, when plain
    starts differ in what the others differ in; endless, when a plain start takes too long.
    """

    feature: str
    kind: str
    text: str = ""


class Sweep:
    """Requires features. `tree` is the Snapboot to test, `folder` is for what the starts leave behind; `variables` are further ones
    for every start, and `seconds` is how long a plain one may take.
    """

    def __init__(self, tree, folder, variables=None, seconds=SECONDS):
        self.tree = pathlib.Path(tree).resolve()
        self.setup = self.tree / "ruby/lib/snapboot/setup"
        self.folder = pathlib.Path(folder)
        self.variables, self.seconds = variables or {}, seconds
        self.ruby = shutil.which("ruby")

    def features(self):
        """The names of all features but those that are left out, in order."""
        words = [self.ruby, HERE / "features.rb"]
        listed = subprocess.run(words, env=self.environment(self.folder), capture_output=True, text=True, check=True)
        left_out = read_features()["left_out"]
        return [feature for feature in listed.stdout.splitlines() if feature not in left_out]

    def outcomes(self, features, workers, end=math.inf):
        """The Outcomes of these features, as they come; of those alone that were begun before `end` (of time.monotonic)."""
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            begun = [pool.submit(lambda name: self.outcome(name) if time.monotonic() < end else None, name) for name in features]
            for future in concurrent.futures.as_completed(begun):
                if future.result():
                    yield future.result()

    def outcome(self, feature):
        """Require one feature four times, or as often as it takes to know."""
        endless = Outcome(feature, "endless", f"does not end within {self.seconds} s")
        first = self.starts(feature, STARTS)
        if not first["plain"].ended:
            return endless
        differing = {field for start in first.values() for field in differences(first["plain"], start)}
        if not differing:
            asked, answered = first["cold"].events, first["warm"].events
            if asked.get("miss") and not answered.get("hit"):
                return Outcome(feature, "useless", f"cold {asked}, warm {answered}")
            return Outcome(feature, "same")
        second, third = self.starts(feature, STARTS), self.starts(feature, STARTS[:1])
        if not (second["plain"].ended and third["plain"].ended):
            return endless
        unstable = {field for again in (second, third) for field in differences(first["plain"], again["plain"])}
        for name in STARTS[1:]:
            twice = set(differences(first["plain"], first[name])) & set(differences(second["plain"], second[name]))
            if found := twice - unstable:
                return Outcome(feature, "different", explained(name, second["plain"], second[name], found))
        return Outcome(feature, "unstable", ", ".join(field for field in FIELDS if field in differing))

    def starts(self, feature, names):
        """The Start of each name, with one archive; of the plain one alone when that does not end."""
        found = {}
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            for name in names:
                found[name] = self.start(feature, name, pathlib.Path(place))
                if not found["plain"].ended:
                    break
        return found

    def start(self, feature, name, place):
        """Start Ruby on one feature, with empty folders to work in, to be at home in, and for temporary files."""
        for part in ("work", "home", "tmp"):
            shutil.rmtree(place / part, ignore_errors=True)
            (place / part).mkdir()
        written = place / "outcome"
        written.unlink(missing_ok=True)
        variables = self.environment(place)
        if name != "plain":
            variables |= {"RUBYOPT": f"-r{self.setup}", "SNAPBOOT_ARCHIVE": str(place / "archives/boot.archive")}
        limit = self.seconds if name == "plain" else self.seconds * PATIENCE
        status, out, err, ended = run([self.ruby, HERE / "probe.rb", written, feature], place / "work", variables, limit)
        lines = written.read_text(errors="backslashreplace").split("\n") if written.exists() else ["result\tnone"]
        return self.read(lines, status, out, err, ended, place)

    def environment(self, place):
        """What every start gets: nothing that acts on Ruby, and folders of its own."""
        folders = {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp")}
        return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb", "TZ": "UTC", **folders, **self.variables}

    def read(self, lines, status, out, err, ended, place):
        """The Start that these lines of probe.rb, texts and status are."""
        rows, events = collections.defaultdict(list), {}
        for line in lines:
            kind, _, text = line.partition("\t")
            if kind == "event":
                event, _, count = text.partition(" ")
                events[event] = int(count)
            elif kind != "feature" or not text.startswith(f"{self.tree}/"):
                rows[LINES.get(kind, "constants")].append(text)
        texts = {"status": str(status), "stdout": out, "stderr": err, **{field: "\n".join(found) for field, found in rows.items()}}
        fields = {field: normalised(texts.get(field, ""), place) for field in FIELDS}
        return Start(fields, ended, events)


def run(argv, folder, variables, limit):
    """Run a command, and end all that it has left. Returns its status, what it printed, and whether it ended within the limit."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:  # files: nobody waits for what a child keeps open
        process = subprocess.Popen(
            argv, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            status, ended = process.wait(limit), True
        except subprocess.TimeoutExpired:
            ended = False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if not ended:
            status = process.wait()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(1 << 20).decode("utf-8", "backslashreplace"))
    return status, *texts, ended


def normalised(text, place):
    """Without what two starts may have different."""
    text = text.replace(str(place), "PLACE").replace(place.name, "PLACE")
    for pattern, instead in UNIMPORTANT:
        text = re.sub(pattern, instead, text)
    return text


def differences(one, other):
    """The fields in which two starts differ."""
    return [field for field in FIELDS if one.fields[field] != other.fields[field]]


def explained(name, plain, start, fields):
    """The fields in which a start differs, with the first lines of each difference."""
    lines = [f"{name} differs in {', '.join(field for field in FIELDS if field in fields)}"]
    for field in FIELDS:
        if field in fields:
            texts = [part.fields[field].splitlines() for part in (plain, start)]
            changed = [line for line in difflib.unified_diff(*texts, "plain", name, lineterm="", n=0) if not line.startswith("@@")]
            lines += [f"  {field}:", *(f"    {line[:300]}" for line in changed[2:14])]
    return "\n".join(lines)


def read_features():
    """What features.toml says."""
    return tomllib.loads((HERE / "features.toml").read_text())


def chosen(features, patterns):
    """The features that a name or pattern is for."""
    names, wild = set(patterns), [pattern for pattern in patterns if set("*?[") & set(pattern)]
    return [name for name in features if name in names or any(fnmatch.fnmatchcase(name, pattern) for pattern in wild)]


def sample(features, size):
    """So many features, scattered, and the same ones each time: what is installed besides exchanges a few of them."""
    return sorted(sorted(features, key=lambda name: zlib.crc32(name.encode()))[:size])


def summary(counts):
    """How many features came to what."""
    return ", ".join(f"{counts[kind]} {kind}" for kind in KINDS_OF_OUTCOME if counts[kind])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("features", nargs="*", metavar="FEATURE", help="names or patterns (default: all)")
    parser.add_argument("--tree", default=ROOT, help="the Snapboot to test (default: this tree)")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="how many at a time (default: one for each CPU)")
    parser.add_argument("--sample", type=int, metavar="N", help="of these only N")
    parser.add_argument("--seconds", type=float, help="in any order, and no more when so much time has passed (default: all)")
    options = parser.parse_args()
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep(options.tree, folder)
        features = sweep.features()
        if options.features:
            features = chosen(features, options.features)
        if options.sample is not None:
            features = sample(features, options.sample)
        if options.seconds is not None:
            random.shuffle(features)
        end = math.inf if options.seconds is None else time.monotonic() + options.seconds
        for outcome in sweep.outcomes(features, options.workers, end):
            counts[outcome.kind] += 1
            if outcome.kind != "same":
                print(f"{outcome.feature}: {outcome.kind}: {outcome.text}", flush=True)
            progress(counts.total(), len(features))
    left = len(features) - counts.total()
    print(summary(counts) + (f", {left} not reached in {options.seconds:g} s" if left else ""))
    failed = counts["different"] + counts["useless"]
    print(f"{counts['same']} passed, {failed} failed, {counts.total() - counts['same'] - failed} skipped")
    return 1 if counts["different"] or counts["useless"] or not counts["same"] else 0


def progress(done, of):
    """Says on standard error how far the sweep has come: all the time on a terminal, now and then elsewhere."""
    if sys.stderr.isatty():
        print(f"\r{done} of {of} ", end="\n" if done == of else "", file=sys.stderr, flush=True)
    elif done % 250 == 0:
        print(f"{done} of {of}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
