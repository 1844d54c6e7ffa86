"""How a starting image finds itself, its arguments and its environment, under whatever name it is run."""

import os
import shutil
import threading

import pytest
from common import support

TELLS = "import os, sys; print(sys.argv[1:], os.environ.get('GIVEN'))"


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return support.frozen(tmp_path_factory.mktemp("opened") / "python.img", [support.PYTHON])


def environment(**more):
    return support.environment(GIVEN="here", **more)


def test_a_python_image_asks_proc_for_nothing(image):
    """Each such question costs as much as ten others. Here there would be no answer: of all of /proc there is one link."""
    script = 'mount -t tmpfs none /proc; ln -s 1 /proc/self; exec "$@"'
    result = support.thawed(support.in_mount_namespace(script, image, "-c", TELLS, "a", ""), env=environment())
    assert result.out == "['a', ''] here\n"


def test_what_does_not_fit_comes_from_proc(image):
    result = support.thawed([image, "-c", TELLS, "a", ""], env=environment(MUCH="x" * 20_000))
    assert result.out == "['a', ''] here\n"


@pytest.mark.parametrize("size", [65_000, 65_536, 70_000, 131_000])
def test_sizes_near_that_of_a_count(image, size):
    result = support.thawed([image, "-c", "import sys; print([len(one) for one in sys.argv[1:]])", "x" * size], env=environment())
    assert result.out == f"[{size}]\n"


def test_by_its_descriptor(image, tmp_path):
    """The kernel names such a program by a path below /dev/fd that leads nowhere in the new process; here the image has no name either."""
    copy = tmp_path / "python.img"
    shutil.copy(image, copy)
    code = (
        "import os, sys\n"
        "image = os.open(sys.argv[1], os.O_RDONLY)\n"
        "os.unlink(sys.argv[1])\n"
        "os.execve(image, [sys.argv[1], '-c', 'print(1)'], os.environ)\n"
    )
    assert support.thawed([support.PYTHON, "-c", code, copy], env=environment()).out == "1\n"


def test_the_image_that_runs_is_not_the_one_that_came_in_its_place(image, tmp_path):
    """Two images take turns under one path: the one that the kernel has executed goes on."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    shutil.copy(image, tmp_path / "a/own.img")
    other = support.frozen(tmp_path / "b/own.img", [support.PYTHON, "-c", "print('the other')"])
    own = tmp_path / "own.img"
    shutil.copy(image, own)
    swap = tmp_path / "swap"
    stop = threading.Event()

    def swap_for_good():
        turn = 0
        while not stop.is_set():
            turn += 1
            os.link([tmp_path / "a/own.img", other][turn % 2], swap)
            os.replace(swap, own)

    thread = threading.Thread(target=swap_for_good)
    thread.start()
    try:
        seen = {support.thawed([own, "-c", "print('own')"], env=environment()).out for _ in range(200)}
    finally:
        stop.set()
        thread.join()
    assert seen == {"own\n", "the other\n"}
