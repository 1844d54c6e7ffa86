#!/usr/bin/env python3
"""Compiles the Python files of an installed Snapboot, for each CPython at hand that has a boot archive.

Where Snapboot belongs to root, as below /usr/local, no other user's Python can leave compiled files beside its own, and would
compile them at each start. A compiled file holds for a source of the same content, whatever its time.

    tools/compiled.py DIRECTORY
"""

import argparse
import glob
import os
import shutil
import subprocess
import sys

# Those that have a boot archive: PYTHONS in crates/runtime/src/probe.rs.
NAMES = ["python3", *(f"python3.{minor}" for minor in range(8, 16))]
CODE = "import sys; print(sys.implementation.cache_tag, *sys.version_info[:2])"


def interpreters() -> dict[str, str]:
    """An interpreter for each tag of compiled files: one of PATH, or of pyenv."""
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    paths = [sys.executable, *filter(None, map(shutil.which, NAMES)), *sorted(glob.glob(f"{pyenv}/versions/*/bin/python3"))]
    found: dict[str, str] = {}
    for path in paths:
        told = subprocess.run([path, "-I", "-S", "-c", CODE], capture_output=True, text=True, check=False)
        words = told.stdout.split()
        if told.returncode == 0 and words[0].startswith("cpython-") and (3, 8) <= (int(words[1]), int(words[2])) < (3, 16):
            found.setdefault(words[0], path)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory")
    directory = parser.parse_args().directory
    for tag, path in sorted(interpreters().items()):
        words = [path, "-I", "-m", "compileall", "-q", "-f", "--invalidation-mode", "checked-hash", directory]
        if subprocess.run(words, check=False).returncode != 0:
            sys.exit(f"{path} could not compile the files in {directory} (for {tag}); is there space left, and may you write there?")


if __name__ == "__main__":
    main()
