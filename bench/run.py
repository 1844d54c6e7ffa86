#!/usr/bin/env python3
"""The one harness: sets up, freezes and measures the scenarios of a plan, and stores what it found.

    bench/run.py                    scenarios.toml, 20 pairs each, into bench/results/<machine>-<date>.json
    bench/run.py --plan cold-boot   cold_boot.toml, into bench/results/<machine>-cold-boot-<date>.json; so for the other plans
    bench/run.py -n 3 --only 'web*' some, quickly; stored only where -o says (an existing file is added to)

A scenario that cannot run here, or whose image cannot be frozen, is stored with the reason instead of figures.
"""

import argparse
import dataclasses
import datetime
import fnmatch
import functools
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import measure  # noqa: E402
import plans  # noqa: E402
import report  # noqa: E402
import workloads  # noqa: E402

RESULTS = ROOT / "bench/results"
FREEZE_SECONDS = 900  # no freeze may take longer
OF_SERVERS = ("response", "rate", "footprint")
PLACEHOLDER = re.compile(r"\{([a-z0-9-]+)\.([a-z0-9-]+)\}")


class Unfrozen(Exception):
    """An image that a scenario needs could not be frozen; the text is what `snapboot freeze` said."""


def interpreter(version: str) -> str:
    """The newest CPython of that version, such as "3.11": pyenv's, else that on the PATH. Raises Unavailable."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    installed = [path for path in pyenv.glob(f"{version}.*/bin/python") if path.parts[-3].split(".")[-1].isdigit()]
    newest = max(installed, key=lambda path: int(path.parts[-3].split(".")[-1]), default=None)
    found = newest or shutil.which(f"python{version}")
    if found is None:
        raise workloads.Unavailable(f"CPython {version} was expected below {pyenv.name} of pyenv or on the PATH: pyenv install {version}")
    return str(found)


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

    def __init__(self, plan: dict, snapboot: str, directory: pathlib.Path, python: str | None = None):
        """python: whose workloads they are, such as "3.11"; None: those of the Python that runs this."""
        self.plan, self.snapboot, self.directory, self.python = plan, snapboot, directory, python
        self.frozen: dict[str, dict] = {}
        self.image = once(self.freeze)
        self.workload = once(self.prepare)

    def prepare(self, name: str) -> dict[str, str]:
        """What a workload offers. Raises Unavailable."""
        return workloads.prepare(name, interpreter(self.python)) if self.python else workloads.prepare(name)

    def words(self, template: list[str] | str, **local: str) -> list[str] | str:
        """Fill the placeholders of a word or a list of words."""
        if isinstance(template, list):
            return [self.words(word, **local) for word in template]
        for name, value in {"root": str(ROOT), "snapboot": self.snapboot, **local}.items():
            template = template.replace(f"{{{name}}}", value)
        return PLACEHOLDER.sub(lambda match: self.value(*match.groups()), template)

    def value(self, owner: str, name: str) -> str:
        return self.image(name) if owner == "image" else self.workload(owner)[name]

    def surroundings(self, table: dict, **local: str) -> tuple[str, dict[str, str]]:
        """Working directory and environment of an image or a case."""
        env = {name: self.words(value, **local) for name, value in table.get("env", {}).items()}
        return self.words(table.get("cwd", "{root}"), **local), workloads.clean_environment(**env)

    def freeze(self, name: str) -> str:
        """The path of image NAME, frozen now. Raises Unfrozen."""
        table = self.plan["image"][name]
        cwd, env = self.surroundings(table)
        path = self.directory / f"{name}.img"
        path.unlink(missing_ok=True)
        command = [self.snapboot, "freeze", "-o", str(path), *self.words(table["freeze"])]
        began = time.monotonic()
        try:
            limit = FREEZE_SECONDS
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
            if self.python:
                entry["python"] = workloads.python_version(interpreter(self.python))
            with tempfile.TemporaryDirectory(prefix="snapboot-") as directory:
                self.measure_cases(scenario, kind, rounds, pathlib.Path(directory), entry)
        except (measure.MeasureError, Unfrozen, workloads.Unavailable) as reason:
            entry["skipped"] = text_of(reason)
        finally:
            os.chdir(ROOT)
        entry["cases"] = {case: entry["cases"][case] for case in scenario["cases"] if case in entry["cases"]}
        return entry

    def measure_cases(self, scenario: dict, kind: str, rounds: int, directory: pathlib.Path, entry: dict) -> None:
        """Fill in the cases of `entry`. Raises MeasureError, Unfrozen or Unavailable when nothing can be measured."""
        local = {"socket": str(directory / "socket"), "cache": str(directory / "cache")}
        (directory / "cache").mkdir(mode=0o700)
        log = directory / "stderr"
        log.touch()
        commands: dict[str, Command] = {}
        for case in scenario["cases"]:
            try:
                commands[case] = self.command(scenario, case, str(log), local)
            except (Unfrozen, workloads.Unavailable) as reason:
                entry["cases"][case] = {"skipped": text_of(reason)}
        helper = self.words(scenario.get("background", []), **local)
        cwd, env = self.surroundings(scenario, **local)
        os.chdir(cwd)
        with Background(helper, measure.LOGGED | env):
            if kind not in OF_SERVERS:
                outputs = self.check(commands, entry)
                if kind != "printed":
                    entry["prints"] = same_output(outputs)
            takers = {
                case: functools.partial(command.sample, measure.KINDS[kind]) for case, command in commands.items()
            }
            rounds = max(min(rounds, scenario.get("rounds", rounds)), scenario.get("rounds_at_least", 1))
            samples = measure.interleaved(takers, rounds, scenario.get("warmup", 2))
        measure.refuse_fallback(log.read_text(errors="replace"))
        entry["cases"] |= {case: measure.summed_up(series) for case, series in samples.items()}

    def check(self, commands: dict[str, "Command"], entry: dict) -> dict[str, str]:
        """Run each case once. Returns what they print; one that does not do what it is measured for is left out, with the reason."""
        outputs = {}
        for case, command in list(commands.items()):
            try:
                outputs[case] = command.check()
            except measure.MeasureError as reason:
                entry["cases"][case] = {"skipped": text_of(reason)}
                del commands[case]
        return outputs

    def command(self, scenario: dict, case: str, log: str, local: dict[str, str]) -> "Command":
        """What is run for one case. Raises Unfrozen or Unavailable where that cannot be had."""
        own = self.plan.get("surroundings", {}).get(scenario.get("in", {}).get(case, case), {})
        table = {**scenario, **own, "env": {**scenario.get("env", {}), **own.get("env", {})}}
        cwd, env = self.surroundings(table, **local)
        return Command(
            argv=self.words(scenario["cases"][case], **local),
            env=env if own else measure.LOGGED | env,
            cwd=cwd,
            stderr=log,
            evicted=self.words(scenario.get("evict", {}).get(case, []), **local),
            removed=self.words(scenario.get("remove", {}).get(case, []), **local),
            traces=self.words(own.get("traces", []), **local),
            port=scenario.get("port"),
        )


@dataclasses.dataclass(frozen=True)
class Command:
    """A command, and what is done around each of its samples."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    stderr: str  # a file that is appended to
    evicted: list[str]  # files that are dropped from the page cache first
    removed: list[str]  # files and folders that are removed first
    port: int | None  # where a server listens that is always at one port
    traces: list[str]  # files that it leaves behind if it did what it is measured for

    def sample(self, kind) -> float:
        """One sample of that kind."""
        self.prepare()
        for path in self.evicted:
            measure.evict(path)
        return kind(self.argv, self.env, self.stderr, *([self.port] if self.port else []))

    def check(self) -> str:
        """Run it once, unmeasured, and return its standard output. Raises MeasureError when it fails or leaves no traces."""
        self.prepare()
        output = measure.check(self.argv, self.env)
        for path in self.traces:
            if not os.path.exists(path):
                raise measure.MeasureError(f"`{measure.shown(self.argv)}` left no {os.path.basename(path)}")
        return output

    def prepare(self) -> None:
        os.chdir(self.cwd)
        for path in self.removed:
            shutil.rmtree(path) if os.path.isdir(path) else pathlib.Path(path).unlink(missing_ok=True)


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


