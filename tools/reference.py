#!/usr/bin/env python3
"""Writes the reference of commands into docs/reference.md, from the definition of the command line.

    tools/reference.py           print it
    tools/reference.py --write   put the part of each command into docs/reference.md, between two markers

What stands outside of the markers is written by hand. SNAPBOOT names the program (target/release/snapboot).
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import marked

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/reference.md"
SNAPBOOT = os.environ.get("SNAPBOOT", ROOT / "target/release/snapboot")


def sections() -> dict[str, str]:
    """The Markdown of each command, by its name."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([SNAPBOOT, "reference", folder], check=True)
        return {path.stem: path.read_text().rstrip() for path in sorted(pathlib.Path(folder).iterdir())}


def filled_in(document: str) -> str:
    """The document with the part of each command. Raises ValueError where the markers of one are missing."""
    for name, text in sections().items():
        document = marked.filled_in(document, text, tool=f"tools/reference.py {name}")
    return document


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put it into docs/reference.md")
    if parser.parse_args().write:
        DOCUMENT.write_text(filled_in(DOCUMENT.read_text()))
    else:
        print("\n\n".join(sections().values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
