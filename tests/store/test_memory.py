"""A builder takes no memory from the program: it looks at the control group that both are in, and is the first to go."""

import os
import pathlib
import subprocess

import pytest
from common import support
from common.languages import both

from store.stores import Store
from store.test_hostile import hanging  # noqa: F401

MB = 1 << 20
TOP = pathlib.Path("/sys/fs/cgroup")
# A program that holds much, and ends when it is told.
HOLDS = {
    "big.py": "HELD = bytearray(85 << 20)\nHELD[:: 4096] = b'x' * len(HELD[:: 4096])\n",
    "big.rb": "HELD = 'x' * (85 << 20)\n",
    "tool.py": "import sys\nimport big\nprint('ready', flush=True)\nsys.stdin.readline()\nprint(len(big.HELD))\n",
    "tool.rb": "require_relative 'big'\nputs 'ready'\n$stdout.flush\n$stdin.gets\nputs HELD.size\n",
}


class Group:
    """A control group for processes of a test."""

    def __init__(self):
        own = dict(reversed(line.strip().split(":", 2)[1:]) for line in open("/proc/self/cgroup") if ":" in line)
        version_1 = [path for path, controllers in own.items() if "memory" in controllers.split(",")]
        self.is_v2 = not version_1
        parent = TOP if self.is_v2 else TOP / "memory" / version_1[0].lstrip("/")
        self.path = parent / f"snapboot-test-{os.getpid()}"
        try:
            self.path.mkdir()
            if not (self.path / self._file("usage")).exists():
                self.path.rmdir()
                raise OSError("no memory controller")
        except OSError as error:
            pytest.skip(f"no control group can be made here: {error}")

    def _file(self, what):
        return {"limit": ("memory.limit_in_bytes", "memory.max"), "usage": ("memory.usage_in_bytes", "memory.current")}[what][self.is_v2]

    def limit(self, size):
        """Sets the limit of its memory (bytes)."""
        (self.path / self._file("limit")).write_text(str(size))

    def join(self):
        """What a process does to be in it."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def members(self):
        return (self.path / "cgroup.procs").read_text().split()

    def close(self):
        self.path.rmdir()


@pytest.fixture
def group():
    group = Group()
    yield group
    group.close()


@both
@pytest.mark.fault("a control group has no room for a second copy of the program", "the program runs on, an image is made later")
def test_no_image_is_made_where_a_second_copy_has_no_room(tmp_path, language, group):
    store = Store(tmp_path)
    for name, text in HOLDS.items():
        (tmp_path / name).write_text(text)
    group.limit(160 * MB)
    words = [support.SNAPBOOT, "run", "--", language.program, "tool" + language.ending]
    program = subprocess.Popen(
        words, env=store.env, cwd=tmp_path, preexec_fn=group.join, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout.readline() == "ready\n"
    store.wait_until(lambda: any("memory is short" in "".join(row["why"]) for row in store.list()), "the builder does not give up")
    store.wait_until(lambda: not store.builders(), "the builder goes on")
    group.limit(2000 * MB)
    assert program.communicate("\n") == (f"{85 * MB}\n", None) and program.returncode == 0
    assert store.list()[0]["state"] == "none"
    # There is room now, and nobody has to wait until it is asked for again.
    support.run(words, env=store.env, cwd=tmp_path, log=False, input=b"\n")
    (row,) = store.wait()
    assert row["state"] == "fresh" and not any("put off" in why for why in row["why"]), row
    store.wait_until(lambda: not group.members(), "the group has members")


@pytest.mark.fault("memory runs short while an image is made", "the builder ends, the image is made later")
def test_a_builder_ends_when_others_need_the_memory(hanging, group, tmp_path):  # noqa: F811
    store, words, builder = hanging
    assert pathlib.Path(f"/proc/{builder}/oom_score_adj").read_text() == "1000\n"
    (group.path / "cgroup.procs").write_text(str(builder))
    group.limit(MB * 16)
    store.wait_until(lambda: not store.builders(), "the builder goes on")
    (row,) = store.list()
    assert row["state"] == "none" and "memory ran short" in row["why"][0], row
    store.wait_until(lambda: not group.members(), "the group has members")
    left = [path.name for path in store.place.glob("cache/*/.*.freezing-*")]
    assert left == []
    (tmp_path / "hang").unlink()
    # More than this machine has may be wanted next time; it is asked for again after a while.
    (note,) = store.place.glob("cache/*/put-off.json")
    note.unlink()
    store.run(*words)
    assert [row["state"] for row in store.wait()] == ["fresh"]


