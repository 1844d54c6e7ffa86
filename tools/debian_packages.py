"""What dpkg and apt know of Debian packages."""

import contextlib
import os
import re
import shutil
import subprocess

# What a package is there for, where it is not called like that.
COMMANDS = {"default-jdk-headless": "javac", "maven": "mvn"}


def that_can_be_had(packages: list[str]) -> list[str]:
    """Names of packages without those that end with a question mark and that apt could not install."""

    def can_be_had(package: str) -> bool:
        answer = subprocess.run(["apt-cache", "policy", package], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        return re.search(r"^ *Candidate: (?!\(none\))", answer.stdout, re.MULTILINE) is not None

    optional = [name.rstrip("?") for name in packages if name.endswith("?")] if shutil.which("apt-cache") else []
    return [name for name in packages if not name.endswith("?")] + [name for name in optional if can_be_had(name)]


def is_installed(package: str) -> bool:
    """Whether dpkg has it installed; a command of that name from elsewhere will do as well."""
    query = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
    with contextlib.suppress(FileNotFoundError):
        if subprocess.run(query, capture_output=True, text=True).stdout == "installed":
            return True
    return shutil.which(COMMANDS.get(package, package)) is not None