def text_of(reason: Exception) -> str:
    """The text of an exception without the place where this repository happens to lie."""
    return str(reason).replace(f"{ROOT}/", "")


def same_output(outputs: dict[str, str]) -> str:
    """What all cases print: measuring is only fair among programs that say the same. Raises MeasureError otherwise."""
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


def new_result(plan: str) -> dict:
    """A result without scenarios, of this moment, commit and machine."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"plan": plan, "date": now, "commit": commit(), "machine": this_machine(), "scenarios": {}}


def result_path(result: dict) -> pathlib.Path:
    """Where a result is stored: one file for each machine, plan and day."""
    machine, day = result["machine"], result["date"].partition("T")[0]
    slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\(.*?\)|@.*", "", machine["cpu"]).lower()).strip("-")
    name = "" if result["plan"] == "scenarios" else f"-{result['plan']}"
    return RESULTS / f"{slug}-{machine['cores']}cpu{name}-{day}.json"


def store(result: dict, path: pathlib.Path, further: str = "") -> None:
    """Write a result, and say where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"stored in {os.path.relpath(path)}{further}")


def spoken(entry: dict) -> str:
    """One line about a scenario, for whoever watches."""
    parts = []
    for case, figures in entry["cases"].items():
        parts.append(f"{case} {figures['median']:.3g}" if "median" in figures else f"{case} skipped")
    return ", ".join(parts + [f"({reason})" for reason in report.reasons(entry)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plan", default="scenarios", choices=plans.PLANS, help="what to measure (default: scenarios)")
    parser.add_argument("-n", type=int, default=20, metavar="N", help="samples of each case (default 20)")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="scenarios by name; may be repeated")
    parser.add_argument("-o", type=pathlib.Path, metavar="FILE", help="where to store; an existing file is added to")
    default = os.environ.get("SNAPBOOT", str(ROOT / "target/release/snapboot"))
    parser.add_argument("--snapboot", default=default, help="the command to measure (default: this build)")
    options = parser.parse_args()
    if options.n < 1:
        parser.error("-n must be at least 1")
    plan = plans.read(plans.PLANS[options.plan])
    wanted = [name for name in plan["scenario"] if any(fnmatch.fnmatch(name, p) for p in options.only or ["*"])]
    if not wanted:
        parser.error(f"no scenario matches; there are: {', '.join(plan['scenario'])}")

    images = workloads.WORK / "bench"
    images.mkdir(parents=True, exist_ok=True)
    snapboot = os.path.abspath(options.snapboot)
    benches = {python: Bench(plan, snapboot, images, python) for python in plan.get("pythons", [None])}
    result = new_result(options.plan)
    path = options.o or (None if options.only else result_path(result))
    if path and path.exists() and options.only:
        result["scenarios"] = json.loads(path.read_text())["scenarios"]
    for number, name in enumerate(wanted, 1):
        print(f"[{number}/{len(wanted)}] {name}: ", end="", flush=True)
        scenario = plan["scenario"][name]
        result["scenarios"][name] = benches[scenario.get("python")].measure(scenario, options.n)
        print(spoken(result["scenarios"][name]), flush=True)
    result["images"] = {name: image for bench in benches.values() for name, image in bench.frozen.items()}
    if path:
        store(result, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
