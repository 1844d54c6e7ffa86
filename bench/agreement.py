#!/usr/bin/env python3
"""Compares what `snapboot explain` says with an independent measure: how long the modules or features of a program take that take longest.

    bench/agreement.py                        flask, requests and pymongo; a Rails boot; tensorflow: ROUNDS rounds each
    bench/agreement.py -n 5 rails             one of them, with so many rounds
    bench/agreement.py -- asciidoctor FILE    any command

Python's own `-X importtime` is the measure for Python, a wrapper of `require` for Ruby (programs/agreement/required.rb). A round is a call
of `explain` and as many measured starts, one after the other, so that whatever changes on the machine meets both. Medians are compared,
without garbage collections: one takes place in whichever part makes the object too many, and each way to measure moves that a little. The
exit status is 1 where one of the ROWS parts that take longest differs by more than MOST.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]

import report  # noqa: E402
import workloads  # noqa: E402

SNAPBOOT = pathlib.Path(os.environ.get("SNAPBOOT", ROOT / "target/release/snapboot"))
MEASURES = ROOT / "bench/programs/agreement"
ROUNDS = 7
STARTS = 3  # of each round
ROWS = 5
MOST = 0.1
# A part that is so much of the one that it lies in says the same again.
NEARLY_ALL = 0.98
# A line of -X importtime: its own microseconds, those with all that it imports, its name.
IMPORTED = re.compile(r"import time:\s+\d+ \|\s+(\d+) \|\s*(\S+)")


@dataclasses.dataclass(frozen=True)
class Program:
    """What is started: words, in a folder, with an environment."""

    words: list[str]
    env: dict[str, str]
    folder: str | None = None


def web_trio() -> Program:
    return Program([workloads.prepare("web")["python"], "-c", "import flask, requests, pymongo"], {})


def tensorflow() -> Program:
    return Program([workloads.prepare("tensorflow")["python"], "-c", "import tensorflow"], {})


def rails() -> Program:
    env = {"RAILS_ENV": "production", "REQUIRED_BUNDLED": "1"}
    return Program(["bin/rails", "runner", "puts 1"], env, workloads.prepare("rails")["dir"])


PROGRAMS = {"web-trio": web_trio, "rails": rails, "tensorflow": tensorflow}


def explained(program: Program, env: dict[str, str]) -> dict[str, float]:
    """Milliseconds of each module or feature with all that it loads, as `explain` says; without those that are nearly all one other."""
    asked = [str(SNAPBOOT), "explain", "-q", "--json", "--no-freeze", "--no-archive", "-n", str(STARTS), "--", *program.words]
    done = subprocess.run(asked, cwd=program.folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"`{shlex.join(asked)}` ended with {done.returncode}:\n{done.stderr}")
    told = json.loads(done.stdout)
    parts = (event for event in told["traceEvents"] if event["ph"] == "X")
    took: dict[str, float] = {}
    within: list[tuple[str, str, float]] = []
    # The profile says which part lies in which, the events how long each took, in the same order.
    for step in told["profiles"][0]["events"]:
        if step["type"] == "C":
            within.pop()
            continue
        part = next(parts)
        kind, name, milliseconds = part["cat"], part["name"], part["args"]["time in ms"]
        above = [(other, time) for other_kind, other, time in within if other_kind == "body"]
        if kind == "collector":
            for other, _ in above:
                took[other] -= milliseconds
        elif kind == "body":
            if above and milliseconds >= above[-1][1] * NEARLY_ALL:
                took[above[-1][0]] = 0
            took.setdefault(name, milliseconds)
        within.append((kind, name, milliseconds))
    return took


def measured(program: Program, env: dict[str, str]) -> dict[str, float]:
    """The same by the independent measure."""
    # Files, since a pipe's reader would be woken for each line.
    with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryFile("w+") as printed:
        for_python = {"PYTHONPROFILEIMPORTTIME": "1", "PYTHONPATH": str(MEASURES / "uncollected")}
        for_ruby = {"RUBYOPT": f"-r{MEASURES / 'required.rb'}", "REQUIRED_TIMES": file.name}
        subprocess.run(
            program.words, cwd=program.folder, env={**env, **for_python, **for_ruby}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=printed,
        )  # fmt: skip
        printed.seek(0)
        took = {name: int(time) / 1000 for time, name in reversed(IMPORTED.findall(printed.read()))}
        for line in pathlib.Path(file.name).read_text().splitlines():
            time, name = line.split(" ", 1)
            # Where RubyGems asks for a feature again inside itself, the outer one is all of it.
            took[name] = max(float(time), took.get(name, 0))
    return took


def compare(name: str, program: Program, rounds: int) -> bool:
    """Measure, and print a table. Returns whether all of it agrees."""
    env = workloads.clean_environment(**program.env)
    for _ in range(2):
        measured(program, env)
    both = collections.defaultdict(lambda: ([], []))
    for done in range(rounds):
        print(f"{name}: round {done + 1} of {rounds}", end="\r", file=sys.stderr)
        for part, time in explained(program, env).items():
            both[part][0].append(time)
        for _ in range(STARTS):
            for part, time in measured(program, env).items():
                both[part][1].append(time)
    medians = {
        part: (statistics.median(said), statistics.median(found) if found else 0)
        for part, (said, found) in both.items()
        if len(said) > rounds / 2
    }
    rows, agrees = [], True
    for part, (said, found) in sorted(medians.items(), key=lambda entry: -entry[1][0])[:ROWS]:
        difference = said / found - 1 if found else float("inf")
        agrees &= abs(difference) <= MOST
        rows.append([f"`{part}`", report.figure(said, "ms"), report.figure(found, "ms"), f"{difference:+.1%}"])
    print(f"\n{name}: `{shlex.join(program.words)}`, n = {rounds} rounds of {STARTS}\n")
    print(report.table(["", "explain", "independent", "difference"], rows), flush=True)
    return agrees


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="PROGRAM", help=f"{', '.join(PROGRAMS)} (default: all); behind --: any command")
    parser.add_argument("-n", type=int, default=ROUNDS, metavar="N", help=f"rounds (default {ROUNDS})")
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    options, command = parser.parse_args(words[:at]), words[at + 1 :]
    if unknown := set(options.names) - set(PROGRAMS):
        parser.error(f"no such program: {', '.join(sorted(unknown))}; there are: {', '.join(PROGRAMS)}")
    if options.n < 1:
        parser.error("-n must be at least 1")
    programs = {}
    if command:
        programs[command[0]] = Program([shutil.which(command[0]) or command[0], *command[1:]], {})
    for name in options.names or ([] if command else PROGRAMS):
        try:
            programs[name] = PROGRAMS[name]()
        except workloads.Unavailable as reason:
            print(f"{name}: {reason}", file=sys.stderr)
            return 1
    return 0 if all([compare(name, program, options.n) for name, program in programs.items()]) else 1


if __name__ == "__main__":
    sys.exit(main())
