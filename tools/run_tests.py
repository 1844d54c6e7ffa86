#!/usr/bin/env python3
"""Runs every test suite, shows what they print, and sums them up in a plain last line: N passed, N failed, N skipped.

The suites: cargo's; pytest for tests/ and python/; minitest for tests/ruby/ and ruby/. A suite that cannot run here
counts as one skipped test and says why; one that ends badly without naming a failed test counts as one failed.

    tools/run_tests.py                all suites
    tools/run_tests.py rust python    some; what follows -- goes to pytest
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree

import workloads
from workloads import ROOT, WORK, Unavailable

SUITE_SECONDS = 1500
# Variables that act on the runtimes under test; a suite sets the ones that it is about.
REMOVED = ("PYTHON", "RUBY", "GEM_", "BUNDLE_", "RAILS_", "RACK_", "DJANGO_", "LD_", "SNAPBOOT_", "MALLOC_")


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
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(REMOVED)}
    return {"SNAPBOOT": str(ROOT / "target/release/snapboot"), **inherited}


def run(argv: list) -> tuple[str, int]:
    """Run a suite, showing its output as it comes. Returns the output and the exit status."""
    suite = subprocess.Popen(
        [str(word) for word in argv],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    limit = threading.Timer(SUITE_SECONDS, suite.kill)
    limit.start()
    lines = []
    for line in suite.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    status = suite.wait()
    limit.cancel()
    if limit.finished.is_set() and status < 0:
        print(f"stopped after {SUITE_SECONDS} s")
    return "".join(lines), status


def tests(pattern: str, *directories: str) -> list[pathlib.Path]:
    """The test files of that name under these directories of the repository."""
    return sorted(path for directory in directories for path in (ROOT / directory).rglob(pattern))


def rust(_: list[str]) -> tuple[Count, int]:
    if not shutil.which("cargo"):
        raise Unavailable("cargo is missing: install Rust's stable toolchain")
    output, status = run(["cargo", "test", "--workspace", "--no-fail-fast"])
    results = re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", output, re.MULTILINE)
    return sum((Count(*map(int, numbers)) for numbers in results), Count()), status


def python(arguments: list[str]) -> tuple[Count, int]:
    directories = [name for name in ("tests", "python") if tests("test_*.py", name)]
    report = WORK / "pytest.xml"
    report.unlink(missing_ok=True)
    options = ["-q", "-rs", "-o", f"cache_dir={WORK / 'pytest-cache'}", f"--junitxml={report}"]
    interpreter = workloads.prepare("tools")["python"]
    _, status = run([interpreter, "-m", "pytest", *options, *(arguments or directories)])
    if not report.exists():
        return Count(), status
    total = Count()
    for suite in xml.etree.ElementTree.parse(report).iter("testsuite"):
        failed = int(suite.get("failures")) + int(suite.get("errors"))
        skipped = int(suite.get("skipped"))
        total += Count(int(suite.get("tests")) - failed - skipped, failed, skipped)
    return total, status


def ruby(_: list[str]) -> tuple[Count, int]:
    interpreter = workloads.prepare("ruby")["ruby"]
    files = [path for path in tests("*.rb", "tests", "ruby") if re.search(r"(^test_.*|_test)\.rb$", path.name)]
    if not files:
        return Count(), 0
    load = "require 'minitest/autorun'; ARGV.each { |file| require file }; ARGV.clear"
    output, status = run([interpreter, f"-I{ROOT / 'ruby/lib'}", f"-I{ROOT / 'tests/ruby'}", "-e", load, "--", *files])
    count = Count()
    pattern = r"^(\d+) runs, \d+ assertions, (\d+) failures, (\d+) errors, (\d+) skips"
    for runs, failures, errors, skips in re.findall(pattern, output, re.MULTILINE):
        failed = int(failures) + int(errors)
        count += Count(int(runs) - failed - int(skips), failed, int(skips))
    return count, status


SUITES = {"rust": rust, "python": python, "ruby": ruby}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"any of: {', '.join(SUITES)} (default: all)")
    own = sys.argv[1:]
    own, passed_on = (own[: own.index("--")], own[own.index("--") + 1 :]) if "--" in own else (own, [])
    options = parser.parse_args(own)
    if unknown := set(options.suites) - set(SUITES):
        parser.error(f"no such suite: {', '.join(sorted(unknown))}; there are: {', '.join(SUITES)}")
    total, notes = Count(), []
    for name in options.suites or SUITES:
        print(f"\n==== {name} ====", flush=True)
        began = time.monotonic()
        try:
            count, status = SUITES[name](passed_on)
        except Unavailable as reason:
            count, status = Count(skipped=1), 0
            notes.append(f"{name} skipped: {reason}")
        if status != 0 and count.failed == 0:
            count += Count(failed=1)
            notes.append(f"{name} ended with status {status} and named no failed test")
        notes.append(f"{name}: {count} ({time.monotonic() - began:.0f} s)")
        total += count
    print("\n" + "\n".join(notes) + f"\n\n{total}", flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
