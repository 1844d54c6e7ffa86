"""The CPythons that this machine may have."""

import os
import pathlib
import re
import shutil

# Those that have a boot archive: PYTHONS in crates/runtime probe.rs.
VERSIONS = [(3, minor) for minor in range(8, 16)]


def candidates():
    """Paths of interpreters: those on the PATH, then pyenv's in the order of their numbers. Of each version, the last one counts."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    by_number = sorted(pyenv.glob("3.*/bin/python"), key=lambda path: [int(n) for n in re.findall(r"\d+", str(path))])
    on_path = [shutil.which("python%d.%d" % version) for version in VERSIONS]
    return [*filter(None, on_path), *by_number]
