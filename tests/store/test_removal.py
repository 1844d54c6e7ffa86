"""No image gets into the folder of a command that was removed while a builder was at work on it."""

import fcntl
import json
import shutil
import socket
import struct

import pytest
from common import support
from common.languages import PYTHON

from store.stores import Store, is_thawed
from store.test_install import Tool

pytestmark = pytest.mark.sample(4, whole=True)

# In a builder, whose policy is SCHED_BATCH, a boot waits here while the test listens. What it asks a socket is no input.
WAITS = """
import os, pathlib, socket
if os.sched_getscheduler(0) == os.SCHED_BATCH:
    with socket.socket(socket.AF_UNIX) as asked:
        if asked.connect_ex("\\0" + {name!r}) == 0:
            asked.recv(1)
"""


class Gate:
    """Holds the next boot of a builder, until `open`; lets the later ones pass."""

    def __init__(self, folder):
        self.name = str(folder)
        self.source = WAITS.format(name=self.name)

    def __enter__(self):
        self.asked = socket.socket(socket.AF_UNIX)
        self.asked.bind("\0" + self.name)
        self.asked.listen()
        self.asked.settimeout(support.SECONDS)
        self.boot = None
        return self

    def hold(self):
        """Waits for a boot. Returns its number."""
        self.boot, _ = self.asked.accept()
        number, *_ = struct.unpack("3i", self.boot.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return number

    def open(self):
        self.asked.close()
        if self.boot:
            self.boot.close()

    def __exit__(self, *_):
        self.open()


@pytest.fixture
def gate(tmp_path):
    return Gate(tmp_path)


@pytest.fixture
def store(tmp_path, gate):
    store = Store(tmp_path)
    (tmp_path / "boot.py").write_text(gate.source)
    (tmp_path / "tool.py").write_text("import boot\nprint(1)\n")
    return store


WORDS = [PYTHON.program, "tool.py"]


def rest(store):
    store.wait_until(lambda: not store.is_busy(), "the builder goes on")


def changed_tool(tmp_path, gate):
    """An installed command that has changed since, and whose boot stops at the gate."""
    tool = Tool(tmp_path, PYTHON)
    assert tool.store.snapboot("install", "tool").status == 0
    tool.write("two")
    part = tool.lib / "part.py"
    part.write_text(gate.source + part.read_text())
    return tool


def test_an_uninstalled_command_stays_away_from_the_store(tmp_path, gate):
    tool = changed_tool(tmp_path, gate)
    with gate:
        assert tool.start().out.startswith("two tool")
        gate.hold()
        result = tool.store.snapboot("uninstall", "tool")
        assert result.status == 0 and "uninstalled" in result.out, result
        gate.open()
        rest(tool.store)
    assert tool.store.list() == [] and list(tool.store.place.glob("data/tools/*/")) == []
    assert tool.start().out.startswith("two tool")


def test_a_command_that_is_installed_again_has_the_new_image_alone(tmp_path, gate):
    tool = changed_tool(tmp_path, gate)
    with gate:
        tool.start()
        gate.hold()
        for words in (["uninstall", "tool"], ["install", "tool"]):
            assert tool.store.snapboot(*words).status == 0
        (image,) = tool.store.place.glob("data/tools/*/*.img")
        made = image.stat()
        gate.open()
        rest(tool.store)
    assert image.stat() == made
    assert is_thawed(tool.start()) and [row["state"] for row in tool.store.list()] == ["fresh"]


@pytest.mark.parametrize("is_made_again", [False, True], ids=["emptied", "made again"])
def test_a_folder_that_was_emptied_gets_no_image(store, gate, is_made_again):
    with gate:
        store.run(*WORDS)
        gate.hold()
        (folder,) = store.place.glob("cache/*/")
        command = json.loads((folder / "command.json").read_text())
        # As `rm -r FOLDER/*` does it: what has a dot in front stays, such as the directory in which the image is made.
        visible = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
        for entry in visible:
            entry.unlink()
        if is_made_again:
            (folder / "command.json").write_text(json.dumps(command))
        gate.open()
        rest(store)
    assert list(folder.glob("*.img")) == []
    store.run(*WORDS)
    assert [row["state"] for row in store.wait()] == ["fresh"]
    assert is_thawed(store.run(*WORDS))


def test_a_builder_that_has_waited_makes_nothing_in_the_folder_of_another(store, gate):
    (store.place / "cache").mkdir(parents=True, mode=0o700)
    store.place.chmod(0o700)
    with gate, open(store.place / "cache/.builder", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        store.run(*WORDS)
        store.wait_until(lambda: len(waiting(store)) == 1, "no builder waits")
        (first,) = waiting(store)
        (folder,) = store.place.glob("cache/*/")
        shutil.rmtree(folder)
        store.run(*WORDS)
        store.wait_until(lambda: len(waiting(store)) == 2, "no second builder waits")
        fcntl.flock(other, fcntl.LOCK_UN)
        assert first not in ancestors(gate.hold())
        gate.open()
        rest(store)
    assert [row["state"] for row in store.list()] == ["fresh"]


def waiting(store):
    """The builders that wait until another one has ended."""
    with open("/proc/locks") as file:
        asking = {int(fields[5]) for fields in map(str.split, file) if fields[1] == "->"}
    return [number for number in store.builders() if number in asking]


def ancestors(number):
    """The numbers of the processes that have led to this one, and its own."""
    found = []
    while number > 1:
        found.append(number)
        with open(f"/proc/{number}/stat") as file:
            number = int(file.read().rpartition(")")[2].split()[1])
    return found
