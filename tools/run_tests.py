#!/usr/bin/env python3
"""Runs every test suite, shows what they print, and sums them up in a plain last line: N passed, N failed, N skipped.

The suites: cargo's; pytest for tests/, with suites of their own for the longest folders (see FOLDERS); minitest for tests/ruby/
and ruby/. Some run at the same time, the longest first; their output is shown one suite after the other. First come the Debian
packages that any test needs, then a snapshot of the machine (tools/snapshot.py), so that nothing changes under the tests.

Of the longest tables of cases a sample is run (the mark `sample`), always the same; all of them with SNAPBOOT_ALL_TESTS=1.

The closing lines name every failed test with what it says, and the reason of every skipped one. In CI (the variable CI is set) a reason
that tests/known_gaps.toml does not know makes its tests failures. A suite that cannot run here counts as one skipped test; one that ends
badly without naming a failed test counts as one failed.

    tools/run_tests.py                all suites
    tools/run_tests.py rust python    some; what follows -- goes to pytest
"""

import argparse
import collections
import contextlib
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

import gaps
import snapshot
import workloads
from workloads import ROOT, WORK, Unavailable

SUITE_SECONDS = 14_400  # for what hangs: beside other work a suite can take most of an hour
# Variables that act on the runtimes under test, where a suite sets the ones that it is about; and those of the make that may have
# started this.
REMOVED = ("PYTHON", "RUBY", "GEM_", "BUNDLE_", "RAILS_", "RACK_", "DJANGO_", "LD_", "MALLOC_", "SNAPBOOT_", "MAKE", "MFLAGS")
# What the tests themselves listen to.
KEPT = (
    "RUNTIME_TESTS",
    "SNAPBOOT_ALL_TESTS",
    "SNAPBOOT_BEHAVIOUR_FOLDER",
    "SNAPBOOT_CONTAINERS",
    "SNAPBOOT_DAMAGES",
    "SNAPBOOT_FAULT_ROUNDS",
    "SNAPBOOT_FREEZE_OPTIONS",
    "SNAPBOOT_NO_INSTALLS",
    "SNAPBOOT_PYTHONS",
    "SNAPBOOT_RUBIES",
    "SNAPBOOT_SEED",
    "SNAPBOOT_STEPS",
    "SNAPBOOT_STRANGERS",
    "SNAPBOOT_SWEEP",
    "SNAPBOOT_THAWS",
)
MESSAGE = 600  # characters of a failed test's message that the closing lines show
MOST_FILES = 20  # that the closing lines name, with their CPU time
# So many suites run at once: tests wait for more than the processor.
AT_ONCE = 2 * (os.cpu_count() or 2)
# Suites of one folder of tests/ each, without the folders in it that are suites of their own. The suite python runs the rest.
FOLDERS = {
    "images": "tests/images",
    "servers": "tests/servers",
    "staleness": "tests/staleness",
    "behaviour": "tests/behaviour",
    "archive": "tests/archive",
    "boots": "tests/archive/boots",
    "archive_python": "tests/archive_python",
    "sweep": "tests/sweep",
    "runtimes": "tests/runtimes",
}


# What a test says that cannot run here, where its runner does not name reasons.
NOT_TRIED = re.compile(r"^not tried: (.*)", re.MULTILINE)
# How pytest ends where some tests are not in the sample (tests/conftest.py).
DESELECTED = re.compile(r"^.* (\d+) deselected.* in .*s", re.MULTILINE)


