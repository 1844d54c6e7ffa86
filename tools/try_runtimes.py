#!/usr/bin/env python3
"""Tries the runtimes of other Debian systems, and writes the README's table of what was tried.

    tools/try_runtimes.py                        each runtime of each system in SYSTEMS
    tools/try_runtimes.py sid --only 3.15        some systems, and the runtimes whose name contains one of these texts
    tools/try_runtimes.py sid --parts archive    some parts; the stored results of the others stay
    tools/try_runtimes.py --write                run nothing, write the table from the stored results

tools/debian.sh makes the systems with debootstrap (root and the network are needed). Each runtime runs the parts in PARTS, complete: the
cases that `make test` leaves out, too. DEBIAN_SYSTEMS names a folder of systems that exist already, by suite.
"""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

import marked
from results import commit, counted, figure

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results/runtimes.json"
README = ROOT / "README.md"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What the tests of any runtime need; a system of tools/debian.sh has Python's venv, pytest and Ruby already.
PACKAGES = ("gcc", "libc6-dev", "binutils", "strace", "libcap2-bin", "util-linux", "bsdutils", "bundler", "ruby-dev", "python3-pytest")
RUBY_FOLDER = "/opt/ruby{version}"  # it has one Ruby under the name `ruby`, which the tests look for in PATH
# So long may the tests of a part take. All take minutes; what hangs ends.
SECONDS = 4 * 3600


@dataclasses.dataclass(frozen=True)
class Part:
    """A column of the table: its title, and what pytest is told to run for CPython and for Ruby.

    chosen_by: the expression for -k. A version stands for {version}.
    """

    title: str
    python: tuple[str, ...]
    ruby: tuple[str, ...]
    chosen_by: dict[str, str]


PARTS = {
    "behaviour": Part(
        "behaviour",
        ("tests/behaviour/test_behaviour.py",),
        ("tests/behaviour/test_behaviour.py",),
        {"python": "python{version}-", "ruby": "ruby{version}-"},
    ),
    "uniqueness": Part(
        "uniqueness",
        ("tests/images/test_uniqueness.py",),
        ("tests/images/test_uniqueness.py",),
        {"python": "not ruby", "ruby": "ruby"},
    ),
    "own": Part(
        "the runtime's own tests",
        ("tests/runtimes/test_cpython.py",),
        ("tests/runtimes/test_ruby.py",),
        {"python": "test_same_outcomes and {version}-", "ruby": "test_same_outcomes"},
    ),
    "archive": Part(
        "boot archive",
        ("tests/archive_python/test_cases.py", "tests/archive_python/test_code.py"),
        ("tests/archive/test_require.py", "tests/archive/test_data.py"),
        {"python": "{version}", "ruby": "cruby"},
    ),
}


@dataclasses.dataclass(frozen=True)
class Runtimes:
    """The minor versions that a Debian system has packages of."""

    pythons: tuple[str, ...]
    rubies: tuple[str, ...]


# Ruby 3.4 is in the suite experimental, which tools/debian.sh adds to sid.
SYSTEMS = {"trixie": Runtimes(("3.13",), ("3.3",)), "sid": Runtimes(("3.14", "3.15"), ("3.3", "3.4"))}


class Failed(Exception):
    """A system cannot be made, or a command there does not work. The text says why."""


@dataclasses.dataclass(frozen=True)
class Runtime:
    """One runtime of a system: `python` or `ruby`, its minor version, and its name with the full version."""

    language: str
    version: str
    name: str

    @property
    def runs_pytest(self) -> str:
        """The Python that the tests of it run with."""
        return f"python{self.version}" if self.language == "python" else "python3"


