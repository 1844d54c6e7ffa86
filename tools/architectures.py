"""The architectures that Snapboot runs on, and how it is compiled here for another one than this machine's: by Debian's cross compiler, and
with Rust's standard library from rustup."""

import dataclasses
import os
import pathlib
import platform
import shutil
import subprocess

import workloads
from workloads import ROOT, Unavailable


@dataclasses.dataclass
class Architecture:
    """`name`: as Linux, wheels and gems have it. `packages`: Debian's, with compiler and C library for it."""

    name: str
    packages: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """As Rust has it."""
        return f"{self.name}-unknown-linux-gnu"

    @property
    def is_own(self) -> bool:
        """Whether this machine has it."""
        return platform.machine() == self.name

    @property
    def compiler(self) -> str:
        """The C compiler."""
        return f"{self.name}-linux-gnu-gcc"

    @property
    def strip(self) -> str:
        """What removes symbols from a program."""
        return "strip" if self.is_own else f"{self.name}-linux-gnu-strip"

    @property
    def built(self) -> pathlib.Path:
        """The folder of the command and its parts: what `make build` makes, or `compile_for`."""
        return ROOT / "target/release" if self.is_own else self.linked

    @property
    def linked(self) -> pathlib.Path:
        """The folder of what tools/packages.py links for any machine of this architecture."""
        return ROOT / "target" / self.target / "release"


ARCHITECTURES = {
    "x86_64": Architecture("x86_64", ("gcc-x86-64-linux-gnu", "libc6-dev-amd64-cross")),
    "aarch64": Architecture("aarch64", ("gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross")),
}


def prepare(architecture: Architecture) -> None:
    """Have what compiles for another architecture. Raises Unavailable."""
    if not shutil.which(architecture.compiler):
        workloads.install_debian_packages(architecture.packages)
    words = ["rustc", "--print", "target-libdir", "--target", architecture.target]
    library = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if library.returncode or not pathlib.Path(library.stdout.strip()).is_dir():
        workloads.run(["rustup", "target", "add", architecture.target], cwd=ROOT)


def compile_for(architecture: Architecture) -> None:
    """Compile command, entry, launcher, freezer and the program for remote stores for another architecture than this machine's, as
    `make build` does for its own. Raises Unavailable."""
    prepare(architecture)
    name = architecture.target.replace("-", "_")
    variables = {
        f"CARGO_TARGET_{name.upper()}_LINKER": architecture.compiler,
        f"CC_{name}": architecture.compiler,
        f"AR_{name}": architecture.compiler.replace("gcc", "ar"),
    }
    options = ["--release", "--target", architecture.target]
    static = ["-C", "target-feature=+crt-static", "-C", "relocation-model=static"]
    for words in (
        ["build", *options, "--package", "snapboot-launcher", "--package", "snapboot-freezer"],
        ["rustc", *options, "--package", "snapboot-cli", "--bin", "snapboot", "--", *static],
        ["rustc", *options, "--package", "snapboot-entry", "--bin", "snapboot-entry", "--", *static, "-C", "strip=symbols"],
        ["rustc", *options, "--package", "snapboot-remote", "--bin", "snapboot-remote", "--", *static, "-C", "strip=symbols"],
    ):
        if subprocess.run(["cargo", *words], cwd=ROOT, env={**os.environ, **variables}).returncode:
            raise Unavailable(f"Snapboot cannot be compiled for {architecture.target}")
