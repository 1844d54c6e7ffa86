#!/usr/bin/env python3
"""Writes the table of docs/process-attributes.md: the kernel's attributes of a process, and what becomes of each in an image.

    tools/attributes.py           print the table
    tools/attributes.py --write   put it into docs/process-attributes.md, between two markers

The rows are those of tests/images/attributes.py, which tests/images/test_attributes.py holds. SNAPBOOT names the program
(target/release/snapboot).
"""

import argparse
import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import marked

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = ROOT / "tests/images/attributes.py"
SNAPBOOT = os.environ.get("SNAPBOOT", ROOT / "target/release/snapboot")
DOCUMENT = ROOT / "docs/process-attributes.md"
TEST = "../tests/images/test_attributes.py"
filled_in = functools.partial(marked.filled_in, tool="tools/attributes.py")

# Of the classes in crates/inputs attributes.rs: the word of the document, and what it means.
CLASSES = {
    "Repeated": ("carried over", "set again to the boot's value"),
    "RepeatedFromSame": ("carried over", "in starts that have inherited what the boot has; all others are ordinary starts"),
    "Rights": ("refused", "a thaw would have more rights than an ordinary start"),
    "Refused": ("refused", "a thaw cannot repeat it"),
}


def classes() -> dict[str, str]:
    """The class of each attribute of the table, by its name."""
    tables = subprocess.run([SNAPBOOT, "tables"], capture_output=True, check=True).stdout
    return json.loads(tables)["attributes"]


def rows():
    """The module tests/images/attributes.py."""
    spec = importlib.util.spec_from_file_location("attributes_rows", ROWS)
    module = sys.modules["attributes_rows"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table() -> str:
    """All rows as Markdown; tests are linked to their files."""
    known, all_rows = classes(), rows()
    lines = ["| attribute | changed while booting | what that means | test |", "| --- | --- | --- | --- |"]
    for row in [*all_rows.REPEATED, *all_rows.REFUSED, *all_rows.ALONE]:
        word, meaning = CLASSES[known[row.name]]
        lines.append(f"| {row.name} | {word} | {meaning} | [attributes]({TEST}) |")
    for name, read in all_rows.COMPARED_ONLY.items():
        word, meaning = CLASSES[known[name]]
        lines.append(f"| {name} | {word} | {meaning}; read from {read} | |")
    for name, word, meaning, test in all_rows.ELSEWHERE:
        lines.append(f"| {name} | {word} | {meaning} | [{pathlib.Path(test).stem.removeprefix('test_')}](../{test}) |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into docs/process-attributes.md")
    text = table()
    if parser.parse_args().write:
        DOCUMENT.write_text(filled_in(DOCUMENT.read_text(), text))
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
