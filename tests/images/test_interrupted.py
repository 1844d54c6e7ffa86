"""A freeze that is cut off: it was killed, the disk was full, the user pressed Ctrl-C.

The image that was there before stays and runs; no half image ever has the final name; what is left behind beside it is removed
by the next freeze.
"""

import os
import random
import resource
import signal
import subprocess
import time

import pytest
from common import sources, support
from common.languages import PYTHON, both
from common.waiting import random_moment, wait_until

pytestmark = pytest.mark.sample(12, whole=True)

ASK = ["-c", "import helper; print(helper.ANSWER)"]
POINTS = sources.crates()[support.ROOT / "crates/freeze/src/fault.rs"].texts(item="name")

# Where the image has its final name, and where the file in the control directory has no first byte.
RENAMED = ("before-directory-sync", "after-rename")
UNFINISHED = ("after-control-dir", "after-request", "after-dump", "before-head", "before-magic")


@pytest.fixture
def program(tmp_path):
    """A folder with a module and an image of it (answer 1), and what freezes it again (answer 2)."""
    (tmp_path / "helper.py").write_text("ANSWER = 1\n")
    env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1", ANSWER="1")
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "helper", env=env)
    return tmp_path, image, env


def freeze_argv(image):
    return [support.SNAPBOOT, "freeze", "-o", image, "--preload", "helper", "--", support.PYTHON]


def leftovers(folder):
    """What a freeze left beside its output."""
    return [path.name for path in folder.iterdir() if path.name not in ("helper.py", "app.img", "__pycache__")]


def check_old(folder, image, env, before):
    assert image.read_bytes() == before
    assert support.thawed([image, *ASK], env=env).out == "1\n"


def test_the_fault_points_are_known():
    assert "before-rename" in POINTS and len(POINTS) >= 11


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.fault(
    "a freeze is killed at a named point",
    "the image that was there stays whole and is used; the next freeze removes what is left",
)
def test_killed_at_a_fault_point(program, point):
    folder, image, env = program
    before = image.read_bytes()
    result = support.run(freeze_argv(image), env={**env, "SNAPBOOT_FAULT": point}, log=False)
    assert result.status == -signal.SIGKILL, result
    if point in RENAMED:
        assert support.thawed([image, *ASK], env=env).out == "1\n"
    else:
        check_old(folder, image, env, before)
    assert leftovers(folder), "this is what the next freeze is to remove"
    for name in leftovers(folder):
        half = folder / name / "image"
        if half.exists() and point in UNFINISHED:
            done = support.run([support.launcher(), half, *ASK], env=env)
            assert done.fell_back or done.status in (125, 126), f"an unfinished image was used: {done}"
    support.frozen(image, [support.PYTHON], "--preload", "helper", env=env)
    assert leftovers(folder) == []
    assert support.thawed([image, *ASK], env=env).out == "1\n"


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.fault("the same, and there was no image", "there is none, or a whole one")
def test_killed_without_an_image_before(program, point):
    folder, image, env = program
    image.unlink()
    result = support.run(freeze_argv(image), env={**env, "SNAPBOOT_FAULT": point}, log=False)
    assert result.status == -signal.SIGKILL, result
    assert image.exists() == (point in RENAMED)
    support.frozen(image, [support.PYTHON], "--preload", "helper", env=env)
    assert leftovers(folder) == []