class Count:
    """How many tests of a suite passed, failed and were skipped."""

    def __init__(self, passed: int = 0, failed: int = 0, skipped: int = 0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def __add__(self, other: "Count") -> "Count":
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def environment() -> dict[str, str]:
    """What the suites inherit: everything but what would act on the runtimes under test, and which snapboot to test."""
    inherited = {
        name: value for name, value in os.environ.items() if name in KEPT or not name.startswith(REMOVED)
    }
    return {"SNAPBOOT": str(ROOT / "target/release/snapboot"), **inherited}


class Suite(threading.Thread):
    """One suite while it runs, in a thread of its own, and what came of it: `skipped` has the reason of each skipped test."""

    def __init__(self, name: str, arguments: list[str], turns: contextlib.AbstractContextManager | None = None):
        super().__init__(name=name, daemon=True)
        self.arguments, self.turns = arguments, turns or contextlib.nullcontext()
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()  # None: that was all
        self.count, self.notes, self.skipped = Count(), [], []
        self.failed: list[str] = []  # a line for each failed test: its name and what it says
        self.left_out = 0  # tests that are not in the sample
        self.costs: collections.Counter[str] = collections.Counter()  # test file -> seconds of CPU time, in suites of pytest
        self.busy = 0.0  # seconds of CPU time, which hardly depend on what else the machine does

    def run(self) -> None:
        with self.turns:
            self.take_turn()

    def take_turn(self) -> None:
        began, status = time.monotonic(), 0
        try:
            self.count, status = SUITES[self.name](self)
        except Unavailable as reason:
            self.skipped = [f"the suite {self.name} cannot run: {reason}"]
        except Exception as error:  # a thread must not end in silence
            self.notes.append(f"{self.name} could not be run: {error!r}")
            status = 1
        if status != 0 and self.count.failed == 0:
            self.count += Count(failed=1)
            self.notes.append(f"{self.name} ended with status {status} and named no failed test")
        self.count += Count(skipped=len(self.skipped))
        self.notes.append(f"{self.name}: {self.count} ({time.monotonic() - began:.0f} s, {self.busy:.0f} s of CPU time)")
        self.lines.put(None)

    def command(self, argv: list) -> tuple[str, int]:
        """Run the suite's command. Returns its output and its exit status."""
        process = subprocess.Popen(
            [str(word) for word in argv],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        limit = threading.Timer(SUITE_SECONDS, process.kill)
        limit.start()
        output = []
        for line in process.stdout:
            self.lines.put(line)
            output.append(line)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status = os.waitstatus_to_exitcode(status)
        self.busy += used.ru_utime + used.ru_stime
        limit.cancel()
        if status < 0:
            self.notes.append(f"{self.name} was ended by signal {-status} (the limit is {SUITE_SECONDS} s)")
        return "".join(output), status

    def show(self) -> None:
        """Print what the suite says, until it has ended."""
        print(f"\n==== {self.name} ====", flush=True)
        for line in iter(self.lines.get, None):
            print(line, end="", flush=True)


def tests(pattern: str, *directories: str) -> list[pathlib.Path]:
    """The test files of that name under these directories of the repository."""
    return sorted(path for directory in directories for path in (ROOT / directory).rglob(pattern))


def rust(suite: Suite) -> tuple[Count, int]:
    if not shutil.which("cargo"):
        raise Unavailable("cargo is missing: install Rust's stable toolchain")
    output, status = suite.command(["cargo", "test", "--workspace", "--no-fail-fast", "--", "--show-output"])
    suite.failed += re.findall(r"^test (.+) \.\.\. FAILED$", output, re.MULTILINE)
    results = re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", output, re.MULTILINE)
    suite.skipped += ["ignored"] * sum(int(ignored) for _, _, ignored in results)
    not_tried = NOT_TRIED.findall(output)  # such a test passes, for cargo
    suite.skipped += not_tried
    return sum((Count(int(passed), int(failed)) for passed, failed, _ in results), Count(passed=-len(not_tried))), status


def python(suite: Suite) -> tuple[Count, int]:
    return pytest(suite, below("tests"))


def folder(suite: Suite) -> tuple[Count, int]:
    return pytest(suite, below(FOLDERS[suite.name]))


def below(top: str) -> list[str]:
    """What pytest is told to run all of a folder that is in no other suite."""
    return [top, *(f"--ignore={folder}" for folder in FOLDERS.values() if folder.startswith(f"{top}/"))]


def pytest(suite: Suite, arguments: list[str]) -> tuple[Count, int]:
    report = WORK / f"{suite.name}.xml"
    report.unlink(missing_ok=True)
    # The folders of tests hold images, 20 GB in all: they are removed as the tests pass.
    settings = {"cache_dir": WORK / "pytest-cache", "tmp_path_retention_policy": "failed"}
    options = ["-q", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}")), f"--junitxml={report}"]
    interpreter = workloads.prepare("tools")["python"]
    output, status = suite.command([interpreter, "-m", "pytest", *options, *(suite.arguments or arguments)])
    suite.left_out = sum(map(int, DESELECTED.findall(output)[-1:]))
    if not report.exists():
        return Count(), status
    total = Count()
    for part in xml.etree.ElementTree.parse(report).iter("testsuite"):
        failed = int(part.get("failures")) + int(part.get("errors"))
        reasons = [skip.get("message") for skip in part.iter("skipped")]
        for case in part.iter("testcase"):
            cost = sum(float(it.get("value")) for it in case.iter("property") if it.get("name") == "cpu")
            suite.costs[case.get("classname").replace(".", "/") + ".py"] += cost
            for outcome in (*case.iter("failure"), *case.iter("error")):
                suite.failed.append(f"{case.get('classname')} {case.get('name')}: {message(outcome)}")
        suite.skipped += reasons
        total += Count(int(part.get("tests")) - failed - len(reasons), failed)
    return total, status


def message(outcome: xml.etree.ElementTree.Element) -> str:
    """The start and the end of what a failed test of a report says, in one line."""
    explained = re.findall(r"^E +(.*)", outcome.text or "", re.MULTILINE) or [outcome.get("message")]
    line = " ".join(" ".join(explained).split())
    return line if len(line) <= MESSAGE else f"{line[: MESSAGE // 2]} […] {line[-MESSAGE // 2 :]}"


def ruby(suite: Suite) -> tuple[Count, int]:
    interpreter = workloads.prepare("ruby")["ruby"]
    files = [path for path in tests("*.rb", "tests", "ruby") if re.search(r"(^test_.*|_test)\.rb$", path.name)]
    if not files:
        return Count(), 0
    load = "require 'minitest/autorun'; require 'support/not_tried'; ARGV.each { |file| require file }; ARGV.clear"
    output, status = suite.command(
        [interpreter, f"-I{ROOT / 'ruby/lib'}", f"-I{ROOT / 'tests/ruby'}", "-e", load, "--", *files]
    )
    suite.failed += re.findall(r"^ *\d+\) (?:Failure|Error):\n(.+)", output, re.MULTILINE)
    count = Count()
    pattern = r"^(\d+) runs, \d+ assertions, (\d+) failures, (\d+) errors, (\d+) skips"
    for runs, failures, errors, skips in re.findall(pattern, output, re.MULTILINE):
        failed = int(failures) + int(errors)
        count += Count(int(runs) - failed - int(skips), failed)
    suite.skipped += NOT_TRIED.findall(output)
    return count, status


# The longest first, as the closing lines tell: what is left to the end runs alone.
FIRST = dict.fromkeys(("images", "staleness", "servers"), folder)
SUITES = FIRST | {"python": python, "rust": rust, **dict.fromkeys(FOLDERS, folder), "ruby": ruby}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"any of: {', '.join(SUITES)} (default: all)")
    own = sys.argv[1:]
    own, passed_on = (own[: own.index("--")], own[own.index("--") + 1 :]) if "--" in own else (own, [])
    options = parser.parse_args(own)
    if unknown := set(options.suites) - set(SUITES):
        parser.error(f"no such suite: {', '.join(sorted(unknown))}; there are: {', '.join(SUITES)}")
    # Whoever starts this in the background has them ignored, and that would be passed on to every program under test.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    names = options.suites or list(SUITES)
    turns = threading.BoundedSemaphore(AT_ONCE)
    suites = [Suite(name, passed_on, turns) for name in names]
    if names != ["rust"]:
        workloads.install_all_debian_packages()
    with undisturbed() as notes:
        for suite in suites:
            suite.start()
        for suite in suites:
            suite.show()
    notes += [note for suite in suites for note in suite.notes]
    total = sum((suite.count for suite in suites), Count())
    failed = [f"{suite.name}: {line}" for suite in suites for line in suite.failed]
    for reason, number in collections.Counter(reason for suite in suites for reason in suite.skipped).items():
        notes.append(f"{number} not run: {reason} ({gaps.why_known(reason) or 'not a known gap'})")
        if not gaps.is_allowed(reason):
            total += Count(failed=number, skipped=-number)
            failed.append(f"not run, and no known gap: {reason}")
    if costs := sum((suite.costs for suite in suites), collections.Counter()):
        longest = ", ".join(f"{file} {seconds:.0f} s" for file, seconds in costs.most_common(MOST_FILES))
        notes.append(f"most CPU time: {longest}")
    if left_out := sum(suite.left_out for suite in suites):
        notes.append(f"{left_out} cases are not in the sample; `make test-all` runs them")
    notes += [f"failed: {line}" for line in failed]
    print("\n" + "\n".join(notes) + f"\n\n{total}", flush=True)
    return 0 if total.passed and not total.failed else 1


@contextlib.contextmanager
def undisturbed():
    """The tests within see nothing of what is being installed. Where that is not possible, there is a note that says so."""
    notes = []
    WORK.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="snapshot-", dir=WORK, ignore_cleanup_errors=True) as folder:
        try:
            snapshot.enter(pathlib.Path(folder))
            os.environ["SNAPBOOT_NO_INSTALLS"] = "1"
        except OSError as error:
            notes.append(f"no mount namespace ({error}): tests fail if something is installed on this machine while they run")
        yield notes


if __name__ == "__main__":
    sys.exit(main())
