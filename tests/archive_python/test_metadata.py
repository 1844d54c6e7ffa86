"""Entry points of installed distributions from the boot archive: the same objects, never stale, and whoever replaces a part is asked."""

import json
import os
import subprocess

import pytest
from common import pythons, support
from common.waiting import settle

from . import starts

pytestmark = pytest.mark.sample(2)

# Tells all that can be seen of what importlib.metadata gives.
MAIN = """\
import importlib.metadata, sys, warnings
warnings.simplefilter("ignore")
def show_point(point):
    of = getattr(point, "dist", None)
    alike = type(point)(point.name, point.value, point.group)
    print(" ", type(point), repr(point), point == alike, hash(point) == hash(alike), getattr(point, "__dict__", {}).keys())
    print("   ", type(of), of and of._path, point.extras)
found = importlib.metadata.entry_points()
print(type(found), type(found).__mro__)
for group, points in dict.items(found) if isinstance(found, dict) else [("all", found)]:
    print(group, type(points), len(points))
    for point in list(tuple(points)):
        show_point(point)
for distribution in importlib.metadata.distributions(path=[sys.path[0]]):
    points = distribution.entry_points
    print(type(points), points == distribution.entry_points, points is distribution.entry_points, points)
print(importlib.metadata.Distribution.entry_points.__doc__)
"""
POINTS = "[console_scripts]\n# a comment\none = package.one:main\n[of.plugins]\nä = package.ä:Class.method [extra, more]\n  \nx=y\n"
FILES = {
    "main.py": MAIN,
    "one-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: one\nVersion: 1.0\n",
    "one-1.0.dist-info/entry_points.txt": POINTS,
    "two_parts-2.dist-info/entry_points.txt": "[console_scripts]\ntwo = two:main\n",
    "none-3.dist-info/METADATA": "Metadata-Version: 2.1\nName: none\nVersion: 3\n",
    "empty-4.dist-info/entry_points.txt": "",
    "egg-5.egg-info/entry_points.txt": "[console_scripts]\negg = egg:main\n",
    "file-6.egg-info": "Metadata-Version: 1.0\nName: file\nVersion: 6\n",
}


@pytest.fixture(params=pythons.VERSIONS)
def program(request, tmp_path):
    """A program on each CPython, with its distributions beside it."""
    python = starts.interpreters().get(request.param) or pytest.skip("there is no Python %d.%d" % request.param)
    starts.write(tmp_path / "app", FILES)
    settle()
    return starts.Starts(python, tmp_path / "app")


def kept(archive):
    """The files whose entry points an archive has."""
    if not archive.exists():
        return set()
    done = subprocess.run([support.SNAPBOOT, "archive", "list", "--json", archive], capture_output=True, text=True, check=True)
    names = [entry["name"] for entry in json.loads(done.stdout)["entries"] if entry["kind"] == "data"]
    return {name.split("/app/")[1].split("-")[0] for name in names if name.endswith("/entry_points.txt") and "/app/" in name}


def test_all_is_the_same_and_nothing_is_stale(program):
    """Distributions are edited, added, replaced and removed."""
    program.compared(["main.py"], "as installed", times=3)
    assert kept(program.archive) == {"one", "two_parts", "empty", "egg"}
    points = program.folder / "one-1.0.dist-info/entry_points.txt"

    def edit():
        before = points.stat()
        points.write_text(POINTS.replace("one:main", "eno:main"))
        os.utime(points, ns=(before.st_atime_ns, before.st_mtime_ns))

    def upgrade():
        points.parent.rename(program.folder / "one-1.1.dist-info")

    changes = {
        "edited, with its size and mtime": edit,
        "upgraded": upgrade,
        "added": lambda: starts.write(program.folder, {"new-1.dist-info/entry_points.txt": "[a]\nb = c\n"}),
        "given entry points": lambda: starts.write(program.folder, {"none-3.dist-info/entry_points.txt": "[a]\nd = e\n"}),
        "robbed of them": (program.folder / "empty-4.dist-info/entry_points.txt").unlink,
    }
    before = program.ordinary(["main.py"]).out
    for what, change in changes.items():
        change()
        after = program.compared(["main.py"], what).out
        assert (before != after) == (what != "robbed of them"), what
        before = after


