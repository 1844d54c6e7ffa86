#!/usr/bin/env python3
"""Builds the wheel and the gem, under target/packages/: the tree that `make install` makes, with what pip and gem want beside it.

The boot archive's native part is linked against an old C library, by Zig's linker, so that it runs with that version and every later
one. The command has its C library in itself; launcher and freezer are linked against none.

    tools/packages.py             both
    tools/packages.py wheel       one of them: wheel or gem
    tools/packages.py --architecture aarch64    for another architecture, cross-compiled
    tools/packages.py --quick     hardly optimised, in target/quick-packages: for tests
"""

import argparse
import os
import pathlib
import platform
import shutil
import subprocess
import sys

import workloads
from architectures import ARCHITECTURES, Architecture, compile_for
from workloads import ROOT, Unavailable

GLIBC = "2.28"
PACKAGES = ROOT / "target/packages"
QUICK = ROOT / "target/quick-packages"
LICENCES = ("LICENSE", "LICENSE-APACHE", "LICENSE-MIT")


def run(words: list, cwd: pathlib.Path = ROOT, **variables: str) -> None:
    """Run a build step; its output is shown only when it fails, and ends this program."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\n`{' '.join(map(str, words))}` failed with status {done.returncode}")


def link(architecture: Architecture, quick: bool) -> None:
    """Compile what is linked against the C library dynamically; for another architecture, all else as well."""
    if not architecture.is_own:
        compile_for(architecture)
    profile = {"OPT_LEVEL": "0", "LTO": "off", "CODEGEN_UNITS": "16"} if quick else {}
    tools = workloads.prepare("packages")["bin"]
    caches = {"CARGO_ZIGBUILD_CACHE_DIR": ROOT / "target/zig", "ZIG_GLOBAL_CACHE_DIR": ROOT / "target/zig"}
    run(
        ["cargo", "zigbuild", "--release", "--target", f"{architecture.target}.{GLIBC}", "-p", "snapboot-ruby", "-p", "snapboot-python"],
        PATH=f"{tools}:{os.environ['PATH']}",
        CARGO_PROFILE_RELEASE_STRIP="symbols",
        CARGO_TARGET_DIR=str(ROOT / "target"),
        **{name: str(path) for name, path in caches.items()},
        **{f"CARGO_PROFILE_RELEASE_{name}": value for name, value in profile.items()},
    )


def stage(name: str, packages: pathlib.Path) -> pathlib.Path:
    """An empty folder to build one package in, with the licences."""
    folder = packages / "staged" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for licence in LICENCES:
        shutil.copy(ROOT / licence, folder)
    return folder


def install(folder: pathlib.Path, architecture: Architecture) -> None:
    """What `make install` installs, in that folder."""
    built = [f"BUILT={architecture.built}", f"LINKED={architecture.linked}"]
    run(["make", "-s", "install-built", f"DESTDIR={folder}", "PREFIX=", *built], MAKEFLAGS="", MAKELEVEL="")
    run([architecture.strip, folder / "bin/snapboot"])


def wheel(packages: pathlib.Path, architecture: Architecture) -> None:
    folder = stage("wheel", packages)
    install(folder / "tree", architecture)
    for name in ("pyproject.toml", "build_hook.py", "README.md"):
        shutil.copy(ROOT / "python" / name, folder)
    package = ROOT / "python/snapboot"
    shutil.copytree(package, folder / "snapboot", ignore=shutil.ignore_patterns("__pycache__", "front_end", "archive", "explain"))
    # All else of the archive is run from the tree.
    (folder / "snapboot/archive").mkdir()
    shutil.copy(package / "archive/__main__.py", folder / "snapboot/archive")
    words = [workloads.prepare("packages")["python"], "-m", "hatchling", "build", "-t", "wheel", "-d", packages]
    run(words, cwd=folder, SNAPBOOT_ARCHITECTURE=architecture.name)


def gem(packages: pathlib.Path, architecture: Architecture) -> None:
    gem = pathlib.Path(workloads.prepare("ruby")["ruby"]).with_name("gem")
    folder = stage("gem", packages)
    install(folder, architecture)
    shutil.copytree(ROOT / "ruby/exe", folder / "exe")
    for name in ("snapboot.gemspec", "README.md"):
        shutil.copy(ROOT / "ruby" / name, folder)
    run([gem, "build", "snapboot.gemspec"], cwd=folder, SNAPBOOT_ARCHITECTURE=architecture.name)
    for built in folder.glob("*.gem"):
        built.replace(packages / built.name)


KINDS = {"wheel": wheel, "gem": gem}


def make(kinds: list[str], architecture: Architecture, packages: pathlib.Path, quick: bool = False) -> None:
    """Build packages of some KINDS into a folder. Raises Unavailable."""
    link(architecture, quick)
    for kind in kinds:
        KINDS[kind](packages, architecture)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"any of: {', '.join(KINDS)} (default: both)")
    parser.add_argument("--architecture", choices=ARCHITECTURES, default=platform.machine(), help="default: this machine's")
    parser.add_argument("--quick", action="store_true", help="hardly optimise, as tests want it")
    options = parser.parse_args()
    architecture = ARCHITECTURES[options.architecture]
    kinds, packages = options.kinds or list(KINDS), QUICK if options.quick else PACKAGES
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"no such package: {', '.join(sorted(unknown))}; there are: {', '.join(KINDS)}")
    try:
        make(kinds, architecture, packages, options.quick)
    except Unavailable as reason:
        sys.exit(f"the packages cannot be built here: {reason}")
    for path in sorted(path for path in packages.iterdir() if path.suffix in (".whl", ".gem")):
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
