"""Many thaws at once, thaws while the image is replaced or removed, freezes of one output at once."""

import os
import subprocess
import threading

import pytest
from common import support

pytestmark = pytest.mark.sample(6, whole=True)

THAWS = 50


def start(argv, env):
    """Start a program whose output is collected later."""
    return subprocess.Popen(
        [os.fspath(word) for word in argv], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.fixture
def program(tmp_path):
    """A folder with an image whose preloaded module answers with what it was frozen with."""
    (tmp_path / "helper.py").write_text("import os\nANSWER = os.environ.get('ANSWER')\nDATA = bytearray(b'x' * 3_000_000)\n")
    env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1", SNAPBOOT_LOG="1")
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "helper", env=env)
    return tmp_path, image, env


def test_many_thaws_at_once(program):
    _, image, env = program
    code = "import helper, os, sys; helper.DATA[:4] = b'mine'; print(sys.argv[1], os.getpid(), len(helper.DATA), os.urandom(4).hex())"
    running = [start([image, "-c", code, number], env) for number in map(str, range(THAWS))]
    answers = [process.communicate(timeout=support.SECONDS) for process in running]
    assert all(process.returncode == 0 for process in running)
    assert all(err == b"" for _, err in answers), answers
    lines = [out.decode().split() for out, _ in answers]
    assert [line[0] for line in lines] == [str(number) for number in range(THAWS)]
    assert [line[1] for line in lines] == [str(process.pid) for process in running]
    assert {line[2] for line in lines} == {"3000000"} and len({line[3] for line in lines}) == THAWS


@pytest.mark.fault("many processes from one image write to the same memory", "none sees another's")
def test_many_thaws_that_live_at_the_same_time(program):
    _, image, env = program
    code = "import helper, sys; helper.DATA[0] = int(sys.argv[1]); sys.stdout.write('ready\\n'); sys.stdout.flush(); "
    code += "sys.stdin.read(); print(helper.DATA[0])"
    running = [
        subprocess.Popen([image, "-c", code, str(n)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for n in range(THAWS)
    ]
    assert all(process.stdout.readline() == b"ready\n" for process in running)
    answers = [process.communicate(timeout=support.SECONDS)[0] for process in running]
    assert answers == [f"{n}\n".encode() for n in range(THAWS)], "what one writes no other sees"


@pytest.mark.fault("an image is replaced while others start it", "each start uses the old or the new one")
def test_thaws_while_the_image_is_replaced(program):
    folder, image, env = program
    stop = threading.Event()
    failures = []

    def thaw():
        while not stop.is_set():
            try:
                process = start([image, "-c", "import helper; print(len(helper.DATA), sum(helper.DATA))"], env)
            except OSError as error:
                failures.append(error)
                continue
            out, err = process.communicate(timeout=support.SECONDS)
            if (process.returncode, out, err) != (0, b"3000000 360000000\n", b""):
                failures.append((process.returncode, out, err))

    threads = [threading.Thread(target=thaw) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(8):
        support.frozen(image, [support.PYTHON], "--preload", "helper", env=env)
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.fault("the image of a running process is replaced, removed or renamed", "the process goes on")
def test_a_running_process_outlives_its_image(program):
    """It maps the old file, which stays as long as somebody maps it."""
    folder, image, env = program
    code = (
        "import helper, sys; print('ready', flush=True); sys.stdin.readline();"
        "print(sum(helper.DATA), sum(1 for _ in __import__('gc').get_objects()) > 0); import json, decimal; print(json.dumps([1]))"
    )
    for change in ("replaced", "removed", "renamed"):
        support.frozen(image, [support.PYTHON], "--preload", "helper", env=env)
        process = subprocess.Popen(
            [image, "-c", code], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout.readline() == b"ready\n"
        if change == "replaced":
            support.frozen(image, [support.PYTHON], env=env)
        elif change == "removed":
            image.unlink()
        else:
            image.rename(folder / "elsewhere.img")
        out, err = process.communicate(b"\n", timeout=support.SECONDS)
        assert (process.returncode, out, err) == (0, b"360000000 True\n[1]\n", b""), change


@pytest.mark.fault("freezes of one image at once", "one of them is there; nothing is left")
def test_freezes_of_one_output_at_once(program):
    folder, image, env = program
    argv = [support.SNAPBOOT, "freeze", "-o", image, "--preload", "helper", "--", support.PYTHON]
    running = [start(argv, env) for _ in range(4)]
    ends = [process.communicate(timeout=support.SECONDS) for process in running]
    assert [process.returncode for process in running] == [0] * 4, ends
    assert support.thawed([image, "-c", "import helper; print(len(helper.DATA))"], env=env).out == "3000000\n"
    assert [path.name for path in folder.iterdir() if ".freezing-" in path.name] == []


def test_freezes_of_different_outputs_at_once(program):
    folder, _, env = program
    outputs = [folder / f"{number}.img" for number in range(4)]
    running = [
        start([support.SNAPBOOT, "freeze", "-o", output, "--preload", "helper", "--", support.PYTHON], env)
        for output in outputs
    ]
    ends = [process.communicate(timeout=support.SECONDS) for process in running]
    assert [process.returncode for process in running] == [0] * 4, ends
    for output in outputs:
        assert support.thawed([output, "-c", "import helper; print(len(helper.DATA))"], env=env).out == "3000000\n"


def test_an_image_that_runs_cannot_be_overwritten_in_place(program):
    """The kernel says so (ETXTBSY); `snapboot freeze` therefore writes a new file and renames it."""
    _, image, env = program
    words = [image, "-c", "print('ready', flush=True); input()"]
    process = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    with pytest.raises(OSError, match="Text file busy"):
        open(image, "r+b").close()
    before = image.stat().st_ino
    support.frozen(image, [support.PYTHON], env=env)
    assert image.stat().st_ino != before
    process.communicate(b"\n", timeout=support.SECONDS)
    assert process.returncode == 0


def test_a_thaw_starts_thaws_and_freezes(program):
    folder, image, env = program
    code = (
        "import subprocess, sys\n"
        f"print(subprocess.run([{str(image)!r}, '-c', 'print(1)'], capture_output=True, text=True).stdout.strip())\n"
        f"print(subprocess.run([{str(support.SNAPBOOT)!r}, 'freeze', '-o', {str(folder / 'inner.img')!r}, '--',"
        f" {support.PYTHON!r}], capture_output=True).returncode)\n"
    )
    assert support.thawed([image, "-c", code], env=env).out == "1\n0\n"
    assert support.thawed([folder / "inner.img", "-c", "print(2)"], env=env).out == "2\n"
