"""The launcher and `snapboot inspect --why` go through one comparison: in each situation both use the image, or both name what is stale."""

import contextlib
import os
import re
import shutil

import pytest
from common import support
from common.waiting import settle

pytestmark = pytest.mark.sample(12, whole=True)

HELPER = """\
import ctypes, importlib.metadata, os, resource, socket, sys

HERE = os.path.dirname(__file__)
at = lambda name: os.path.join(HERE, name)
sys.path.append(at("packages"))
try:
    importlib.metadata.version("no-such-package")
except importlib.metadata.PackageNotFoundError:
    pass
ctypes.CDLL(at("lib.so"))
ANSWER = [
    open(at("data.txt")).read(), os.path.exists(at("absent")), sorted(os.listdir(at("list"))), os.path.realpath(at("link")),
    os.path.isdir(at("folder")), os.path.exists(at("folder/below")), os.path.exists(at("way/absent")), os.path.islink(at("data.txt")),
    open("relative.txt").read(), os.environ.get("COUNTS"), os.environ.get("LATER"), os.cpu_count(),
    resource.getrlimit(resource.RLIMIT_NOFILE),
]
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A folder with a module that depends on one thing of each kind, and an image of it in a directory that the module lists."""
    folder = tmp_path_factory.mktemp("program")
    for name in ("list", "folder", "way", "started"):
        (folder / name).mkdir()
    (folder / "helper.py").write_text(HELPER)
    (folder / "data.txt").write_text("data")
    (folder / "list" / "a").write_text("")
    (folder / "link").symlink_to("data.txt")
    (folder / "started" / "relative.txt").write_text("here")
    support.cc("int answer(void) { return 1; }\n", folder / "lib.so", "-shared", "-fPIC")
    settle()
    env = support.environment(PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1", COUNTS="1")
    support.frozen(
        folder / "list" / "app.img", [support.PYTHON], "--preload", "helper", "--env", "COUNTS", "--env", "LATER",
        env=env, cwd=folder / "started",
    )
    return folder, env


@contextlib.contextmanager
def kept(*places):
    """What is at these places is there again afterwards."""
    for place in places:
        if os.path.lexists(place):
            os.rename(place, f"{place}.kept")
            with contextlib.suppress(IsADirectoryError):
                shutil.copy2(f"{place}.kept", place, follow_symlinks=False)
    try:
        yield
    finally:
        for place in places:
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)
            if os.path.lexists(f"{place}.kept"):
                os.rename(f"{place}.kept", place)


def answers(folder, env, argv=(), start="started", image="list/app.img"):
    """What the image itself says of a start, None where it is used, and the lines of `inspect --why`."""
    where = {"env": env, "cwd": folder / start}
    ran = support.run([*argv, folder / image, "-c", "import helper"], **where)
    said = re.search(r"snapboot: (.*); starting the ordinary way", ran.err)
    assert ran.fell_back == (said is not None), ran
    asked = support.run([*argv, support.SNAPBOOT, "inspect", "--why", folder / image], log=False, **where)
    lines = [line.strip() for line in asked.out.splitlines()[1:]]
    # Not "not used", which is the answer where only the launcher has found something.
    state = (1, "stale") if said else (0, "fresh")
    assert (asked.status, asked.out.splitlines()[0].split(": ")[-1]) == state, (ran, asked)
    return said and said[1], lines


def replaced(place):
    place.unlink()
    place.write_text("another")


def edited(place):
    status = place.stat()
    place.write_bytes(place.read_bytes()[::-1])
    os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))


def linked(place):
    place.unlink(missing_ok=True)
    place.symlink_to("helper.py")


def filed(place):
    place.write_text("no directory")


CHANGES = {
    "a file of another size": ("data.txt", replaced),
    "a file of the same size and time": ("data.txt", edited),
    "a file that is gone": ("data.txt", lambda place: place.unlink()),
    "a file that is a directory": ("data.txt", lambda place: (place.unlink(), place.mkdir())),
    "a module": ("helper.py", lambda place: place.write_text(HELPER + "#")),
    "a name that was absent": ("absent", lambda place: place.mkdir()),
    "a name that was absent below a directory": ("folder/below", filed),
    "a link that leads elsewhere": ("link", linked),
    "a link that is gone": ("link", lambda place: place.unlink()),
    "a link in the place of a file": ("data.txt", linked),
    "a directory that is gone": ("folder", lambda place: None),
    "a directory that is a file": ("folder", filed),
    "a directory on the way to an absent name that is a file": ("way", filed),
    "a name in a list": ("list/b", filed),
    "a directory of packages that has one now": (
        "packages", lambda place: (place / "no_such_package-1.0.dist-info").mkdir(parents=True)
    ),
    "a directory of packages that is a file": ("packages", filed),
    "a library": ("lib.so", replaced),
    "a library that is gone": ("lib.so", lambda place: place.unlink()),
    "a relative file": ("started/relative.txt", edited),
}


@pytest.mark.parametrize("name", CHANGES)
def test_both_name_what_has_changed(program, name):
    folder, env = program
    place, change = CHANGES[name]
    with kept(folder / place):
        change(folder / place)
        reason, lines = answers(folder, env)
    assert reason and reason.startswith("stale: "), (reason, lines)
    named = reason.removeprefix("stale: ").split(": ", 1)[1].split(" (")[0]
    assert named in str(folder / place) and any(line.startswith(f"{named}") for line in lines), (reason, lines)
    assert answers(folder, env) == (None, []), "it is as it was"


STARTS = {
    "another value of a variable": ({"COUNTS": "2"}, [], "COUNTS"),
    "a variable that is gone": ({"COUNTS": None}, [], "COUNTS"),
    "a variable that was not set": ({"LATER": "1"}, [], "LATER"),
    "a variable of the runtime": ({"PYTHONOPTIMIZE": "1"}, [], "PYTHONOPTIMIZE"),
    "another locale": ({"LC_ALL": "en_US.ISO-8859-1"}, [], "LC_ALL, LC_CTYPE, LANG"),
    "another limit": ({}, ["sh", "-c", 'ulimit -Sn 512; exec "$@"', "sh"], "limit of open files"),
}


@pytest.mark.parametrize("name", STARTS)
def test_both_name_what_another_start_has(program, name):
    folder, env = program
    change, argv, named = STARTS[name]
    env = {name: value for name, value in {**env, **change}.items() if value is not None}
    reason, lines = answers(folder, env, argv)
    assert reason and named in reason and any(named in line for line in lines), (reason, lines)


def test_both_find_that_nothing_counts(program):
    folder, env = program
    assert answers(folder, env) == (None, [])
    for place in ("data.txt", "helper.py", "folder", "list"):
        os.utime(folder / place)
        assert answers(folder, env) == (None, []), place
    # The kernel tells the launcher the name of the file, which no list has, and not that of the link.
    (folder / "alias.img").symlink_to("list/app.img")
    assert answers(folder, env, image="alias.img") == (None, [])
    (folder / "alias.img").unlink()
