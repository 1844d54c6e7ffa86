"""Tests wait for conditions: a time that is long enough today is too short on a busy machine."""

import ast

import pytest
from common import support

WAITING = support.ROOT / "tests/common/waiting.py"


def sleeps(source):
    """The lines that use time.sleep, under whatever name it is imported. The programs that tests write are text here."""
    tree = ast.parse(source)
    modules, functions = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name for alias in node.names if alias.name == "time"}
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            functions |= {alias.asname or alias.name for alias in node.names if alias.name == "sleep"}
    return sorted({node.lineno for node in ast.walk(tree) if is_sleep(node, modules, functions)})


def is_sleep(node, modules, functions):
    match node:
        case ast.Attribute(value=ast.Name(id=module), attr="sleep"):
            return module in modules
        case ast.Name(id=name):
            return name in functions
    return False


def test_tests_wait_for_conditions():
    found = {
        str(path.relative_to(support.ROOT)): lines
        for path in sorted((support.ROOT / "tests").rglob("*.py"))
        if path != WAITING and (lines := sleeps(path.read_text()))
    }
    assert not found, f"use wait_until, settle or random_moment of tests/common/waiting.py: {found}"


@pytest.mark.parametrize(
    "source, lines",
    [
        ("import time\ntime.sleep(1)\n", [2]),
        ("import time as clock\n\ndef wait():\n    clock.sleep(1)\n", [4]),
        ("from time import sleep as pause, monotonic\nprint(monotonic())\nTABLE = {'wait': pause}\n", [3]),
        ("import asyncio, time\nprint(time.time())\nasyncio.sleep(1)\nPROGRAM = 'import time; time.sleep(9)'\n", []),
    ],
)
def test_every_sleep_is_found(source, lines):
    assert sleeps(source) == lines
