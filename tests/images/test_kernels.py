"""An image thaws under another kernel than the one that it was made under: one whose vdso is another, or that has none.

The image is patched to hold another digest of its vdso than this kernel's, so that the launcher takes this kernel for another one.
`make kernels` has real ones (tools/kernels.py).
"""

import subprocess

import pytest
from common import support
from common.image_file import ImageFile

pytestmark = pytest.mark.sample(6, whole=True)

# Times are compared with what the kernel says in other ways, and each function is called by name, as C code would.
PYTHON_TIMES = """
import ctypes, os, struct, time

class Pair(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("fraction", ctypes.c_long)]

libc = ctypes.CDLL(None, use_errno=True)
SYSCALLS = dict(gettimeofday=96, time=201, clock_gettime=228, clock_getres=229, getcpu=309)

def called(name, *arguments):
    pair = Pair()
    assert libc[name](*arguments, ctypes.byref(pair)) == 0
    return pair.seconds + pair.fraction / (1e6 if name == "gettimeofday" else 1e9)

def asked(*arguments):
    pair = Pair()
    assert libc.syscall(228, *arguments, ctypes.byref(pair)) == 0
    return pair.seconds + pair.fraction / 1e9

def near(one, other):
    return -0.05 < one - other < 30

def pair_of_day():
    pair = Pair()
    assert libc.gettimeofday(ctypes.byref(pair), None) == 0
    return pair.seconds + pair.fraction / 1e6

print([near(called("clock_gettime", clock), asked(clock)) for clock in (0, 1, 2, 3, 4, 5, 6, 7, 11)])
print(near(time.time(), asked(0)), near(time.monotonic(), asked(1)), near(pair_of_day(), asked(0)))
print(-2 <= libc.time(None) - asked(0) <= 30, called("clock_getres", 1) > 0, libc.sched_getcpu() in os.sched_getaffinity(0))
print(time.monotonic() <= time.monotonic() <= time.monotonic(), len(set(os.urandom(8) for _ in range(9))))
pair = Pair()
print(libc.clock_gettime(-1, ctypes.byref(pair)), ctypes.get_errno() == 22)

vdso = [line.split("-")[0] for line in open("/proc/self/maps") if "[vdso]" in line]
auxv = open("/proc/self/auxv", "rb").read()
pairs = dict(struct.iter_unpack("<QQ", auxv))
print("auxv names", "the kernel's" if [hex(pairs[33])[2:]] == [place.lstrip("0") for place in vdso] else "another")
print("at", *vdso)
"""

PYTHON_ANSWERS = [
    "[" + ", ".join(["True"] * 9) + "]",
    "True True True",
    "True True True",
    "True 9",
    "-1 True",
    "auxv names the kernel's",
]

RUBY_TIMES = """
clocks = [Process::CLOCK_REALTIME, Process::CLOCK_MONOTONIC, Process::CLOCK_PROCESS_CPUTIME_ID, Process::CLOCK_BOOTTIME]
puts clocks.map { |clock| one = Process.clock_gettime(clock); one.positive? && one <= Process.clock_gettime(clock) }.inspect
File.write(ARGV[0], '')
puts (Time.now - File.mtime(ARGV[0])).abs < 30, Process.clock_getres(:GETTIMEOFDAY_BASED_CLOCK_REALTIME).positive?
uptime = File.read('/proc/uptime').to_f
puts (Process.clock_gettime(Process::CLOCK_BOOTTIME) - uptime).abs < 30, Random.urandom(8) != Random.urandom(8)
"""


def of_other_kernel(image, changes=()):
    """A copy of an image that takes this kernel for another one; returns its path and where its own vdso lies."""
    copy = ImageFile(support.read(image))
    copy.set("Platform", "vdso", copy.rows("platform")[0], bytes(16))
    (row,) = rows_of(copy, "VDSO_COPY")
    start = copy.get("Mapping", "start", row)
    for change in changes:
        change(copy, row)
    return support.write(image.with_name("other.img"), copy.seal()), start