def test_it_is_used(program):
    """And can be switched off."""
    off = {"SNAPBOOT_ARCHIVE_METADATA": "off"}
    files = program.folder / "open.py"
    # The event is raised wherever Python opens a file.
    files.write_text(
        "import importlib.metadata, os, sys\nseen = set()\n"
        "def hook(event, arguments):\n"
        "    if event == 'open' and str(arguments[0]).startswith(sys.path[0]) and os.path.exists(arguments[0]): seen.add(arguments[0])\n"
        "sys.addaudithook(hook)\nimportlib.metadata.entry_points()\nprint(len(seen))\n"
    )
    settle()
    ordinary = int(program.ordinary(["open.py"]).out)
    assert ordinary == 4
    assert int(program.with_archive(["open.py"], off).out) == ordinary
    assert kept(program.archive) == set()
    assert int(program.with_archive(["open.py"]).out) == ordinary
    assert int(program.with_archive(["open.py"]).out) == 0
    assert int(program.with_archive(["open.py"], off).out) == ordinary


# What a program may replace, before and after entry points were asked for.
REPLACED = {
    "read_text": "m.PathDistribution.read_text = lambda self, name: '[a]\\nreplaced = by:another'",
    "property": "m.Distribution.entry_points = property(lambda self: [m.EntryPoint('another', 'property', 'a')])",
    "wrapped": "f = m.Distribution.entry_points.fget\n"
    "m.Distribution.entry_points = property(lambda self: [p for p in f(self) if p.name == 'two'])",
    "class": "m.EntryPoint = type('EntryPoint', (m.EntryPoint,), {'__repr__': lambda self: 'mine'})",
    "method": "m.EntryPoint.__repr__ = lambda self: 'mine'",
    "mock": "import unittest.mock as u; u.patch.object(m.PathDistribution, 'read_text', u.Mock(return_value='[a]\\nb=c')).start()",
    "path": "import pathlib; pathlib.Path.read_text = lambda *_, **__: '[a]\\nother = path'",
    "io": "import io; f = io.open; io.open = lambda path, *a, **k: f(path, *a, **k) if 'two' in str(path) else io.StringIO('[a]\\nb=c')",
    "subclass": "class Own(m.PathDistribution):\n    def read_text(self, name): return '[a]\\nown = read:text'\nm.PathDistribution = Own",
}


def chosen():
    """Each on the newest version, and on a third of the others."""
    for number, what in enumerate(REPLACED):
        for version in pythons.VERSIONS:
            if version == max(starts.interpreters()) or (version[1] + number) % 3 == 0:
                yield what, version


@pytest.mark.parametrize(("what", "program"), chosen(), indirect=["program"])
def test_what_a_program_replaces_is_used(what, program):
    show = "points = [d.entry_points for d in m.distributions(path=[sys.path[0]])]; print([list(tuple(one)) for one in points])\n"
    for before in ("", show):
        (program.folder / "replaced.py").write_text("import importlib.metadata as m, sys\n" + before + REPLACED[what] + "\n" + show)
        program.compared(["replaced.py"], before)
    assert kept(program.archive), "the archive was not asked at all"


def test_errors_are_the_same(program):
    """With the same tracebacks: a file that is no text, and one that Python before 3.10 cannot parse."""
    bad = program.folder / "two_parts-2.dist-info/entry_points.txt"
    for content in (b"[a]\nb = \xff\n", b"no section\n[a]\nb = %c\n"):
        bad.write_bytes(content)
        settle()
        (program.folder / "bad.py").write_text("import importlib.metadata as m\nprint(len(m.entry_points()))\n")
        program.compared(["bad.py"], str(content), times=3)
