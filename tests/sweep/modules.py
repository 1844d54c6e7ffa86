#!/usr/bin/env python3
"""Preloads every module of Python's standard library, alone in an image of a bare interpreter, and starts it in another folder,
with other arguments: what can be seen of the module there (modules_probe.py) must be what an ordinary start shows.

    tests/sweep/modules.py                          all modules
    tests/sweep/modules.py logging 'xml.*'          those of that name, or that a pattern matches
    tests/sweep/modules.py --python PYTHON requests of another interpreter, whatever it can import

Two ordinary starts tell what belongs to a start, such as a time: that must differ between two thaws, too. A module may be refused when it
is frozen; modules.toml names those that are, with the words.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

import workloads  # noqa: E402
from behaviour.normalise import normalised  # noqa: E402

SNAPBOOT = pathlib.Path(os.environ.get("SNAPBOOT", ROOT / "target/release/snapboot"))
PROBE = (HERE / "modules_probe.py").read_text()
TOLD = tomllib.loads((HERE / "modules.toml").read_text())
SECONDS = 300
# Addresses that are numbers; an image has its own.
ADDRESS = re.compile(r"\b1[34]\d{13}\b")
# What walks the library, without importing anything but packages' search paths.
LIST = r"""
import os, sys
top = getattr(sys, "stdlib_module_names", None) or sorted(sys.builtin_module_names)
folder = os.path.dirname(os.__file__)
for name in sorted(top):
    print(name)
    for base, folders, files in os.walk(os.path.join(folder, name)):
        folders[:] = sorted(it for it in folders if os.path.exists(os.path.join(base, it, "__init__.py")))
        package = os.path.relpath(base, folder).replace(os.sep, ".")
        for file in sorted(files):
            if file.endswith(".py") and file != "__init__.py":
                print(package + "." + file[:-3])
        for it in folders:
            print(package + "." + it)
"""


@dataclasses.dataclass
class Outcome:
    """What came of a module: `kind` is same, refused, failing (it cannot be imported), different, kept or useless."""

    module: str
    kind: str
    text: str = ""

    @property
    def is_good(self):
        return self.kind in ("same", "refused", "failing")


class Sweep:
    """Freezes and compares. `folder` is for everything that comes into being."""

    def __init__(self, folder, python=sys.executable):
        self.folder = folder
        self.python = python
        self.environment = workloads.clean_environment(TERM="xterm", SHELL="/bin/sh", SNAPBOOT_ON_STALE="error")

    def modules(self):
        """All modules of the standard library but those that modules.toml leaves out."""
        names = self.run([self.python, "-I", "-c", LIST], self.folder).stdout.split()
        return [name for name in names if not any(fnmatch.fnmatch(name, pattern) for pattern in TOLD["left_out"])]

    def run(self, argv, cwd):
        return subprocess.run(
            argv,
            cwd=cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
        )

    def outcome(self, module):
        """Sweeps one module."""
        with tempfile.TemporaryDirectory(prefix="module-", dir=self.folder) as name:
            folder = pathlib.Path(name)
            frozen, started = folder / "frozen", folder / "started"
            frozen.mkdir()
            started.mkdir()
            image = frozen / "python.img"
            done = self.run([SNAPBOOT, "freeze", "-o", image, "--preload", module, "--", self.python], frozen)
            probe = ["-c", PROBE, module, "an argument"]
            if done.returncode != 0:
                return self.without_image(module, done.stdout, self.run([self.python, *probe], started))
            ordinary = [self.run([self.python, *probe], started).stdout for _ in (1, 2)]
            thawed = [self.run([image, *probe], started) for _ in (1, 2)]
        if thawed[0].returncode == 125:
            return Outcome(module, "useless", thawed[0].stdout)
        return compared(module, ordinary, [it.stdout for it in thawed])

    def without_image(self, module, said, ordinary):
        """What it means that a freeze failed."""
        if re.search(TOLD["refused"].get(module, "(?!)"), said):
            return Outcome(module, "refused", said)
        if re.match(r"\w+: ", ordinary.stdout) or ordinary.returncode:
            return Outcome(module, "failing", ordinary.stdout)
        return Outcome(module, "useless", said)

    def outcomes(self, modules, at_once):
        """Sweeps them, so many at once, and yields each outcome as it comes."""
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            for future in concurrent.futures.as_completed([pool.submit(self.outcome, module) for module in modules]):
                yield future.result()


def compared(module, ordinary, thawed):
    """Compares the lines that two ordinary starts and two thaws have shown."""
    ordinary, thawed = [[tidy(text).split("\n") for text in texts] for texts in (ordinary, thawed)]
    if len({len(lines) for lines in [*ordinary, *thawed]}) > 1:
        missing = [line for line in ordinary[0] if line.partition(" = ")[0] not in {it.partition(" = ")[0] for it in thawed[0]}]
        added = [line for line in thawed[0] if line.partition(" = ")[0] not in {it.partition(" = ")[0] for it in ordinary[0]}]
        return Outcome(module, "different", "\n".join([*(f"- {line}" for line in missing[:5]), *(f"+ {line}" for line in added[:5])]))
    for one, other, first, second in zip(*ordinary, *thawed, strict=True):
        if any(fnmatch.fnmatch(one.partition(" = ")[0], pattern) for pattern in TOLD["not_compared"]):
            continue
        if one != other:
            if first == second:
                return Outcome(module, "kept", f"{one[:300]}\nand {other[:300]}, but in each thaw\n{first[:300]}")
        elif {first, second} != {one}:
            wrong = first if first != one else second
            return Outcome(module, "different", f"- {one[:600]}\n+ {wrong[:600]}")
    return Outcome(module, "same")


def tidy(text):
    return ADDRESS.sub("ADDRESS", normalised(text.encode()).decode())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MODULE", help="modules, or patterns")
    parser.add_argument("--python", default=sys.executable, help="the interpreter")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="modules-") as folder:
        sweep = Sweep(pathlib.Path(folder), options.python)
        known = sweep.modules()
        modules = known
        if options.names:
            matching = [name for name in known if any(fnmatch.fnmatch(name, pattern) for pattern in options.names)]
            modules = matching + [name for name in options.names if name not in known and not set(name) & set("*?[")]
        return report(sweep, modules, lambda outcome: outcome.is_good)


def report(sweep, modules, is_good):
    """Sweeps the modules, and prints the outcomes that are not good and how many there are of each kind. Returns the exit status."""
    counts, has_failed = collections.Counter(), False
    for number, outcome in enumerate(sweep.outcomes(modules, len(os.sched_getaffinity(0))), 1):
        counts[outcome.kind] += 1
        if sys.stderr.isatty():
            print(f"\r{number} of {len(modules)}  {outcome.module:40}", end="", file=sys.stderr, flush=True)
        if not is_good(outcome):
            has_failed = True
            print(f"{outcome.module}: {outcome.kind}\n    " + outcome.text.strip().replace("\n", "\n    "), flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()) or "no such module")
    return 1 if has_failed or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
