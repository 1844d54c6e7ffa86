#!/usr/bin/env python3
"""Types what a new user types in his first half hour in an enabled environment (half_hour.toml), and compares it with ordinary starts.

    bench/half_hour.py                  Python and Ruby, 7 starts of each thing, into bench/results/<machine>-half-hour-<date>.json
    bench/half_hour.py -n 3 python      one of the two; stored nowhere
    bench/half_hour.py python black     some of its things

Python is a new virtual environment; Ruby is that of the machine, with another folder for what the site adds. `snapboot enable` is all that
is done to them. From the third start on, each start must thaw, and print what an ordinary one prints. After `snapboot disable` every file
must be as it was before. If not, nothing is stored, and the exit status is 1.
"""

import argparse
import hashlib
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]

import edits  # noqa: E402
import measure  # noqa: E402
import plans  # noqa: E402
import report  # noqa: E402
import run as harness  # noqa: E402
import workloads  # noqa: E402

PROGRAMS = ROOT / "bench/programs/half_hour"
# A mount of this script's own is seen by nobody else, and is gone with it.
UNSHARE = ["unshare", "--mount", "--propagation", "private"]
HAS_MOUNTS = "SNAPBOOT_HALF_HOUR"
# Starts before the first that must thaw.
FIRST_STARTS = 2
# What no two starts print alike: durations and rates.
VARYING = re.compile(r"\d+\.\d+(e-\d+)?(?= ?(s|ms|seconds?|runs/s|assertions/s)\b)")
OWN = "snapboot: "
SCENARIOS = plans.read(plans.HALF_HOUR)["scenario"]


class HalfHour:
    """An enabled environment with a project and a store of its own. `environment` is what `snapboot enable` gets."""

    edits: dict[str, edits.Edit]
    variables: dict[str, str] = {}

    def __init__(self, top: pathlib.Path):
        self.top, self.store = top, top / "store"
        self.folder = edits.Folder(top / "project")
        self.folder.top.mkdir()
        (top / "home").mkdir()
        self.environment = self.prepare()
        (self.folder.top / ".git").mkdir(exist_ok=True)
        path = os.pathsep.join([str(self.environment / "bin"), os.environ["PATH"]])
        given = {"HOME": str(top / "home"), "PATH": path, "SNAPBOOT_STORE": str(self.store), "SNAPBOOT_STATE": str(top / "state")}
        self.env = workloads.clean_environment(SNAPBOOT_LOG="1", **given, **self.variables)

    def prepare(self) -> pathlib.Path:
        """Makes environment and project. Returns the environment's directory."""
        raise NotImplementedError

    def changed_place(self) -> pathlib.Path:
        """The directory in which `snapboot enable` may write."""
        return self.environment

    def switch(self, word: str) -> None:
        """`snapboot enable`, or another word."""
        subprocess.run([edits.SNAPBOOT, word, "-q", self.environment], env=self.env, check=True)

    def start(self, scenario: dict, **variables: str) -> tuple[float, subprocess.CompletedProcess]:
        """Starts what is typed. Returns milliseconds and what it printed."""
        env, begun = {**self.env, **scenario.get("env", {}), **variables}, time.perf_counter()
        done = subprocess.run(
            scenario["cases"]["thawed"], cwd=self.folder.top, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=measure.LIMIT_SECONDS,
        )  # fmt: skip
        return (time.perf_counter() - begun) * 1000, done

    def thawed(self) -> int:
        """How many starts of this store have thawed."""
        listed = subprocess.run([edits.SNAPBOOT, "list", "--json"], env=self.env, capture_output=True, text=True, check=True)
        return sum(row["thawed"] for row in json.loads(listed.stdout))

    def pair(self, scenario: dict) -> dict:
        """A start in the enabled environment and an ordinary one: their times, whether the former thawed, and what differs."""
        before = self.thawed()
        ours, one = self.start(scenario)
        is_thawed = self.thawed() > before
        ordinary, other = self.start(scenario, SNAPBOOT="off")
        wrong = None if shown(one) == shown(other) else {"enabled": shown(one), "ordinary": shown(other)}
        said = [line for line in one.stderr.splitlines() if line.startswith(OWN)]
        # Another image may have served it than the first one that was tried.
        is_thawed = is_thawed and not any(measure.FALLBACK in line for line in said)
        return {"ordinary": ordinary, "thawed": ours, "is thawed": is_thawed, "said": said, "wrong": wrong}

    def typed(self, name: str, count: int) -> list[dict]:
        """Starts it until it was started `count` times from the third start on. Returns all pairs, the first starts in front."""
        scenario, pairs = SCENARIOS[name], []
        kinds = scenario.get("edits", [])
        for number in range(FIRST_STARTS + count):
            if kinds:
                self.edits[kinds[number % len(kinds)]](self.folder)
            pairs.append(self.pair(scenario))
            edits.wait_until_idle(self.store)
        return pairs


def shown(done: subprocess.CompletedProcess) -> tuple:
    """What a start shows, without what no two starts show alike and what Snapboot says."""
    own = "".join(line for line in done.stderr.splitlines(True) if not line.startswith(OWN))
    return done.returncode, VARYING.sub("N", done.stdout), VARYING.sub("N", own)


def state_of(directory: pathlib.Path) -> dict[str, str]:
    """All files and folders below a directory, with modes and contents. What Python compiles at any start is left out."""
    state = {}
    for path in sorted(directory.rglob("*")):
        if "__pycache__" not in path.parts:
            content = os.readlink(path) if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            state[str(path.relative_to(directory))] = f"{path.lstat().st_mode:o} {content}"
    return state


