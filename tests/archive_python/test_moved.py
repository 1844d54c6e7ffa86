"""A folder that is moved or copied with its archive."""

import shutil

from common.waiting import settle

from . import starts

MAIN = "import one, two, three, four, five\nprint(five.f.__code__.co_filename, five.__file__, five.f.__code__.co_consts)\nfive.f()\n"
FILES = {"main.py": MAIN, **dict.fromkeys(["one.py", "two.py", "three.py", "four.py"], ""),
    "five.py": "def f():\n    return (lambda: 1 / 0)()\n"}


def test_code_names_its_file(tmp_path):
    python = starts.interpreters()[max(starts.interpreters())]
    archive = tmp_path / "boot.archive"
    starts.write(tmp_path / "app", FILES)
    before = starts.Starts(python, tmp_path / "app", archive=archive).warm(["main.py"])
    shutil.copytree(before.folder, tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__"))
    settle()
    after = starts.Starts(python, tmp_path / "copy", archive=archive)
    after.compared(["main.py"], "the copy", times=3)
    before.compared(["main.py"], "the original", times=2)
