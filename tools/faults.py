#!/usr/bin/env python3
"""Writes the list of faults that Snapboot is known to survive into tests/README.md, from the tests that bring them about.

    tools/faults.py           print the list
    tools/faults.py --write   put it into tests/README.md, between two markers

A test names its fault itself: `@pytest.mark.fault("what happens", "what comes of it")`.
"""

import argparse
import ast
import functools
import pathlib
import sys

import marked

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
DOCUMENT = ROOT / "tests/README.md"
filled_in = functools.partial(marked.filled_in, tool="tools/faults.py")


def faults_in(source: str, name: str) -> list[tuple[str, str, str]]:
    """What happens, what comes of it, and the test, of each marked test of a file. Raises ValueError for a mark without words."""
    found = []
    for node in ast.parse(source).body:
        for mark in getattr(node, "decorator_list", []):
            if ast.unparse(getattr(mark, "func", mark)) != "pytest.mark.fault":
                continue
            words = [word.value for word in getattr(mark, "args", []) if isinstance(word, ast.Constant)]
            if len(words) != 2 or not all(isinstance(word, str) and word for word in words):
                raise ValueError(f"{name}::{node.name}: pytest.mark.fault takes what happens, and what comes of it")
            found.append((*words, f"{name}::{node.name}"))
    return found


def faults(directory: pathlib.Path = TESTS) -> list[tuple[str, str, str]]:
    """The faults of all test files, in the order in which they stand there."""
    files = sorted(directory.rglob("test_*.py"))
    return [fault for path in files for fault in faults_in(path.read_text(), str(path.relative_to(ROOT)))]


def table(rows: list[tuple[str, str, str]]) -> str:
    """The rows as Markdown; tests are linked to their files."""
    lines = ["| what happens | what comes of it | test |", "| --- | --- | --- |"]
    for what, outcome, test in rows:
        path, _, name = test.partition("::")
        lines.append(f"| {what} | {outcome} | [{name.removeprefix('test_')}]({path.removeprefix('tests/')}) |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the list into tests/README.md")
    text = table(faults())
    if parser.parse_args().write:
        DOCUMENT.write_text(filled_in(DOCUMENT.read_text(), text))
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