class Python(HalfHour):
    """A virtual environment with a project of Django."""

    edits = {**edits.DJANGO, **edits.PYTEST}
    packages = ("django", "pytest", "pytest-django", "black", "nbconvert", "ipykernel", "jupytext", "httpie")

    def prepare(self) -> pathlib.Path:
        workloads.build_venv(self.top, {}, sys.executable, self.packages)
        environment = self.top / "venv"
        subprocess.run([environment / "bin/django-admin", "startproject", "skel", self.folder.top], check=True)
        edits.add_shop(self.folder)
        shutil.copytree(PROGRAMS / "python", self.folder.top, dirs_exist_ok=True)
        (packages,) = environment.glob("lib/python3*/site-packages")
        (packages / "shop.pth").write_text(f"{self.folder.top / 'lib/site-packages'}\n")
        return environment


class Ruby(HalfHour):
    """The Ruby of the machine, with a project of Rails whose Gemfile has nothing but what Debian has."""

    edits = {**edits.RAILS, "basket": lambda folder: folder.insert("tools/basket.rb", "class Basket", "  PRICE{n} = {n}")}
    variables = {"RAILS_ENV": "test"}  # that of development wants a gem which the project does without

    def prepare(self) -> pathlib.Path:
        workloads.install_debian_packages(("ruby-rspec", "rubocop", "rake"))
        edits.prepare_rails(self.folder)
        shutil.copytree(PROGRAMS / "ruby", self.folder.top, dirs_exist_ok=True)
        ruby = pathlib.Path(shutil.which("ruby"))
        ask = "print RbConfig::CONFIG['sitelibdir']"
        site = pathlib.Path(subprocess.run([ruby, "-e", ask], capture_output=True, text=True, check=True).stdout)
        below = next(path for path in site.parents if path.is_dir())
        self.added, work = self.top / "added", self.top / "work"
        self.added.mkdir(), work.mkdir()
        options = f"lowerdir={below},upperdir={self.added},workdir={work}"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, below], check=True)
        return ruby.parent.parent

    def changed_place(self) -> pathlib.Path:
        return self.added


HALF_HOURS = {"python": Python, "ruby": Ruby}


def lived(half_hour: HalfHour, names: list[str], count: int) -> tuple[dict[str, list[dict]], list[str]]:
    """Enables the environment, types these things, and disables it again. Returns the pairs of each, and the files that are other ones
    then. Those of the third start on are told as they come."""
    before = state_of(half_hour.changed_place())
    half_hour.switch("enable")
    pairs = {}
    for name in names:
        pairs[name] = half_hour.typed(name, count)
        print(f"{name}: {spoken(pairs[name])}", flush=True)
    half_hour.switch("disable")
    after = state_of(half_hour.changed_place())
    return pairs, [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]


def spoken(pairs: list[dict]) -> str:
    """One line about what was typed, and one for each start that was not as it should be."""
    later = pairs[FIRST_STARTS:]
    lines = [f"{harness.spoken(entry_with(pairs))}, median of the ratios {entry_with(pairs)['median ratio']:.3f}"]
    lines += [f"did not thaw: {' '.join(pair['said']) or 'nothing was said'}" for pair in later if not pair["is thawed"]]
    lines += [f"differs: {json.dumps(pair['wrong'])}" for pair in pairs if pair["wrong"]]
    return "\n  ".join(lines)


def entry_with(pairs: list[dict]) -> dict:
    """The entry of a thing in the results, of the third start and later ones."""
    later = pairs[FIRST_STARTS:]
    ratio = statistics.median(pair["thawed"] / pair["ordinary"] for pair in later)
    return {"cases": {case: measure.summed_up([pair[case] for pair in later]) for case in report.PAIR}, "median ratio": ratio}


def is_right(pairs: list[dict]) -> bool:
    """Whether all starts showed what ordinary ones show, and thawed from the third on."""
    return not any(pair["wrong"] for pair in pairs) and all(pair["is thawed"] for pair in pairs[FIRST_STARTS:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("language", nargs="?", choices=HALF_HOURS, help="one of them, stored nowhere (default: both)")
    parser.add_argument("names", nargs="*", metavar="THING", help="some of its things (default: all)")
    parser.add_argument("-n", type=int, default=7, metavar="N", help="starts of each thing, from the third on (default 7)")
    options = parser.parse_args()
    if not os.environ.get(HAS_MOUNTS):
        os.execvpe("unshare", [*UNSHARE, sys.executable, *sys.argv], os.environ | {HAS_MOUNTS: "1"})
    result = harness.new_result("half-hour")
    status = 0
    for language in [options.language] if options.language else HALF_HOURS:
        own = [name for name in SCENARIOS if name.startswith(f"{language}-")]
        names = [f"{language}-{name}" for name in options.names] or own
        if unknown := set(names) - set(own):
            parser.error(f"not in half_hour.toml: {', '.join(sorted(unknown))}")
        with tempfile.TemporaryDirectory(prefix="snapboot-half-hour-") as top:
            pairs, changed = lived(HALF_HOURS[language](pathlib.Path(top)), names, options.n)
        result["scenarios"] |= {name: entry_with(pairs[name]) for name in names}
        print(f"{language}: files that `snapboot disable` has left otherwise: {', '.join(changed) or 'none'}", flush=True)
        if changed or not all(map(is_right, pairs.values())):
            status = 1
    if status == 0 and not options.language:
        harness.store(result, harness.result_path(result))
    return status


if __name__ == "__main__":
    sys.exit(main())
