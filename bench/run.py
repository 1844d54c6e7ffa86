#!/usr/bin/env python3
"""The one harness: sets up, freezes and measures the scenarios of scenarios.toml, and stores what it found.

    bench/run.py                    everything, 20 pairs each, into bench/results/<machine>-<date>.json
    bench/run.py -n 3 --only 'web*' some, quickly; stored only where -o says (an existing file is added to)

A scenario that cannot run here, or whose image cannot be frozen, is stored with the reason instead of figures.
"""

import argparse
import datetime
import fnmatch
import functools
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import measure  # noqa: E402
import workloads  # noqa: E402

SCENARIOS = ROOT / "bench/scenarios.toml"
RESULTS = ROOT / "bench/results"
PLACEHOLDER = re.compile(r"\{([a-z0-9-]+)\.([a-z0-9-]+)\}")


class Unfrozen(Exception):
    """An image that a scenario needs could not be frozen; the text is what `snapboot freeze` said."""


def once(make):
    """`make(name)`, called once for each name; what it returned or raised is kept."""
    kept: dict = {}

    def kept_or_made(name: str):
        if name not in kept:
            try:
                kept[name] = make(name)
            except Exception as error:
                kept[name] = error
        if isinstance(kept[name], Exception):
            raise kept[name]
        return kept[name]

    return kept_or_made


class Bench:
    """The images and workloads of one run; each is made when a scenario first asks for it, and once."""

    def __init__(self, plan: dict, snapboot: str, directory: pathlib.Path):
        self.plan, self.snapboot, self.directory = plan, snapboot, directory
        self.frozen: dict[str, dict] = {}
        self.image = once(self.freeze)
        self.workload = once(workloads.prepare)

    def words(self, template: list[str] | str, **local: str) -> list[str] | str:
        """Fill the placeholders of a word or a list of words."""
        if isinstance(template, list):
            return [self.words(word, **local) for word in template]
        for name, value in {"root": str(ROOT), **local}.items():
            template = template.replace(f"{{{name}}}", value)
        return PLACEHOLDER.sub(lambda match: self.value(*match.groups()), template)

    def value(self, owner: str, name: str) -> str:
        return self.image(name) if owner == "image" else self.workload(owner)[name]

    def surroundings(self, table: dict) -> tuple[str, dict[str, str]]:
        """Working directory and environment of an image or a scenario."""
        env = {name: self.words(value) for name, value in table.get("env", {}).items()}
        return self.words(table.get("cwd", "{root}")), workloads.clean_environment(**env)

    def freeze(self, name: str) -> str:
        """The path of image NAME, frozen now. Raises Unfrozen."""
        table = self.plan["image"][name]
        cwd, env = self.surroundings(table)
        path = self.directory / f"{name}.img"
        path.unlink(missing_ok=True)
        command = [self.snapboot, "freeze", "-o", str(path), *self.words(table["freeze"])]
        began = time.monotonic()
        try:
            limit = measure.LIMIT_SECONDS
            done = subprocess.run(
                command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit
            )
        except FileNotFoundError:
            raise Unfrozen(f"{self.snapboot} is not there: run `make build` first") from None
        except subprocess.TimeoutExpired:
            raise Unfrozen(f"freezing {name} took longer than {limit} s") from None
        if done.returncode != 0 or not path.exists():
            tail = " ".join(done.stderr.split())[-400:]
            raise Unfrozen(f"`snapboot freeze` ended with {done.returncode}: {tail}")
        megabytes = path.stat().st_blocks * 512 / 1e6
        self.frozen[name] = {"seconds": round(time.monotonic() - began, 2), "megabytes": round(megabytes, 1)}
        return str(path)

    def measure(self, scenario: dict, rounds: int) -> dict:
        """Run one scenario. Returns its entry in the results: figures by case, or why there are none."""
        kind = scenario.get("kind", "time")
        entry: dict = {"kind": kind, "cases": {}}
        try:
            with tempfile.TemporaryDirectory(prefix="snapboot-") as directory:
                self.measure_cases(scenario, kind, rounds, pathlib.Path(directory), entry)
        except (measure.MeasureError, Unfrozen, workloads.Unavailable) as reason:
            entry["skipped"] = told(reason)
        finally:
            os.chdir(ROOT)
        entry["cases"] = {case: entry["cases"][case] for case in scenario["cases"] if case in entry["cases"]}
        return entry

    def measure_cases(self, scenario: dict, kind: str, rounds: int, directory: pathlib.Path, entry: dict) -> None:
        """Fill in the cases of `entry`. Raises MeasureError, Unfrozen or Unavailable when nothing can be measured."""
        cwd, env = self.surroundings(scenario)
        env |= measure.LOGGED
        local = {"socket": str(directory / "socket")}
        commands = {}
        for case, template in scenario["cases"].items():
            try:
                commands[case] = self.words(template, **local)
            except (Unfrozen, workloads.Unavailable) as reason:
                entry["cases"][case] = {"skipped": told(reason)}
        evicted = {case: self.words(scenario.get("evict", {}).get(case, [])) for case in commands}
        helper = self.words(scenario.get("background", []), **local)
        log = directory / "stderr"
        log.touch()
        os.chdir(cwd)
        with Background(helper, env):
            if kind in ("time", "memory"):
                entry["prints"] = same_output(commands, env)
            takers = {
                case: functools.partial(take, measure.KINDS[kind], argv, env, str(log), evicted[case])
                for case, argv in commands.items()
            }
            samples = measure.interleaved(takers, rounds)
        measure.refuse_fallback(log.read_text(errors="replace"))
        entry["cases"] |= {case: measure.summed_up(series) for case, series in samples.items()}


