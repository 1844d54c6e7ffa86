"""A warm start takes modules from the archive: without this the other tests could pass with an archive that is never used."""

import pytest
from common.waiting import settle

from . import starts

SHOW = """
import sys
import one, two, three, four
finder = next(finder for finder in sys.meta_path if type(finder).__name__ == "Finder")
search = finder.find_spec
find, found = search._find, {}
def noted(name, *rest):
    result = find(name, *rest)
    found[name] = type(result).__name__
    return result
search._find = noted
opened = []
sys.addaudithook(lambda event,
    arguments: opened.append(arguments[0]) if event == "open" and "snapboot/archive" not in str(arguments[0]) else None)
import five, package.inner, colorsys
print(found, opened)
"""
FILES = {
    "main.py": SHOW,
    "package/__init__.py": "",
    "package/inner.py": "",
    **dict.fromkeys(["one.py", "two.py", "three.py", "four.py", "five.py"], ""),
}


@pytest.mark.parametrize("version", starts.interpreters(), ids="{0[0]}.{0[1]}".format)
def test_warm_starts_open_no_module(version, tmp_path):
    starts.write(tmp_path / "app", FILES)
    program = starts.Starts(starts.interpreters()[version], tmp_path / "app", PYTHONDONTWRITEBYTECODE="1")
    settle()
    for _ in range(2):
        result = program.with_archive(["main.py"])
    expected = dict.fromkeys(["five", "package", "inner", "colorsys"], "Source")
    assert result.out == f"{expected} []\n", result
