#!/usr/bin/env python3
"""Writes the list of the parts of an installed Snapboot, each with its size. By that a start notices half an upgrade: see
crates/installation/src/whole.rs.

    tools/parts.py PREFIX/libexec/snapboot
"""

import pathlib
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = "parts"


def parts(directory: pathlib.Path) -> list[str]:
    """A line for each file: its size and its path. Compiled files come and go."""
    files = sorted(path for path in directory.rglob("*") if path.is_file() and path.suffix != ".pyc" and path.name != LIST)
    return [f"{path.stat().st_size} {path.relative_to(directory)}" for path in files]


def main() -> None:
    directory = pathlib.Path(sys.argv[1])
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    (directory / LIST).write_text("\n".join([version, *parts(directory)]) + "\n")


if __name__ == "__main__":
    main()
