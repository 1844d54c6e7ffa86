"""A freeze or a thaw that is killed before each of the system calls with which it writes, and the order of these calls.

The calls come from strace, which also kills: no list of them can get out of date. What a program killed there leaves behind is
what a crash of the machine leaves behind, as far as it was written in this order.
"""

import os
import re
import signal
import subprocess

import pytest
from common import sources, support
from common.system_calls import calls, killed_before, thinned

pytestmark = pytest.mark.sample(4, whole=True)

ASK = ["-c", "import helper; print(helper.ANSWER)"]
FREEZER_POINTS = sources.crates()[support.ROOT / "crates/freezer/src/capture.rs"].texts(receiver="fault_point")


@pytest.fixture
def program(tmp_path):
    """A folder with a module, an image of it, the environment that finds it, and the argv of another freeze."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "helper.py").write_text("ANSWER = 1\n")
    env = support.environment(PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1")
    image = support.frozen(folder / "app.img", [support.PYTHON], "--preload", "helper", env=env)
    freeze = [support.SNAPBOOT, "freeze", "-o", image, "--preload", "helper", "--", support.PYTHON]
    return folder, image, env, freeze


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")


@pytest.mark.fault(
    "a freeze is killed before any call with which it writes, syncs or renames",
    "the image that was there stays whole and is used; the next freeze removes what is left",
)
def test_a_freeze_killed_before_each_change(program, tmp_path):
    folder, image, env, freeze = program
    found = thinned(calls(freeze, env, folder, tmp_path / "log"))
    kinds = [name for name, _, _ in found]
    assert {"fsync", "rename"} <= set(kinds) and len(found) > 15, kinds
    renamed = False
    for name, number, line in found:
        before = image.read_bytes()
        result = killed_before(freeze, env, name, number)
        assert result.status == -signal.SIGKILL or result.status == 128 + signal.SIGKILL, (line, result)
        assert renamed or image.read_bytes() == before, line
        assert support.run([support.SNAPBOOT, "verify", image], log=False).status == 0, line
        assert support.thawed([image, *ASK], env=env).out == "1\n", line
        assert len([other for other in names(folder) if "freezing" in other]) <= 2, (line, names(folder))
        renamed = renamed or name.startswith("rename")
    support.frozen(image, [support.PYTHON], "--preload", "helper", env=env)
    assert names(folder) == ["app.img", "helper.py"]


@pytest.mark.fault(
    "the power fails while freezing",
    "the old image or the new one: the file is on the disk before it gets its name, its first byte comes last, the directory is synced",
)
def test_the_order_that_survives_a_power_failure(program, tmp_path):
    folder, image, env, freeze = program
    lines = [line for _, _, line in calls(freeze, env, folder, tmp_path / "log")]
    (rename,) = [index for index, line in enumerate(lines) if line.startswith("rename") and f'"{image}"' in line]
    file = re.match(r'rename\w*\((?:[^"]*)"([^"]*)"', lines[rename]).group(1)
    of_file = [line for line in lines[:rename] if f"<{file}>" in line]
    assert of_file[-1].startswith("fsync("), "nothing is written after the sync"
    writes = [line for line in of_file if re.match("write|pwrite|copy_file_range|sendfile|ftruncate", line)]
    assert re.match(r"pwrite64\(\d+<[^>]*>, \"\\211\", 1, 8192\)", writes[-1]), writes[-1]
    assert any(re.match(rf"fsync\(\d+<{re.escape(str(folder))}>\)", line) for line in lines[rename + 1 :]), lines[rename:]


@pytest.mark.parametrize("point", FREEZER_POINTS)
@pytest.mark.fault("the process that writes its own memory is killed", "the freeze fails, and leaves nothing")
def test_the_freezer_killed_at_a_fault_point(program, point):
    folder, image, env, freeze = program
    before = image.read_bytes()
    result = support.run(freeze, env={**env, "SNAPBOOT_FAULT": point}, log=False)
    assert result.status in (1, 2) and "snapboot: " in result.err, result
    assert image.read_bytes() == before and names(folder) == ["app.img", "helper.py"]
    assert support.thawed([image, *ASK], env={**env, "SNAPBOOT_FAULT": point}).out == "1\n", "a thaw has no fault points"


def test_the_freezer_has_fault_points():
    assert len(FREEZER_POINTS) == 3


@pytest.mark.fault("a thaw is killed while it writes IMAGE.seen", "the next thaw compares again; one leftover at most")
def test_a_thaw_killed_before_each_change(program, tmp_path):
    folder, image, env, _ = program
    os.utime(folder / "helper.py")
    found = calls([image, *ASK], env, folder, tmp_path / "log")
    assert [name for name, _, _ in found] == ["openat", "write", "write", "renameat"], found
    for name, number, line in found:
        image.with_name("app.img.seen").unlink(missing_ok=True)
        result = killed_before([image, *ASK], env, name, number)
        assert result.status in (-signal.SIGKILL, 128 + signal.SIGKILL), (line, result)
        for _ in range(3):
            assert support.thawed([image, *ASK], env=env).out == "1\n", line
        assert names(folder) == ["app.img", "app.img.seen", "helper.py"], line


@pytest.mark.fault(
    "a thaw is killed while it counts itself in IMAGE.thaws",
    "it was counted or not; never more thaws than allowed",
)
def test_a_counted_thaw_killed_before_each_change(program, tmp_path):
    folder, image, env, freeze = program
    support.frozen(image, [support.PYTHON], "--preload", "helper", "--max-thaws", "5", env=env)
    found = calls([image, *ASK], env, folder, tmp_path / "log")
    assert [name for name, _, _ in found] == ["write"], found
    for name, number, _ in found:
        killed_before([image, *ASK], env, name, number)
    results = [support.run([image, *ASK], env=env) for _ in range(6)]
    assert {result.out for result in results} == {"1\n"}
    assert [result.fell_back for result in results] == [False] * 4 + [True] * 2, "one thaw was counted under strace"


FULL_THAW = """
mount -t tmpfs -o size="$1" none /mnt
cp "$2" /mnt/app.img
[ ! -e "$2.thaws" ] || cp "$2.thaws" /mnt/app.img.thaws
dd if=/dev/zero of=/mnt/fill bs=4096 2>/dev/null || true
shift 2
"$@"
ls -A /mnt
"$@"
ls -A /mnt
"""


def on_a_full_disk(program):
    """What two starts of an image on a full disk print, and the listing of that disk after each."""
    folder, image, env, _ = program
    size = str(image.stat().st_size + (64 << 10))
    argv = support.in_mount_namespace(FULL_THAW, size, os.fspath(image), "/mnt/app.img", *ASK)
    return support.run(argv, env=env)


@pytest.mark.fault("the disk is full when a thaw wants to write IMAGE.seen", "the thaw goes on; nothing is left")
def test_a_thaw_on_a_full_disk(program):
    folder, image, _, _ = program
    os.utime(folder / "helper.py")
    result = on_a_full_disk(program)
    assert result.out == "1\napp.img\nfill\n" * 2 and not result.fell_back, result


@pytest.mark.fault("the disk is full when a thaw is to be counted", "the thaw, where the count still fits, or the ordinary start")
def test_a_counted_thaw_on_a_full_disk(program):
    folder, image, env, _ = program
    support.frozen(image, [support.PYTHON], "--preload", "helper", "--max-thaws", "5", env=env)
    result = on_a_full_disk(program)
    assert result.out == "1\napp.img\napp.img.thaws\nfill\n" * 2 and result.status == 0, result


@pytest.mark.fault("freezes of one image at once, each killed at some point, and thaws meanwhile", "a whole image in every thaw")
def test_killed_freezes_at_once_and_thaws(program):
    folder, image, env, freeze = program
    words = [os.fspath(word) for word in freeze]
    points = ("after-request", "before-magic", "before-pages", "before-sync", "before-rename", "before-directory-sync", None)
    running = [
        subprocess.Popen(
            words,
            env={**env, "SNAPBOOT_FAULT": point} if point else env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for point in points
    ]
    while any(process.poll() is None for process in running):
        assert support.thawed([image, *ASK], env=env).out == "1\n"
    assert [process.returncode for process in running] == [-signal.SIGKILL] * (len(points) - 1) + [0]
    support.frozen(image, [support.PYTHON], "--preload", "helper", env=env)
    assert names(folder) == ["app.img", "helper.py"]