def rows_of(copy, kind):
    wanted = copy.format.constants[kind]
    return [row for row in copy.rows("mappings") if copy.get("Mapping", "kind", row) == wanted]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    return support.frozen(folder / "app.img", [support.PYTHON], "--preload", "time,ctypes")


def is_elsewhere(lines, start):
    """Whether the vdso that is called is not where the process had its own."""
    (line,) = [line for line in lines if line.startswith("at ")]
    return int(line.split()[1], 16) != start


def test_under_its_own_kernel_the_vdso_is_where_it_was(image):
    out = support.thawed([image, "-c", PYTHON_TIMES]).out.splitlines()
    assert out[:-1] == PYTHON_ANSWERS
    assert not is_elsewhere(out, rows_start(image))


def rows_start(image):
    copy = ImageFile(support.read(image))
    return copy.get("Mapping", "start", rows_of(copy, "VDSO_COPY")[0])


def test_under_another_kernel_its_functions_lead_to_the_kernels(image):
    other, start = of_other_kernel(image)
    out = support.thawed([other, "-c", PYTHON_TIMES]).out.splitlines()
    assert out[:-1] == PYTHON_ANSWERS
    assert is_elsewhere(out, start)
    why = support.run([support.SNAPBOOT, "inspect", "--why", other], log=False)
    assert why.status == 0, why


def test_threads_and_children_have_the_functions_too(image):
    other, _ = of_other_kernel(image)
    code = (
        "import os, threading, time\n"
        "times = []\n"
        "threads = [threading.Thread(target=lambda: times.append(time.time())) for _ in range(4)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(time.time() < times[0])\n"
        "print(len(times), os.waitpid(child, 0)[1])\n"
    )
    assert support.thawed([other, "-c", code]).out == "4 0\n"


def test_a_vdso_whose_place_is_taken_is_moved(image):
    """Without randomisation the kernel's vdso lies where the frozen process has its own."""
    if subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode:
        pytest.skip("the address space cannot be fixed here")
    plain = ["setarch", "-R"]
    fixed = image.with_name("fixed.img")
    freeze = [support.SNAPBOOT, "freeze", "-o", fixed, "--preload", "time,ctypes", "--", support.PYTHON]
    done = support.run([*plain, *freeze], log=False)
    assert done.status == 0, done
    other, start = of_other_kernel(fixed)
    out = support.thawed([*plain, other, "-c", PYTHON_TIMES]).out.splitlines()
    assert out[:-1] == PYTHON_ANSWERS
    assert is_elsewhere(out, start)


@pytest.mark.skipif(support.RUBY is None, reason="there is no ruby")
def test_a_ruby_program_reads_clocks(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.RUBY])
    other, _ = of_other_kernel(image)
    asked = [other, "-e", RUBY_TIMES, tmp_path / "now"]
    assert support.thawed(asked).out.split() == ["[true,", "true,", "true,", "true]", "true", "true", "true", "true"]


def falls_back(image, reason):
    result = support.run([image, "-c", "print(6 * 7)"])
    assert result.fell_back and result.status == 0 and result.out == "42\n", result
    assert reason in result.err, result


@pytest.mark.fault("another kernel, and the copy of the vdso is damaged", "the ordinary start")
def test_a_copy_that_is_no_vdso(image):
    def no_elf(copy, row):
        copy.bytes[copy.get("Mapping", "offset", row)] ^= 0xFF

    falls_back(of_other_kernel(image, [no_elf])[0], "its copy of the vdso")


@pytest.mark.fault("another kernel, and the image has no copy of its vdso", "the ordinary start")
def test_without_a_copy(image):
    def no_copy(copy, row):
        copy.set("Mapping", "kind", row, copy.format.constants["IMAGE"])

    falls_back(of_other_kernel(image, [no_copy])[0], "no copy of its vdso")
