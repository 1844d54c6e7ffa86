"""The CPythons that this machine may have."""

import os
import pathlib
import re
import shutil
import subprocess

# Those that have a boot archive: PYTHONS in crates/runtime probe.rs.
VERSIONS = [(3, minor) for minor in range(8, 16)]


def candidates():
    """Paths of interpreters: those on the PATH, then pyenv's in the order of their numbers. Of each version, the last one counts."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    by_number = sorted(pyenv.glob("3.*/bin/python"), key=lambda path: [int(n) for n in re.findall(r"\d+", str(path))])
    on_path = [shutil.which("python%d.%d" % version) for version in VERSIONS]
    return [*filter(None, on_path), *by_number]


def free_threaded():
    """The newest free-threaded CPython: that of SNAPBOOT_FREE_THREADED, else one on the PATH or pyenv's. None without one."""
    named = os.environ.get("SNAPBOOT_FREE_THREADED")
    on_path = [shutil.which("python%d.%dt" % version) for version in VERSIONS]
    for path in [named] if named else reversed([*filter(None, candidates()), *filter(None, on_path)]):
        told = subprocess.run([path, "-I", "-c", "import sys; print(sys.abiflags)"], capture_output=True, text=True)
        if told.returncode == 0 and "t" in told.stdout:
            return os.path.realpath(path)
    return None
