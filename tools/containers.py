#!/usr/bin/env python3
"""What containers are built from without a registry: a Debian with Python, one with Rails, and wheels of a tool, in .work/containers.

    tools/containers.py     makes all ready, and installs podman where that is missing and allowed
"""

import os
import pathlib
import shutil
import sys

import workloads
from workloads import Unavailable

SUITE = "bookworm"
PYTHON = ("python3", "python3-venv")
RAILS = ("ruby", "ruby-rails", "ruby-sqlite3", "puma", "ruby-bundler", "bundler", "ruby-sass-rails", "ruby-jbuilder")
FOLDER = workloads.WORK / "containers"
WHEELS = "/wheels"  # where pip of the base looks, and nowhere else


def prepare(packages: tuple[str, ...] = PYTHON) -> pathlib.Path:
    """The archive of a base with PYTHON or RAILS. Raises Unavailable when it cannot be had."""
    base = FOLDER / f"{packages[0]}.tar"
    with workloads.locked("containers"):
        workloads.install_debian_packages(("debootstrap", "podman", "runc"))
        if not base.exists():
            FOLDER.mkdir(parents=True, exist_ok=True)
            print(f"making a Debian with {packages[0]} to build containers from", file=sys.stderr, flush=True)
            system, partial = FOLDER / "system", FOLDER / "partial.tar"
            shutil.rmtree(system, ignore_errors=True)
            debootstrap(system, packages)
            workloads.run(["tar", "-C", system, "--exclude=./var/cache/apt", "--exclude=./dev", "-cf", partial, "."])
            shutil.rmtree(system)
            partial.replace(base)
    return base


def wheels() -> pathlib.Path:
    """A folder of wheels for WHEELS. Raises Unavailable when they cannot be had."""
    folder = FOLDER / "wheels"
    with workloads.locked("containers"):
        if not folder.exists():
            partial = FOLDER / "partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            download(partial)
            partial.replace(folder)
    return folder


def debootstrap(system: pathlib.Path, packages: tuple[str, ...]) -> None:
    """Install the Debian; DEBIAN_MIRROR says where from, if not from where debootstrap looks by itself."""
    mirror = [os.environ["DEBIAN_MIRROR"]] if "DEBIAN_MIRROR" in os.environ else []
    workloads.run(["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", SUITE, system, *mirror])
    (system / "etc/pip.conf").write_text(f"[global]\nno-index = true\nfind-links = {WHEELS}\n")


def download(wheels: pathlib.Path) -> None:
    """Fetch the tool that is frozen, and what it needs, for the base's Python."""
    pip = [workloads.prepare("packages")["python"], "-m", "pip", "download", "-q", "-d", wheels]
    workloads.run([*pip, "--only-binary", ":all:", "--python-version", "3.11", "black"])


if __name__ == "__main__":
    try:
        prepare()
        prepare(RAILS)
        wheels()
    except Unavailable as reason:
        sys.exit(f"containers cannot be built here: {reason}")
