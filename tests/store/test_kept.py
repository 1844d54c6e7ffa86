"""What a store keeps, and what it shows of it: a store that cannot be written, leftovers, reasons."""

import json
import os
import pty
import shutil
import socket
import subprocess
import threading

import pytest
from common import support
from common.languages import PYTHON, both

from store.stores import Store
from store.test_hostile import write

pytestmark = pytest.mark.sample(6, whole=True)


@both
@support.needs_root
@pytest.mark.fault("the store is on a file system that is mounted read-only", "the ordinary start, and no builder is left behind")
def test_a_store_that_is_read_only_is_not_built_in(tmp_path, language):
    store = Store(tmp_path)
    words = write(store, language)
    store.run(*words)
    store.wait()
    (image,) = store.place.glob("cache/*/1.img")
    image.unlink()
    script = (
        'mount --bind "$1/store" "$1/store"\nmount -o remount,bind,ro "$1/store"\ncd "$1"\nshift\n"$@" || exit\n'
        f'{support.SNAPBOOT} list\n! pgrep -f "build-image.*$PWD/store"\n'
    )
    argv = support.in_mount_namespace(script, tmp_path, support.SNAPBOOT, "run", "--", *words)
    result = support.run(argv, env=store.env)
    assert result.status == 0 and result.out.startswith("right"), result
    assert "none is made" in result.err and "cannot be written (read-only file system)" in result.err.lower(), result
    assert "cannot be written" in result.out, result


def test_leftovers_of_killed_builders_are_removed_by_the_next(tmp_path):
    store = Store(tmp_path)
    for name in ("one", "two"):
        words = write(store, PYTHON, name)
        store.run(*words)
    store.wait()
    one, two = sorted(store.place.glob("cache/*/1.img"))
    # No process has this number: it is above the kernel's limit.
    for name in (".1.img.freezing-4194305", ".8.img.freezing-4194305"):
        (one.parent / name).mkdir()
        (one.parent / name / "image").write_text("half of it")
    (one.parent / ".attempt.json.4194305").write_text("{")
    (tmp_path / "two.py").write_text("print('another')\n")
    store.run(*words)
    store.wait()
    assert [path.name for path in one.parent.iterdir() if path.name.startswith(".")] == []
    assert one.exists() and two.exists()


def test_no_reason_is_cut_short(tmp_path):
    store = Store(tmp_path)
    words = write(store, PYTHON)
    store.run(*words)
    store.wait()
    (note,) = store.place.glob("cache/*/attempt.json")
    (image,) = store.place.glob("cache/*/1.img")
    image.unlink()
    noted = json.loads(note.read_text())
    why = "a reason of " + " ".join(f"word-{number}" for number in range(60)) + " that ends here"
    refused = {"refused": {"why": [why, "second\x1b[31m", "third", "fourth", "fifth"]}}
    noted["outcomes"][-1]["outcome"] = refused
    note.write_text(json.dumps(noted))
    page = store.snapboot("list", log=False).out
    lines = [line.partition(": ")[2] for line in page.splitlines()]
    assert why in lines and "third" in lines and "fourth" not in lines and "and 2 more: see snapboot list --json" in lines, page
    assert "\x1b" not in page
    # At a terminal it is wrapped, and still whole.
    master, slave = pty.openpty()
    support.run(["stty", "cols", "50"], stdin=slave, log=False)
    subprocess.run([support.SNAPBOOT, "list"], env={**store.env, "TERM": "dumb"}, stdin=slave, stdout=slave, stderr=slave, check=True)
    os.close(slave)
    shown = b""
    try:
        while piece := os.read(master, 65536):
            shown += piece
    except OSError:
        pass
    os.close(master)
    lines = shown.decode().replace("\r", "").splitlines()
    assert why in " ".join(line.strip() for line in lines), shown
    assert all(len(line) <= 50 for line in lines if "word-" in line), shown


@both
def test_a_folder_that_lost_its_command_has_images_again(tmp_path, language):
    store = Store(tmp_path)
    script = tmp_path / ("tool" + language.ending)
    for value in (1, 2):
        script.write_text(f"print({value})\n")
        for _ in range(2):
            assert store.run(language.program, script).out.strip() == str(value)
            store.wait()
        # As by whoever removes a store while an image is being made, which then gets its name.
        (image,) = (row["path"] for row in store.list())
        os.unlink(os.path.join(os.path.dirname(image), "command.json"))
    assert store.run(language.program, script).out.strip() == "2"


# What this boot asks a socket is no input.
FAILS_WHEN_TOLD = """
import pathlib, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    if asked.connect_ex("\\0" + str(pathlib.Path(__file__).parent)) == 0 and asked.recv(1) == b"2":
        sys.exit("a file is gone")
"""


@pytest.mark.parametrize("is_whole", [True, False], ids=["removed", "emptied"])
def test_a_failure_says_nothing_where_the_store_was_removed_meanwhile(tmp_path, is_whole):
    store = Store(tmp_path)
    (tmp_path / "boot.py").write_text(FAILS_WHEN_TOLD)
    (tmp_path / "tool.py").write_text("import boot\nprint(1)\n")
    words = [PYTHON.program, "tool.py"]
    with socket.socket(socket.AF_UNIX) as asked:
        asked.bind("\0" + str(tmp_path))
        asked.listen()
        asked.settimeout(support.SECONDS)
        start = threading.Thread(target=store.run, args=words)
        start.start()
        for answer in (b"1", b"2"):
            boot, _ = asked.accept()
            if answer == b"2":
                make_again(store, is_whole)
            with boot:
                boot.sendall(answer)
        start.join()
    store.wait()
    assert list(store.place.glob("cache/*/1.img")) == []
    assert store.run(*words).out == "1\n"
    store.wait()
    assert len(list(store.place.glob("cache/*/1.img"))) == 1


def make_again(store, is_whole):
    """Removes the folder of the program, or all that is in it, and makes another one in its place as a later start would."""
    (folder,) = store.place.glob("cache/*/")
    command = (folder / "command.json").read_bytes()
    for entry in [folder] if is_whole else folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    folder.mkdir(exist_ok=True, mode=0o700)
    (folder / "command.json").write_bytes(command)
