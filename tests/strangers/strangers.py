#!/usr/bin/env python3
"""Freezes programs that nobody here wrote, as a user would, and starts each of them again and again: the ordinary way twice, thawed twice.
What they print, how they end and the files that they leave must be the same, in another folder than that of the freeze.

    tests/strangers/strangers.py                  all of programs.toml
    tests/strangers/strangers.py httpie 'ruby-*'  those of that name, or that a pattern matches
    tests/strangers/strangers.py --install        by `snapboot install` alone, and by the name that a shell finds
    tests/strangers/strangers.py --list

A program may be refused when it is frozen, where programs.toml says so and by what name: that is an answer, too. What differs between the
two ordinary starts cannot be compared and counts as unstable, unless programs.toml has a pattern that makes it equal.
"""

import argparse
import dataclasses
import fnmatch
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

import workloads  # noqa: E402
from behaviour import process  # noqa: E402
from behaviour.normalise import normalised  # noqa: E402
from common.waiting import wait_until  # noqa: E402
from workloads import Unavailable, Workload  # noqa: E402

SNAPBOOT = pathlib.Path(os.environ.get("SNAPBOOT", ROOT / "target/release/snapboot"))
FREEZE_SECONDS = 600
# So often each short start is timed.
TIMES = 15
# What a login shell of a developer has set, and a program may look at.
SHELL = {
    "SHELL": "/bin/bash",
    "TERM": "xterm-256color",
    "EDITOR": "vi",
    "PAGER": "cat",
    "LOGNAME": "nobody",
    "LS_COLORS": "di=01;34:ln=01;36:*.tar=01;31",
    "LESSOPEN": "| /usr/bin/lesspipe %s",
    "DEBIAN_FRONTEND": "noninteractive",
    "SSH_CONNECTION": "192.0.2.1 50000 192.0.2.2 22",
    "XDG_SESSION_ID": "7",
    "HISTSIZE": "1000",
}


@dataclasses.dataclass(frozen=True)
class Program:
    """A row of programs.toml; the file says what the keys mean."""

    name: str
    command: tuple
    starts: tuple
    python: tuple | None = None
    debian: tuple = ()
    workload: str | None = None
    interpreter: str | None = None
    options: tuple = ()
    files: dict = dataclasses.field(default_factory=dict)
    env: dict = dataclasses.field(default_factory=dict)
    refused: str | None = None
    equal: tuple = ()
    ignored: tuple = ()

    def prepare(self):
        """Installs it. Returns what its command line, options and environment may name in braces. Raises Unavailable."""
        name = self.workload or f"stranger-{self.name}"
        row = Workload(f"{self.name}, of programs.toml", python=self.python, debian=self.debian)
        workloads.WORKLOADS.setdefault(name, row)
        return {**workloads.prepare(name, self.interpreter or sys.executable), "root": str(ROOT)}


@dataclasses.dataclass
class Outcome:
    """What came of a program: `kind` is same, refused, different, useless, unstable or missing."""

    name: str
    kind: str
    text: str = ""
    ordinary: float = 0.0  # seconds, median over the starts
    thawed: float = 0.0
    short: float = 0.0  # ratio of starts that only tell of the program: --version, --help
    task: float = 0.0  # ratio of the last start, a real task
    own: float = 0.0  # how much of the task, made the ordinary way, is more than such a start: no image can save that

    @property
    def is_good(self):
        return self.kind in ("same", "refused")


