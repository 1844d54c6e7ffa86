#!/usr/bin/env python3
"""What containers are built from without a registry: a Debian with Python, Ruby and Rails, and wheels of a tool, in .work/containers.

    tools/containers.py     makes it ready, and installs podman where that is missing and allowed
"""

import os
import pathlib
import shutil
import sys

import workloads
from workloads import Unavailable

SUITE = "bookworm"
RAILS = ("ruby", "ruby-rails", "ruby-sqlite3", "puma", "ruby-bundler", "bundler", "ruby-sass-rails", "ruby-jbuilder")
WHEELS = "/wheels"  # where pip of the base looks, and nowhere else


def prepare() -> tuple[pathlib.Path, pathlib.Path]:
    """The archive of the base, and a folder of wheels for WHEELS. Raises Unavailable when they cannot be had."""
    folder = workloads.WORK / "containers"
    base, wheels, system = folder / "base.tar", folder / "wheels", folder / "system"
    with workloads.locked("containers"):
        workloads.install_debian_packages(("debootstrap", "podman", "runc"))
        if not base.exists():
            shutil.rmtree(folder, ignore_errors=True)
            wheels.mkdir(parents=True)
            print("making a Debian to build containers from", file=sys.stderr, flush=True)
            download(wheels)
            debootstrap(system)
            partial = folder / "partial.tar"
            workloads.run(["tar", "-C", system, "--exclude=./var/cache/apt", "--exclude=./dev", "-cf", partial, "."])
            shutil.rmtree(system)
            partial.replace(base)
    return base, wheels


def debootstrap(system: pathlib.Path) -> None:
    """Install the Debian; DEBIAN_MIRROR says where from, if not from where debootstrap looks by itself."""
    packages = ",".join(("python3", "python3-venv", *RAILS))
    mirror = [os.environ["DEBIAN_MIRROR"]] if "DEBIAN_MIRROR" in os.environ else []
    workloads.run(["debootstrap", "--variant=minbase", f"--include={packages}", SUITE, system, *mirror])
    (system / "etc/pip.conf").write_text(f"[global]\nno-index = true\nfind-links = {WHEELS}\n")


def download(wheels: pathlib.Path) -> None:
    """Fetch the tool that is frozen, and what it needs, for the base's Python."""
    pip = [workloads.prepare("packages")["python"], "-m", "pip", "download", "-q", "-d", wheels]
    workloads.run([*pip, "--only-binary", ":all:", "--python-version", "3.11", "black"])


if __name__ == "__main__":
    try:
        prepare()
    except Unavailable as reason:
        sys.exit(f"containers cannot be built here: {reason}")
