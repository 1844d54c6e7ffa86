"""A store in trouble: every start is right all the same."""

import json
import os
import random
import shutil
import signal
import subprocess
import threading

import pytest
from common import support
from common.languages import PYTHON, both

from store.stores import Store, is_thawed

pytestmark = pytest.mark.sample(12)

COUNT = 20
SCRIPTS = {"python": "import sys\nprint('right', sys.argv[1:])\n", "ruby": 'puts "right #{ARGV}"\n'}


def write(store, language, name="tool"):
    path = store.folder / (name + language.ending)
    path.write_text(SCRIPTS[language.name])
    return [language.program, path.name]


def start_many(store, words, count):
    """Starts the command so often at once. Returns the processes."""
    return [
        subprocess.Popen(
            [support.SNAPBOOT, "run", "--", *words, str(number)], env=store.env, cwd=store.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for number in range(count)
    ]


def all_right(language, processes):
    for number, process in enumerate(processes):
        out, err = process.communicate(timeout=support.SECONDS)
        expected = f"right ['{number}']\n" if language is PYTHON else f'right ["{number}"]\n'
        assert (process.returncode, out.decode(), err) == (0, expected, b""), (number, out, err)


@both
@pytest.mark.parametrize("trouble", ["none", "builders are killed", "the store is removed"])
def test_twenty_starts_at_once_are_right(tmp_path, language, trouble):
    store = Store(tmp_path)
    words = write(store, language)
    done = threading.Event()

    def harm():
        while not done.wait(random.uniform(0, 0.2)):
            if trouble == "builders are killed":
                for number in store.builders():
                    try:
                        os.kill(number, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
            elif trouble == "the store is removed":
                shutil.rmtree(store.place, ignore_errors=True)

    thread = threading.Thread(target=harm)
    thread.start()
    try:
        for count in (COUNT, COUNT // 4):  # the second time there may be an image
            all_right(language, start_many(store, words, count))
    finally:
        done.set()
        thread.join()
    # Nothing of it is in the way later on.
    support.run([support.SNAPBOOT, "run", "--", *words], env=store.env, cwd=store.folder)
    assert [row["state"] for row in store.wait()] == ["fresh"]
    assert is_thawed(store.run(*words))


def test_one_image_is_made_at_a_time(tmp_path):
    """Of one command one, of several commands one after the other; and all of them come to it."""
    store = Store(tmp_path)
    commands = [write(store, PYTHON, f"tool{number}") for number in range(4)]
    processes = [process for words in commands for process in start_many(store, words, 3)]
    at_once = []

    def have_ended():
        at_once.append(len(list(store.place.glob("cache/*/.*.freezing-*"))))
        return all(process.poll() is not None for process in processes) and not store.builders()

    store.wait_until(have_ended, "starts and builders have not ended")
    for process in processes:
        process.communicate()
    assert max(at_once) == 1
    assert sorted(row["state"] for row in store.wait()) == ["fresh"] * 4


@pytest.mark.skipif(not support.IS_ROOT, reason="only root may do this")
@both
def test_a_full_disk_keeps_nobody_from_starting(tmp_path, language):
    store = Store(tmp_path)
    words = write(store, language)
    store.place.mkdir()
    script = (
        'mount -t tmpfs -o size=2M tmpfs "$1/store" || exit 77\n'
        'cd "$1"; shift\n'
        'for number in 1 2 3; do "$@"; done\n'
        'while pgrep -f "build-image.*$PWD/store" > /dev/null; do sleep 0.1; done\n'
        f'"$@"; {support.SNAPBOOT} list --json\n'
    )
    argv = support.in_mount_namespace(script, tmp_path, support.SNAPBOOT, "run", "--", *words)
    result = support.run(argv, env=store.env, log=False)
    starts, _, rows = result.out.partition("[\n")
    (row,) = json.loads("[" + rows)
    assert starts.count("right") == 4 and row["state"] == "failed" and "no space left" in row["why"][0], (starts, row)


@both
def test_a_store_that_cannot_be_written_to_is_none(tmp_path, language):
    store = Store(tmp_path)
    words = write(store, language)
    store.place.write_text("a file")
    result = store.run(*words)
    assert result.out.startswith("right") and "none is made" in result.err, result
    store.place.unlink()
    (store.place / "cache").mkdir(parents=True)
    key = None
    store.run(*words)
    store.wait()
    folder = next((store.place / "cache").glob("tool*"))
    key = folder.name
    # What lies where an image should be is not executed.
    image = folder / "1.img"
    for content in ("#!/bin/sh\necho wrong\n", ""):
        image.write_text(content)
        image.chmod(0o755)
        result = store.run(*words)
        assert "wrong" not in result.out and result.out.startswith("right"), (key, result)
        store.wait()


def test_damaged_notes_are_no_trouble(tmp_path):
    store = Store(tmp_path)
    words = write(store, PYTHON)
    store.run(*words)
    store.wait()
    folder = next((store.place / "cache").glob("tool*"))
    for name in ("attempt.json", "command.json", "profile"):
        (folder / name).write_bytes(b"\0{]" * 10)
        result = store.run(*words)
        assert result.out == "right []\n", (name, result)
        assert store.snapboot("list").status == 0
    (folder.parent / "notes").mkdir()
    (folder.parent / "notes" / "1.img").write_text("of somebody else")
    assert store.snapboot("list", "--json").status == 0


# Takes for ever to load in a builder, which is scheduled as a batch job, as long as a file is there; says so by the time of another.
HANGS = """import os, time
HERE = os.path.dirname(__file__)
while os.sched_getscheduler(0) == os.SCHED_BATCH and os.path.exists(HERE + "/hang"):
    os.utime(HERE + "/reached")
    time.sleep(0.05)
"""


@pytest.fixture
def hanging(tmp_path):
    """A store, the words that start a program, and the builder of its image, which hangs while `hang` is there. The start was made in
    the folder `place`."""
    store = Store(tmp_path)
    (tmp_path / "app.py").write_text("import hangs\nprint('ran')\n")
    (tmp_path / "hangs.py").write_text(HANGS)
    for name in ("hang", "reached"):
        (tmp_path / name).touch()
    os.utime(tmp_path / "reached", (0, 0))
    (tmp_path / "place").mkdir()
    words = [support.PYTHON, str(tmp_path / "app.py")]
    assert store.run(*words, cwd=tmp_path / "place").out == "ran\n"
    store.wait_until(lambda: (tmp_path / "reached").stat().st_mtime > 0, "no builder comes to the module")
    (builder,) = store.builders()
    yield store, words, builder
    (tmp_path / "hang").unlink(missing_ok=True)


def test_a_boot_that_takes_for_ever_is_not_tried_again_at_once(hanging):
    store, words, builder = hanging
    os.kill(builder, signal.SIGALRM)
    (row,) = store.wait()
    assert row["state"] == "failed" and "SIGALRM" in row["why"][0], row
    again = store.run(*words, cwd=store.folder / "place")
    assert again.out == "ran\n" and "the next attempt is due in " in again.err and not store.builders(), again


def test_no_image_is_made_in_a_directory_that_is_gone(hanging, tmp_path):
    store, words, _ = hanging
    (tmp_path / "place").rmdir()
    (tmp_path / "hang").unlink()
    (row,) = store.wait()
    assert row["state"] == "none", row
    assert store.run(*words).out == "ran\n"
    assert [row["state"] for row in store.wait()] == ["fresh"]
    assert is_thawed(store.run(*words))