def programs():
    """All rows of programs.toml."""
    tables = tomllib.loads((HERE / "programs.toml").read_text())
    return [
        Program(name=name, **{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        for name, row in tables.items()
    ]


class Stranger:
    """One program, installed, with folders of its own: HOME, the folder of the freeze, and one for each start."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.values = program.prepare()
        self.image = folder / "frozen" / "program.img"
        self.started = folder / "started"
        self.home = folder / "home"  # as the freeze has left it
        self.argv = [self.filled(word) for word in program.command]
        if found := shutil.which(self.argv[0], path=self.path):
            self.argv[0] = found
        self.store = folder / "store"

    @property
    def path(self):
        return os.pathsep.join([*([self.values["bin"]] if "bin" in self.values else []), os.environ["PATH"]])

    def filled(self, text):
        return text.format(**self.values) if "{" in text else text

    def environment(self):
        kept = workloads.clean_environment(**SHELL)
        extra = {name: self.filled(value) for name, value in self.program.env.items()}
        extra["SNAPBOOT_STORE"] = str(self.store)
        return {**kept, "PATH": self.path, "HOME": str(self.started / "home"), "USER": "nobody", **extra}

    def fill(self, folder):
        """Makes a folder with the program's files."""
        folder.mkdir(parents=True)
        for name, text in self.program.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def freeze(self):
        """Freezes it as a user would. Returns status and what was said."""
        options = [self.filled(option) for option in self.program.options]
        return self.snapboot("freeze", "-o", self.image, *options, "--", *self.argv)

    def install(self):
        """Installs an image of it, which is started by its link from then on. Returns status and what was said."""
        status, said = self.snapboot("install", *self.argv)
        self.image = self.store / "data/bin" / pathlib.Path(self.argv[0]).name
        return status, said

    def wait(self):
        """Waits until no image is being made."""
        pgrep = ["pgrep", "-f", f"snapboot (build-image|learn) .*{self.store}"]
        wait_until(lambda: subprocess.run(pgrep, capture_output=True).returncode != 0, "an image is still being made")

    def snapboot(self, *words):
        """The command, in the folder of the freeze. Returns status and what was said."""
        self.fill(self.image.parent)
        (self.started / "home").mkdir(parents=True)
        done = subprocess.run(
            [SNAPBOOT, *words],
            cwd=self.image.parent,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=FREEZE_SECONDS,
        )
        shutil.copytree(self.started / "home", self.home, symlinks=True)
        return done.returncode, done.stdout.decode(errors="replace")

    def start(self, argv, start, **env):
        """One start in a folder of always the same path, with the same HOME: what the freeze has left there, such as a cache. Returns
        what was seen, and how long it took (seconds)."""
        self.wait()  # or a builder could write there
        shutil.rmtree(self.started)
        shutil.copytree(self.home, self.started / "home", symlinks=True)
        self.fill(self.started / "place")
        words = [*argv, *(self.filled(word) for word in start["args"])]
        began = time.monotonic()
        seen = process.run(
            words,
            start.get("streams", "pipe"),
            self.started,
            cwd="place",
            env={**self.environment(), **env},
            stdin=start.get("stdin", "").encode(),
            signals=start.get("signals", ()),
        )
        return seen, time.monotonic() - began


    def ratio(self, start):
        """How much of the ordinary time a start takes from the image, as `snapboot time` measures it. It may change nothing."""
        arguments = [self.filled(word) for word in start["args"]]
        words = [*self.argv, *arguments, "--vs", self.image, *arguments]
        done = subprocess.run(
            [SNAPBOOT, "time", "--json", "-n", str(TIMES), "--allow-failure", "--", *words],
            cwd=self.started / "place",
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
        ordinary, thawed = (row["median_ms"] for row in json.loads(done.stdout)["commands"])
        return thawed / ordinary


def tells_of_the_program(start):
    """Whether a start only prints something about the program."""
    return bool({*start["args"]} & {"--version", "-V", "--help", "-h"})


def outcome(program, folder, installs=False):
    """Installs, freezes, starts and compares. `folder` is for everything that comes into being. installs: whether `snapboot install`
    freezes it."""
    try:
        stranger = Stranger(program, folder)
    except Unavailable as reason:
        return Outcome(program.name, "missing", str(reason))
    if installs and len(stranger.argv) > 1:
        return Outcome(program.name, "missing", "its command is more than a word, and so nothing to install")
    try:
        return outcome_of(stranger, installs)
    finally:
        stranger.wait()  # nobody can remove a folder in which an image is being made


def outcome_of(stranger, installs):
    program = stranger.program
    status, said = stranger.install() if installs else stranger.freeze()
    if status != 0:
        is_expected = program.refused is not None and re.search(program.refused, said)
        return Outcome(program.name, "refused" if is_expected else "useless", said)
    if program.refused is not None:
        return Outcome(program.name, "different", f"it was to be refused ({program.refused}), and was not")
    all_times, shorts = [], []
    for start in program.starts:
        times = {"ordinary": [], "thawed": []}
        try:
            kind, text = compare(stranger, start, times)
        except process.Stuck as stuck:
            kind, text = "different", f"{start}: {stuck}"
        if kind != "same":
            return Outcome(program.name, kind, text)
        if installs and start is program.starts[-1]:
            # What the task loads later, the image has learnt by now.
            stranger.wait()
            times = {"ordinary": [], "thawed": []}
            compare(stranger, start, times)
        all_times.append(times)
        if tells_of_the_program(start):
            shorts.append(stranger.ratio(start))
    medians = [{kind: statistics.median(times[kind]) for kind in times} for times in all_times]
    ratios = [it["thawed"] / it["ordinary"] for it in medians]
    least = min(it["ordinary"] for it in medians)
    own = 1 - least / medians[-1]["ordinary"]
    whole = [statistics.median(time for times in all_times for time in times[kind]) for kind in ("ordinary", "thawed")]
    return Outcome(program.name, "same", said, *whole, statistics.median(shorts or ratios), ratios[-1], own)


def compare(stranger, start, times):
    """Starts it twice the ordinary way and twice from the image. Returns kind and text of an outcome."""
    texts = {}
    for number in (1, 2):
        for kind, argv in (("ordinary", stranger.argv), ("thawed", [stranger.image])):
            shown, took = stranger.start(argv, start)
            times[kind].append(took)
            texts[kind, number] = tidy(shown, stranger.program)
    if not start.get("falls_back", False):
        shown, _ = stranger.start([stranger.image], start, SNAPBOOT_ON_STALE="error")
        if shown.status == 125:
            return "useless", f"{start} does not thaw: {shown.stderr.decode(errors='replace')[-600:]}"
    if texts["ordinary", 1] != texts["ordinary", 2]:
        return "unstable", f"{start}: {difference(texts['ordinary', 1], texts['ordinary', 2])}"
    for number in (1, 2):
        if texts["thawed", number] != texts["ordinary", 1]:
            return "different", f"{start}, thaw {number}: {difference(texts['ordinary', 1], texts['thawed', number])}"
    return "same", ""


# Where images count their starts, and starts that no image can serve keep an archive.
OWN = ("home/.local", "home/.local/state", "home/.local/state/snapboot*", "home/.cache", "home/.cache/snapboot*")


def tidy(seen, program):
    """What was seen, without what may differ between any two starts."""
    def clean(data):
        data = normalised(data)
        for pattern in program.equal:
            data = re.sub(pattern.encode(), b"EQUAL", data)
        return data

    files = {
        name: (mode, clean(content) if isinstance(content, bytes) else content)
        for name, (mode, content) in seen.files.items()
        if not any(fnmatch.fnmatch(name, pattern) for pattern in (*OWN, *program.ignored))
    }
    return {"stdout": clean(seen.stdout), "stderr": clean(seen.stderr), "status": seen.status, "files": files}


def difference(one, other):
    """The first thing that differs, in words."""
    for key in one:
        if one[key] != other[key]:
            return f"{key}: {shown_difference(one[key], other[key])}"
    return "nothing"


def shown_difference(one, other):
    if isinstance(one, dict):
        names = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
        return ", ".join(f"{name}: {shown_difference(one.get(name), other.get(name))}" for name in names[:3])
    if isinstance(one, bytes) and isinstance(other, bytes):
        same = len(os.path.commonprefix([one, other]))
        begin = max(0, same - 60)
        return f"{one[begin:same + 200]!r} and {other[begin:same + 200]!r}"
    return f"{one!r} and {other!r}"[:600]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs, or patterns")
    parser.add_argument("--install", action="store_true", help="freeze them by snapboot install")
    parser.add_argument("--list", action="store_true", help="name all programs")
    options = parser.parse_args()
    chosen = [it for it in programs() if not options.names or any(fnmatch.fnmatch(it.name, name) for name in options.names)]
    if options.list or not chosen:
        print("\n".join(program.name for program in chosen) or "no such program")
        return 0 if chosen else 2
    bad = 0
    print(f"{'program':24} {'':10} {'ordinary':>10} {'thawed':>10} {'ratio':>7} {'short':>7} {'task':>7} {'own work':>9}")
    ratios = []
    for program in chosen:
        with tempfile.TemporaryDirectory(prefix="stranger-") as folder:
            result = outcome(program, pathlib.Path(folder), options.install)
        bad += not result.is_good
        line = f"{program.name:24} {result.kind:10}"
        if result.kind == "same":
            line += f" {result.ordinary * 1000:7.0f} ms {result.thawed * 1000:7.0f} ms {result.thawed / result.ordinary:7.3f}"
            line += f" {result.short:7.3f} {result.task:7.3f} {result.own * 100:7.0f} %"
            ratios.append((result.short, result.task))
        print(line, flush=True)
        if not result.is_good:
            print("    " + result.text.strip()[-1500:].replace("\n", "\n    "), flush=True)
    if ratios:
        medians = [statistics.median(column) for column in zip(*ratios, strict=True)]
        print(f"{'median':57} {'':9} {medians[0]:7.3f} {medians[1]:7.3f}")
    print(f"{len(chosen) - bad} of {len(chosen)} are right")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
