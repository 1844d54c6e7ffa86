"""A remote store, or a machine's own, that takes no more, and processes that end while images are on their way.
Nothing half is left, and it is said why."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
from common import support
from common.languages import PYTHON
from common.waiting import wait_until

from store.fleets import Fleet, made, said
from store.stores import is_thawed

FULL = "no space left on device"
READ_ONLY = "read-only file system"

# Mounts the remote store "$1" in another way, executes a command, and ends after its builder.
MOUNTED = """
place="$1" folder="$2"
shift 2
{how}
"$@"
while pgrep -f "build-image.*$folder/store" > /dev/null; do sleep 0.1; done
find "$place" -type f > "$folder/left"
"""
HALF_FULL = 'mount -t tmpfs -o size={size} tmpfs "$place"'
ALL_FULL = HALF_FULL + '\nhead -c 64M /dev/zero > "$place/full" || true'
NO_MORE = 'mount --bind "$place" "$place" && mount -o remount,bind,ro "$place"'


def start_mounted(fleet, machine, how):
    """A start with the remote store mounted in that way, until its builder has ended. Returns it, and the names of all files there."""
    script = MOUNTED.format(how=how)
    argv = support.in_mount_namespace(script, fleet.remote, machine.folder, support.SNAPBOOT, "run", "--", *fleet.words, "a")
    started = support.run(argv, env=machine.env, cwd=fleet.files)
    return started, sorted(pathlib.Path(path) for path in (machine.folder / "left").read_text().split())


@pytest.mark.skipif(not support.IS_ROOT, reason="only root may mount a full disk")
@pytest.mark.fault("a remote directory that is full, becomes full, or is read-only", "the image is made; nothing half is left there")
@pytest.mark.parametrize(
    "how, words",
    [(HALF_FULL.format(size="600k"), FULL), (ALL_FULL.format(size="64k"), FULL), (NO_MORE, READ_ONLY)],
    ids=["becomes full", "full", "read-only"],
)
def test_a_directory_that_takes_no_more(tmp_path, how, words):
    fleet = Fleet(tmp_path, PYTHON)
    (fleet.remote / ".drafts").mkdir()
    one = fleet.machine("one")
    first, left = start_mounted(fleet, one, how)
    assert first.fell_back and made(one) and is_thawed(fleet.start(one)), said(one)
    assert said(one)["about"] == "push" and words in said(one)["text"], said(one)
    # Whole chunks may stay: the next push needs them.
    half = [path for path in left if path.parent.name in (".drafts",) or "leases" in path.parts or "images" in path.parts]
    assert not half, left


def test_drafts_that_are_left_are_pruned(tmp_path):
    fleet = Fleet(tmp_path, PYTHON)
    drafts = fleet.remote / ".drafts"
    drafts.mkdir()
    old, young = drafts / "old", drafts / "young"
    for draft in (old, young):
        draft.write_text("half")
    os.utime(old, (1_000_000_000, 1_000_000_000))
    assert fleet.machine("one").snapboot("remote", "prune", log=False).status == 0
    assert list(drafts.iterdir()) == [young]


@pytest.mark.skipif(not support.IS_ROOT, reason="only root may mount read-only")
def test_a_directory_that_was_always_read_only_is_read(tmp_path):
    fleet = Fleet(tmp_path, PYTHON)
    one, other = fleet.machine("one"), fleet.machine("other")
    fleet.start(one)
    one.wait()
    shutil.rmtree(fleet.remote / ".drafts")
    script = f'place="$1"\nshift\n{NO_MORE}\nexec "$@"'
    argv = support.in_mount_namespace(script, fleet.remote, support.SNAPBOOT, "remote", "pull", "--", *fleet.words)
    pulled = support.run(argv, env=other.env, cwd=fleet.files, log=False)
    assert pulled.status == 0 and made(other) and is_thawed(fleet.start(other)), pulled


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory):
    """A fleet of which one machine has pushed two versions of an image, and the other one has the first."""
    fleet = Fleet(tmp_path_factory.mktemp("upgraded"), PYTHON)
    fleet.share_two_versions()
    return fleet


PULL_FULL = """
mount -t tmpfs -o size="$2" tmpfs /mnt
cp -a "$1/." /mnt
shift 2
status=0
"$@" || status=$?
echo "status $status"
find /mnt/cache -name '.*.img*'
"""


@pytest.mark.skipif(not support.IS_ROOT, reason="only root may mount a full disk")
@pytest.mark.fault("a store that is full while a difference is unpacked", "the image before stays; nothing half is left")
@pytest.mark.parametrize("room", [64, 1024, 4096])
def test_a_full_store_while_a_difference_is_unpacked(upgraded, room):
    other = upgraded.again("other")
    (before,) = made(other)
    size = sum(path.stat().st_blocks * 512 for path in other.place.rglob("*")) + (room << 10)
    words = [other.place, str(size), support.SNAPBOOT, "remote", "pull", "--", *upgraded.words]
    argv = support.in_mount_namespace(PULL_FULL, *words)
    pulled = support.run(argv, env={**other.env, "SNAPBOOT_STORE": "/mnt"}, cwd=upgraded.files, log=False)
    assert pulled.out == "status 2\n" and "The disk (or the quota) is full" in pulled.err, pulled
    assert made(other) == [before]


def hung(fleet, folder):
    """Has chunks of the remote store hang whoever reads them. Returns what waits for the process that pulls into a folder."""
    for chunk in fleet.objects("chunks"):
        chunk.unlink()
        os.mkfifo(chunk)

    def pulling():
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if b"snapboot-remote" in (process / "cmdline").read_bytes().split(b"\0")[0]:
                    if any(os.readlink(link).startswith(f"{folder}/") for link in (process / "fd").iterdir()):
                        return int(process.name)
        return None

    return lambda: wait_until(pulling, "nothing is pulled")


def kill(numbers):
    for number in numbers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


@pytest.mark.fault("snapboot freeze is interrupted or killed while it pulls an image", "nothing is left; the image before stays")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_freeze_that_ends_while_it_pulls(tmp_path, number):
    fleet = Fleet(tmp_path, PYTHON)
    one, other = fleet.machine("one"), fleet.machine("other")
    output = other.folder / "images" / "app.img"
    output.parent.mkdir()
    freeze = [support.SNAPBOOT, "freeze", "-o", output, "--", *fleet.words]
    assert support.run(freeze, env=one.env, cwd=fleet.files, log=False).status == 0
    before = output.read_bytes()
    fleet.keep()
    wait = hung(fleet, output.parent)
    process = subprocess.Popen(
        freeze, env=other.env, cwd=fleet.files, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    pulling = wait()
    os.killpg(process.pid, number)
    assert process.wait(support.SECONDS) == -number
    wait_until(lambda: not os.path.exists(f"/proc/{pulling}"), "the pull goes on")
    assert [path.name for path in output.parent.iterdir()] == ["app.img"] and output.read_bytes() == before
    fleet.restore()
    again = support.run(freeze, env=other.env, cwd=fleet.files, log=False)
    assert again.status == 0 and again.out.endswith("from the remote store\n"), again


@pytest.mark.fault("a builder that is killed while it pulls an image", "the next start is ordinary, and then there is an image")
def test_a_builder_that_is_killed_while_it_pulls(tmp_path):
    fleet = Fleet(tmp_path, PYTHON)
    one, other = fleet.machine("one"), fleet.machine("other")
    first = fleet.start(one)
    one.wait()
    fleet.keep()
    wait = hung(fleet, other.place)
    assert fleet.start(other).fell_back
    pulling = wait()
    kill([*other.builders(), pulling])
    other.wait_until(lambda: not other.is_busy(), "the builder goes on")
    assert not made(other)
    fleet.restore()
    again = fleet.start(other)
    assert again.fell_back and again.out == first.out, again
    other.wait()
    assert made(other) and is_thawed(fleet.start(other)), said(other)