@pytest.mark.fault(
    "a freeze is killed at any moment",
    "the image that was there stays whole and is used; the next freeze removes what is left",
)
def test_killed_at_random_moments(program):
    folder, image, env = program
    before = image.read_bytes()
    began = time.monotonic()
    subprocess.run(freeze_argv(folder / "app.img"), env=env, check=True, capture_output=True)
    whole = time.monotonic() - began
    support.write(image, before)
    chance = random.Random(2)
    killed = 0
    for _ in range(25):
        process = subprocess.Popen(
            freeze_argv(image), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if killed:  # the first one at once: how long the next ones take depends on the load
            random_moment(chance, whole)
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        assert support.thawed([image, *ASK], env=env).out == "1\n", "whichever of the two it is"
        assert support.run([support.SNAPBOOT, "verify", image]).status == 0
    assert killed
    support.frozen(image, [support.PYTHON], "--preload", "helper", env=env)
    assert leftovers(folder) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.fault("SIGINT, SIGTERM or SIGHUP while freezing", "the program ends too; nothing is left")
def test_ended_by_a_signal(program, number):
    folder, image, env = program
    before = image.read_bytes()
    (folder / "helper.py").write_text("import time\nopen(__file__ + '.begun', 'w').close()\ntime.sleep(3600)\n")
    process = subprocess.Popen(freeze_argv(image), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    begun = folder / "helper.py.begun"
    wait_until(lambda: begun.exists() or process.poll() is not None, "the program neither began to load nor ended")
    begun.unlink()
    process.send_signal(number)
    process.communicate(timeout=support.SECONDS)
    assert process.returncode == -number
    assert leftovers(folder) == [] and image.read_bytes() == before
    (folder / "helper.py").write_text("ANSWER = 1\n")


@pytest.mark.fault("a freeze is killed while the program boots", "the program ends too, without a word")
@both
def test_the_boot_of_a_killed_freeze_ends_silently(language, tmp_path):
    if language is PYTHON:
        source = "import os, time\nopen(__file__ + '.begun', 'w').close()\nwhile True:\n    time.sleep(0.01)\n    os.stat('.')"
    else:
        source = "File.write(__FILE__ + '.begun', '')\nloop { sleep 0.01; File.stat('.') }"
    env, path = language.write(tmp_path, source)
    argv = [support.SNAPBOOT, "freeze", "-o", tmp_path / "x.img", "--preload", language.preload(), "--", language.program]
    process = subprocess.Popen(
        argv, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    begun = path.with_name(path.name + ".begun")
    wait_until(lambda: begun.exists() or process.poll() is not None, "the program neither began to load nor ended")
    process.kill()
    said, _ = process.communicate(timeout=support.SECONDS)  # until nobody holds the stream any more
    assert process.returncode == -signal.SIGKILL and said == b""


@pytest.mark.parametrize("point", [point for point in POINTS if not point.startswith("freezer-")])
@pytest.mark.fault("SIGINT at a named point, also after the program has booted", "the program ends too; nothing is left")
def test_ended_by_a_signal_at_a_fault_point(program, point):
    folder, image, env = program
    before = image.read_bytes()
    env = {**env, "SNAPBOOT_FAULT": point, "SNAPBOOT_FAULT_SIGNAL": str(int(signal.SIGINT))}
    result = support.run(freeze_argv(image), env=env, log=False)
    assert result.status == -signal.SIGINT, result
    assert leftovers(folder) == []
    assert (image.read_bytes() == before) == (point not in RENAMED)


def unread(argv, env, name):
    """The status of a command of which nobody reads standard output or error."""
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, name: writer}
    try:
        return subprocess.run(argv, env=env, **streams).returncode
    finally:
        os.close(writer)


def test_nobody_reads_what_it_says(program):
    """`snapboot freeze ... | true`: SIGPIPE takes nothing away from the image, and leaves nothing."""
    folder, image, env = program
    before = image.read_bytes()
    assert unread([*freeze_argv(image), "-c", "import helper"], env, "stdout") == -signal.SIGPIPE
    assert leftovers(folder) == [] and image.read_bytes() != before
    before = image.read_bytes()
    (folder / "helper.py").write_text("raise SystemExit\n")
    assert unread(freeze_argv(image), env, "stderr") > 0, "it reports a failure, not a crash of its own"
    assert leftovers(folder) == [] and image.read_bytes() == before


@pytest.mark.fault("the program dies while it boots", "a message; the old image stays")
def test_a_program_that_dies_while_it_boots(program):
    folder, image, env = program
    before = image.read_bytes()
    deaths = {
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": "SIGKILL",
        "import os; os._exit(0)": "before its freeze point",
        "import ctypes; ctypes.string_at(8)": "SIGSEGV",
        "raise ValueError('mine')": "ValueError: mine",
        "import sys; sys.exit(5)": "",
    }
    for source, words in deaths.items():
        (folder / "helper.py").write_text(source)
        result = support.freeze(image, [support.PYTHON], "--preload", "helper", env=env)
        assert result.status in (1, 2) and words in result.err, (source, result)
        assert image.read_bytes() == before and leftovers(folder) == []


@pytest.mark.fault("a limit on the size of files while freezing", "a message; the old image stays")
def test_the_kernel_kills_the_child_that_writes(program):
    """A file size limit stands for whatever ends the writing: the freezer's child gets SIGXFSZ, or an error."""
    folder, image, env = program
    before = image.read_bytes()
    for megabytes in (0, 1, 2, 4):  # the smallest image has more
        result = support.run(
            freeze_argv(image), env=env, log=False,
            preexec_fn=lambda most=megabytes << 20: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        )
        assert result.status not in (0, -signal.SIGSEGV), result
        assert image.read_bytes() == before
    support.frozen(image, [support.PYTHON], "--preload", "helper", env=env)
    assert leftovers(folder) == []


FULL = """
mount -t tmpfs -o size="$1" none /mnt
shift
cp "$1" /mnt/app.img
shift
status=0
"$@" -o /mnt/app.img -- $PYTHON || status=$?
echo "status $status"
ls -A /mnt
/mnt/app.img -c 'print("still", 1)'
"""


@pytest.mark.parametrize("room", ["0", "20k", "1m", "4m", "8m"])
@pytest.mark.fault("the disk is full while freezing", "a message; the old image stays and is used; nothing is left")
def test_a_full_disk(program, room):
    folder, image, env = program
    megabytes = image.stat().st_blocks * 512 / (1 << 20)
    extra = {"0": 0.02, "20k": 0.05, "1m": 1, "4m": 4, "8m": megabytes - 0.3}[room]
    size = str(int((megabytes + extra) * (1 << 20)))
    argv = support.in_mount_namespace(FULL, size, os.fspath(image), os.fspath(support.SNAPBOOT), "freeze")
    result = support.run(argv, env={**env, "PYTHON": support.PYTHON})
    assert "status 2" in result.out or "status 1" in result.out, result
    assert "full" in result.err or "space" in result.err, result
    assert result.out.splitlines()[1:] == ["app.img", "still 1"], result


@pytest.mark.fault("the place for the image is read-only", "a message")
def test_a_place_that_cannot_be_written(tmp_path):
    script = 'mount -t tmpfs -o ro none /mnt; exec "$@"'
    argv = support.in_mount_namespace(
        script, os.fspath(support.SNAPBOOT), "freeze", "-o", "/mnt/app.img", "--", support.PYTHON
    )
    result = support.run(argv)
    assert result.status == 2 and "/mnt" in result.err and "read-only" in result.err, result


@pytest.mark.fault("somebody removes the control directory while freezing", "a message; the old image stays")
def test_a_control_directory_that_is_removed_meanwhile(program):
    folder, image, env = program
    before = image.read_bytes()
    (folder / "helper.py").write_text(
        "import glob, shutil\n"
        f"for found in glob.glob({str(folder / '.app.img.freezing-*')!r}): shutil.rmtree(found)\n"
    )
    result = support.freeze(image, [support.PYTHON], "--preload", "helper", env=env)
    assert result.status in (1, 2) and "snapboot: " in result.err, result
    assert image.read_bytes() == before


def test_nobody_else_can_read_an_image_while_it_is_written(program):
    folder, image, env = program
    (folder / "helper.py").write_text(
        "import glob, os\n"
        f"(found,) = glob.glob({str(folder / '.app.img.freezing-*')!r})\n"
        "ANSWER = [oct(os.stat(name).st_mode & 0o777) for name in (found, found + '/image')]\n"
    )
    os.umask(0)
    try:
        support.frozen(image, [support.PYTHON], "--preload", "helper", env=env)
    finally:
        os.umask(0o022)
    assert support.thawed([image, *ASK], env=env).out == "['0o700', '0o600']\n"
    assert image.stat().st_mode & 0o022 == 0
