#!/usr/bin/env python3
"""The style checks of everything that is not Rust: ruff for Python, RuboCop for Ruby.

Where RuboCop cannot be had, Ruby itself checks syntax and warnings (`ruby -wc`). What is left out is said, and in CI it is a failure
(see tools/gaps.py).
"""

import subprocess
import sys

import gaps
import workloads
from workloads import ROOT, Unavailable

DIRECTORIES = [name for name in ("bench", "examples", "python", "recipes", "ruby", "tests", "tools") if (ROOT / name).is_dir()]


def files(suffix: str) -> list[str]:
    """The source files with that suffix, relative to the repository."""
    found = [path for name in DIRECTORIES for path in (ROOT / name).rglob(f"*{suffix}")]
    return sorted(str(path.relative_to(ROOT)) for path in found if path.is_file())


def passes(argv: list[str]) -> bool:
    """Run one check, showing what it says. Whether it was content."""
    print("$", argv[0].rpartition("/")[2], *argv[1:4], "..." if len(argv) > 4 else "", flush=True)
    return subprocess.run(argv, cwd=ROOT).returncode == 0


def left_out(check: str, reason: Unavailable) -> bool:
    """Say that a check is left out. Whether that will do."""
    will_do = gaps.is_allowed(str(reason))
    print(f"{check} {'skipped' if will_do else 'FAILED: it may not be skipped in CI'}: {reason}")
    return will_do


def lint_python() -> bool:
    try:
        ruff = workloads.prepare("tools")["bin"] + "/ruff"
    except Unavailable as reason:
        return left_out("ruff", reason)
    return passes([ruff, "check", "--cache-dir", str(workloads.WORK / "ruff"), *DIRECTORIES])


def lint_ruby() -> bool:
    sources = files(".rb")
    try:
        workloads.prepare("rubocop")
        return passes(["rubocop", "--cache", "false", "--config", "ruby/.rubocop.yml", *sources])
    except Unavailable as reason:
        will_do = left_out("rubocop", reason)
    try:
        ruby = workloads.prepare("ruby")["ruby"]
    except Unavailable as reason:
        return left_out("ruby -wc", reason)
    return all([will_do, *(passes([ruby, "-wc", source]) for source in sources)])


def main() -> int:
    content = [lint_python(), lint_ruby()]
    return 0 if all(content) else 1


if __name__ == "__main__":
    sys.exit(main())