class System:
    """A Debian system in which tests can run."""

    def __init__(self, suite: str):
        self.suite = suite
        folder = pathlib.Path(os.environ.get("DEBIAN_SYSTEMS", ROOT / ".work/debian"))
        self.folder = folder / (suite if "DEBIAN_SYSTEMS" in os.environ else f"{suite}-tests")

    def run(self, *words: str, quiet: bool = True) -> str:
        """Runs a command there. Returns what it printed; if it is not quiet, that was shown. Raises Failed."""
        done = self.start(words, subprocess.PIPE if quiet else None)
        if done.returncode:
            raise Failed(f"`{' '.join(words)}` failed on {self.suite} with status {done.returncode}\n{(done.stdout or '')[-2000:]}")
        return done.stdout or ""

    def start(self, words: tuple[str, ...], output: int | None) -> subprocess.CompletedProcess:
        """Runs a command there, however it ends."""
        command = [ROOT / "tools/debian.sh", self.suite, "run", *words]
        env = {**os.environ, "DEBIAN_SYSTEM": str(self.folder)}
        return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output and subprocess.STDOUT, text=True)

    def prepare(self) -> None:
        """Makes the system, and installs what the tests need. Raises Failed."""
        pythons = [name for version in SYSTEMS[self.suite].pythons for name in python_packages(version)]
        rubies = [name for version in SYSTEMS[self.suite].rubies for name in (f"ruby{version}", f"ruby{version}-dev")]
        install = " ".join(["apt-get -qq -y install --no-install-recommends", *PACKAGES, *pythons, *rubies])
        # The first time, there are no lists of packages.
        self.run("env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", f"{install} 2> /dev/null || {{ apt-get -qq update && {install}; }}")
        for version in SYSTEMS[self.suite].rubies:
            folder = RUBY_FOLDER.format(version=version)
            self.run("mkdir", "-p", folder)
            self.run("ln", "-sfn", f"/usr/bin/ruby{version}", f"{folder}/ruby")

    def libc(self) -> str:
        """The version of its C library."""
        return self.run("ldd", "--version").split("\n")[0].split()[-1]

    def runtimes(self) -> list[Runtime]:
        """Its runtimes."""
        found = []
        for version in SYSTEMS[self.suite].pythons:
            printed = self.run(f"python{version}", "-c", "import platform; print(platform.python_version())").split()[-1]
            found.append(Runtime("python", version, f"CPython {printed}"))
        for version in SYSTEMS[self.suite].rubies:
            printed = self.run(f"ruby{version}", "-e", "puts RUBY_VERSION").split()[-1]
            found.append(Runtime("ruby", version, f"Ruby {printed}"))
        return found

    def try_part(self, part: Part, runtime: Runtime) -> dict:
        """Runs the tests of a part. Returns the numbers of those that passed and failed, which failed, and why some did not run."""
        name = f"runtimes/{runtime.language}{runtime.version}.xml"  # below .work; several runtimes may be tried at a time
        report = self.folder / "srv/work" / name
        report.unlink(missing_ok=True)
        words = [runtime.runs_pytest, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml=.work/{name}"]
        words += ["-k", part.chosen_by[runtime.language].format(version=runtime.version), *getattr(part, runtime.language)]
        settings = ["SNAPBOOT_ALL_TESTS=1", "SNAPBOOT_PYTHONS=all", "RUNTIME_TESTS=all"]
        if runtime.language == "ruby":
            settings.append(f"PATH={RUBY_FOLDER.format(version=runtime.version)}:{PATH}")
        self.start(("timeout", str(SECONDS), "env", *settings, *words), None)
        if not report.exists():
            raise Failed(f"pytest wrote no report of {' '.join(getattr(part, runtime.language))} on {self.suite}")
        return counted(report)


def python_packages(version: str) -> list[str]:
    """Debian's packages for a CPython and its own tests."""
    return [f"python{version}", f"python{version}-venv", f"python{version}-dev", f"libpython{version}-testsuite"]


def stored() -> dict:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"plan": "runtimes", "date": "", "systems": {}}


def store(suite: str, libc: str, runtime: str, part: str, result: dict) -> None:
    """Adds a result to the stored ones. An older version of the same runtime on that system goes away."""
    today = datetime.date.today().isoformat()
    all_results = stored()
    all_results["date"] = today
    system = all_results["systems"].setdefault(suite, {"libc": libc, "runtimes": {}})
    system["libc"] = libc
    kind = runtime.rpartition(".")[0]
    system["runtimes"] = {name: it for name, it in system["runtimes"].items() if name == runtime or name.rpartition(".")[0] != kind}
    system["runtimes"].setdefault(runtime, {})[part] = {"date": today, "commit": commit(), **result}
    RESULTS.write_text(json.dumps(all_results, indent=1, ensure_ascii=False) + "\n")


def table(results: dict) -> str:
    """The README's table of stored results."""
    heading = ["tried", "on", *(part.title for part in PARTS.values())]
    rows = [heading, ["---", "---", *["---:"] * len(PARTS)]]
    failed = []
    for suite, system in results["systems"].items():
        for runtime, parts in sorted(system["runtimes"].items(), key=lambda it: [int(n) for n in re.findall(r"\d+", it[0])]):
            rows.append([runtime, f"Debian {suite}, glibc {system['libc']}", *(figure(parts.get(part)) for part in PARTS)])
            failed += [f"{runtime}, {PARTS[part].title}: {name}" for part in PARTS for name in parts.get(part, {}).get("failed", [])]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    dates = sorted({it["date"] for system in results["systems"].values() for parts in system["runtimes"].values() for it in parts.values()})
    when = " to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else "never"
    text = f"Tests that passed, of those that can run there; `make runtimes` ran them ({when})."
    if failed:
        text += " Failed: " + "; ".join(f"`{name}`" for name in failed) + "."
    return "\n".join([*lines, "", text])


def write() -> None:
    """Writes the table into the README."""
    README.write_text(marked.filled_in(README.read_text(), table(stored()), tool="tools/try_runtimes.py"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=f"some of {', '.join(SYSTEMS)}")
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="runtimes with one of these in their names")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS), help="only these")
    parser.add_argument("--write", action="store_true", help="only write the README's table")
    options = parser.parse_args()
    if unknown := set(options.systems) - set(SYSTEMS):
        parser.error(f"no such system: {', '.join(sorted(unknown))}; there are: {', '.join(SYSTEMS)}")
    good = True
    try:
        for suite in [] if options.write else options.systems or SYSTEMS:
            good &= try_system(System(suite), options.only, options.parts)
    except Failed as reason:
        print(f"cannot try: {reason}", file=sys.stderr)
        return 1
    write()
    return 0 if good else 1


def try_system(system: System, only: list[str], parts: list[str]) -> bool:
    """Tries the runtimes of a system, and stores each result when it is there. Returns whether every test passed. Raises Failed."""
    system.prepare()
    libc, good = system.libc(), True
    for runtime in system.runtimes():
        if not any(text in runtime.name for text in only):
            continue
        for part in parts:
            print(f"==== {system.suite}, {runtime.name}: {PARTS[part].title}", flush=True)
            result = system.try_part(PARTS[part], runtime)
            store(system.suite, libc, runtime.name, part, result)
            good &= not result["failed"]
    return good


if __name__ == "__main__":
    sys.exit(main())
