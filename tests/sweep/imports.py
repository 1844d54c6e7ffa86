#!/usr/bin/env python3
"""Imports every module of Python's standard library and of the installed packages, each alone in a process of its own: the ordinary way,
with a boot archive that is being filled, and with a filled one. What can be seen of the module (modules_probe.py), what is in sys.modules
then, what is printed and the exit status must be the same.

    tests/sweep/imports.py                           all modules
    tests/sweep/imports.py logging 'xml.*' botocore  those of that name, or that a pattern matches
    tests/sweep/imports.py --python PYTHON           of another interpreter

Two ordinary imports tell what belongs to a start, such as a time: that is not compared.
"""

import argparse
import concurrent.futures
import fnmatch
import os
import pathlib
import subprocess
import sys
import tempfile

import modules as of_images
from modules import LIST, TOLD, Outcome, report, tidy

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RUN = ROOT / "python/snapboot/archive/run"
SECONDS = 120
# What docs/limits/archive.md says that a program can notice.
NOTICED = ("re._compiler.compile", "sre_compile.compile", "sys.meta_path")
PROBE = of_images.PROBE + "\nprint([name for name in sorted(sys.modules) if name != 'atexit' or sys.version_info >= (3, 10)])\n"
# What walks installed packages, without importing anything.
INSTALLED = r"""
import os, sysconfig
folder = sysconfig.get_paths()["purelib"]
for base, folders, files in os.walk(folder):
    if base != folder and "__init__.py" not in files:
        folders[:] = []
        continue
    folders[:] = sorted(it for it in folders if it.isidentifier())
    package = "" if base == folder else os.path.relpath(base, folder).replace(os.sep, ".")
    if package:
        print(package)
    for file in sorted(files):
        name = file.partition(".")[0]
        if file.endswith((".py", ".so")) and name.isidentifier() and name != "__init__":
            print(package + "." * bool(package) + name)
"""


class Sweep:
    """Imports and compares. `folder` is for everything that comes into being."""

    def __init__(self, folder, python=sys.executable, **variables):
        self.folder = folder
        self.python = os.path.realpath(python)
        self.environment = of_images.workloads.clean_environment(PYTHONDONTWRITEBYTECODE="1", PYTHONHASHSEED="1", **variables)

    def modules(self):
        """All modules but those that modules.toml leaves out."""
        names = []
        for walk in (LIST, INSTALLED):
            done = subprocess.run([self.python, "-c", walk], cwd=self.folder, env=self.environment, capture_output=True, text=True)
            names += done.stdout.split()
        return [name for name in dict.fromkeys(names) if not any(fnmatch.fnmatch(name, it) for it in TOLD["left_out"])]

    def run(self, module, cwd, archive, with_archive):
        """What an import shows: its output, what it says on standard error, and its status."""
        env = {**self.environment, "SNAPBOOT_ARCHIVE": str(archive)}
        if with_archive:
            env["PYTHONPATH"] = ":".join([str(RUN), *filter(None, [env.get("PYTHONPATH")])])
        argv = [self.python, "-c", PROBE, module]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        done = subprocess.run(argv, cwd=cwd, env=env, encoding="utf-8", errors="replace", timeout=SECONDS, **pipes)
        return tidy(f"{done.stdout}\n--- stderr\n{done.stderr}\n--- status {done.returncode}").split("\n")

    def outcome(self, module):
        """Sweeps one module. `kind` is same, different, unstable or endless."""
        with tempfile.TemporaryDirectory(prefix="import-", dir=self.folder) as name:
            cwd = pathlib.Path(name) / "cwd"
            cwd.mkdir()
            place = pathlib.Path(name) / "archives"
            place.mkdir(mode=0o700)
            try:
                ordinary = [self.run(module, cwd, place / "boot.archive", with_archive=False) for _ in (1, 2)]
                started = [self.run(module, cwd, place / "boot.archive", with_archive=True) for _ in ("cold", "warm", "warm again")]
            except subprocess.TimeoutExpired:
                return Outcome(module, "endless")
        return compared(module, ordinary, started)

    def outcomes(self, modules, at_once):
        """Sweeps them, so many at once, and yields each outcome as it comes."""
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            for future in concurrent.futures.as_completed([pool.submit(self.outcome, module) for module in modules]):
                yield future.result()


def compared(module, ordinary, started):
    """Compares the lines of two ordinary imports with those of others; where the two differ, a line is not compared."""
    one, other = ordinary
    if len(one) != len(other):
        return Outcome(module, "unstable")
    for when, lines in zip(("cold", "warm", "warm again"), started, strict=True):
        wrong = []
        if len(lines) != len(one):
            wrong = [*(f"- {line[:600]}" for line in one if line not in lines), *(f"+ {line[:600]}" for line in lines if line not in one)]
            wrong = wrong or ["other lines"]
        for expected, again, line in zip(one, other, lines, strict=False):
            if not wrong and expected == again != line and expected.partition(" = ")[0] not in NOTICED:
                wrong = [f"- {expected[:600]}", f"+ {line[:600]}"]
        if wrong:
            return Outcome(module, "different", "\n".join([f"{when}:", *wrong[:8]]))
    return Outcome(module, "same")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MODULE", help="modules, or patterns")
    parser.add_argument("--python", default=sys.executable, help="the interpreter")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="imports-") as folder:
        sweep = Sweep(pathlib.Path(folder), options.python)
        modules = sweep.modules()
        if options.names:
            modules = [name for name in modules if any(fnmatch.fnmatch(name, pattern) for pattern in options.names)]
        return report(sweep, modules, lambda outcome: outcome.kind != "different")


if __name__ == "__main__":
    sys.exit(main())