class Background:
    """A helper process that lives as long as a scenario is measured; none when its command is empty."""

    def __init__(self, argv: list[str], env: dict[str, str]):
        self.argv, self.env = argv, env

    def __enter__(self):
        if self.argv:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self.process = subprocess.Popen(self.argv, env=self.env, **pipes)
            if not self.process.stdout.readline():
                raise measure.MeasureError(f"`{measure.shown(self.argv)}` did not get ready")

    def __exit__(self, *_):
        if self.argv:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait(measure.LIMIT_SECONDS)


def told(reason: Exception) -> str:
    """The text of an exception without the place where this repository happens to lie."""
    return str(reason).replace(f"{ROOT}/", "")


def take(kind, argv: list[str], env: dict[str, str], stderr: str, evicted: list[str]) -> float:
    """One sample, after dropping files from the page cache."""
    for path in evicted:
        measure.evict(path)
    return kind(argv, env, stderr)


def same_output(commands: dict[str, list[str]], env: dict[str, str]) -> str:
    """What all cases print: measuring is only fair among programs that say the same. Raises MeasureError otherwise."""
    outputs = {case: measure.check(argv, env) for case, argv in commands.items()}
    if len(set(outputs.values())) > 1:
        listed = "; ".join(f"{case} printed {output[:60]!r}" for case, output in outputs.items())
        raise measure.MeasureError(f"the cases should print the same: {listed}")
    return next(iter(outputs.values()), "")[:60]


def this_machine() -> dict:
    """What a reader needs to know about the machine, and no name or address of it."""
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()
    cpu = re.search(r"^model name\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    memory = re.search(r"MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text())
    release = platform.freedesktop_os_release()
    return {
        "cpu": cpu.group(1).strip() if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(int(memory.group(1)) * 1024 / 1e9) if memory else None,
        "kernel": platform.release().split("-")[0],
        "system": release.get("PRETTY_NAME", "Linux"),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "ruby": first_line(["ruby", "--version"]),
    }


def first_line(argv: list[str]) -> str | None:
    try:
        output = subprocess.run(argv, env=workloads.clean_environment(), capture_output=True, text=True).stdout
    except FileNotFoundError:
        return None
    return (output.splitlines() or [None])[0]


def commit() -> str | None:
    revision = first_line(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"])
    dirty = first_line(["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no"])
    return f"{revision} with changes" if revision and dirty else revision


def result_path(machine: dict, date: str) -> pathlib.Path:
    slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\(.*?\)|@.*", "", machine["cpu"]).lower()).strip("-")
    return RESULTS / f"{slug}-{machine['cores']}cpu-{date}.json"


def spoken(entry: dict) -> str:
    """One line about a scenario, for whoever watches."""
    parts = []
    for case, figures in entry["cases"].items():
        parts.append(f"{case} {figures['median']:.3g}" if "median" in figures else f"{case} skipped")
    reasons = [entry.get("skipped"), *(figures.get("skipped") for figures in entry["cases"].values())]
    return ", ".join(parts + [f"({reason})" for reason in dict.fromkeys(reasons) if reason])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=20, metavar="N", help="samples of each case (default 20)")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="scenarios by name; may be repeated")
    parser.add_argument("-o", type=pathlib.Path, metavar="FILE", help="where to store; an existing file is added to")
    default = os.environ.get("SNAPBOOT", str(ROOT / "target/release/snapboot"))
    parser.add_argument("--snapboot", default=default, help="the command to measure (default: this build)")
    options = parser.parse_args()
    if options.n < 1:
        parser.error("-n must be at least 1")
    plan = tomllib.loads(SCENARIOS.read_text())
    wanted = [name for name in plan["scenario"] if any(fnmatch.fnmatch(name, p) for p in options.only or ["*"])]
    if not wanted:
        parser.error(f"no scenario matches; there are: {', '.join(plan['scenario'])}")

    images = workloads.WORK / "bench"
    images.mkdir(parents=True, exist_ok=True)
    bench = Bench(plan, os.path.abspath(options.snapboot), images)
    now = datetime.datetime.now(datetime.UTC)
    machine = this_machine()
    result = {"date": now.isoformat(timespec="seconds"), "commit": commit(), "machine": machine, "scenarios": {}}
    path = options.o or (None if options.only else result_path(machine, now.date().isoformat()))
    if path and path.exists() and options.only:
        result["scenarios"] = json.loads(path.read_text())["scenarios"]
    for number, name in enumerate(wanted, 1):
        print(f"[{number}/{len(wanted)}] {name}: ", end="", flush=True)
        result["scenarios"][name] = bench.measure(plan["scenario"][name], options.n)
        print(spoken(result["scenarios"][name]), flush=True)
    result["images"] = bench.frozen
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(f"stored in {os.path.relpath(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
