"""What cannot be frozen is refused by name: what it is, what to do, all of it in one report, and nothing is written.

Each row of the tables is a program under test: a module that is preloaded and leaves something open.
"""

import pathlib
import platform
import shutil
import subprocess
import textwrap

import pytest
from common import support

from .refusals import PRELUDE, PROGRAMS, RUBY_PROGRAMS

pytestmark = pytest.mark.sample(20)


def program(folder, source, name="culprit"):
    """Write a module to preload. Returns the environment to freeze it in."""
    (folder / f"{name}.py").write_text(PRELUDE + textwrap.dedent(source))
    return support.environment(PYTHONPATH=str(folder))


@pytest.fixture
def existing(tmp_path, python_image):
    """An image that is there before the freeze under test, and must be there afterwards."""
    image = tmp_path / "app.img"
    shutil.copy(python_image, image)
    return image


def freeze(image, command, *options, **more):
    """Freeze, or skip the test where there is nothing to freeze. Returns the result."""
    result = support.freeze(image, command, *options, **more)
    if "UNAVAILABLE" in result.out + result.err:
        pytest.skip(result.err.splitlines()[0].replace("UNAVAILABLE", "this machine has none of it:"))
    return result


def refused(image, command, *options, **more):
    """Freeze, which must be refused; the image that is there must be as it was, and nothing left beside it."""
    before, beside = image.read_bytes(), sorted(path.name for path in image.parent.iterdir() if path.name.startswith("."))
    result = freeze(image, command, *options, **more)
    assert result.status == 2, result
    assert image.read_bytes() == before
    assert sorted(path.name for path in image.parent.iterdir() if path.name.startswith(".")) == beside
    return result


def findings(result):
    """The findings of a report."""
    return [line for line in result.err.splitlines() if line.startswith("snapboot: cannot freeze: ")]


@pytest.fixture
def a_huge_page():
    """Lets the kernel have one more huge page, where that is permitted."""
    number = pathlib.Path("/proc/sys/vm/nr_hugepages")
    before = number.read_text()
    try:
        number.write_text(str(int(before) + 1))
    except OSError:
        pass
    yield
    if number.read_text() != before:
        number.write_text(before)


@pytest.mark.parametrize("name", PROGRAMS)
def test_refused_by_name(name, existing, tmp_path, request):
    if name == "huge pages":
        request.getfixturevalue("a_huge_page")
    source, words = PROGRAMS[name]
    result = refused(existing, [support.PYTHON], "--preload", "culprit", env=program(tmp_path, source))
    culprits = [line for line in findings(result) if all(word in line for word in words)]
    assert culprits, f"no finding has all of {words}: {result}"


def test_all_findings_are_in_one_report(existing, tmp_path):
    chosen = ("a listening TCP socket", "a mapped memfd", "a flock", "an alarm", "a live child", "a timerfd that runs")
    source = "\n".join(textwrap.dedent(PROGRAMS[name][0]).replace("file =", f"file{n} =") for n, name in enumerate(chosen))
    source = source.replace("flock(file,", "flock(file2,")
    result = refused(existing, [support.PYTHON], "--preload", "culprit", env=program(tmp_path, source))
    for name in chosen:
        words = PROGRAMS[name][1]
        assert [line for line in findings(result) if all(word in line for word in words)], (name, result)


def test_a_descriptor_is_refused_with_the_place_that_opened_it(existing, tmp_path):
    env = program(tmp_path, 'import socket\nserver = socket.create_server(("127.0.0.1", 0))\n')
    line = 1 + (tmp_path / "culprit.py").read_text().splitlines().index('server = socket.create_server(("127.0.0.1", 0))')
    result = refused(existing, [support.PYTHON], "--preload", "culprit", env=env)
    assert f"opened by {tmp_path}/culprit.py:{line}" in result.err, result


def test_the_image_that_was_there_still_runs(existing, tmp_path):
    env = program(tmp_path, PROGRAMS["a flock"][0])
    refused(existing, [support.PYTHON], "--preload", "culprit", env=env)
    assert support.thawed([existing, "-c", "print(6 * 7)"]).out == "42\n"


POOL = """
#include <omp.h>
int warm(void) { int n = 0;
#pragma omp parallel reduction(+:n) num_threads(3)
n += 1;
return n; }
"""


def test_a_pool_of_openmp_threads(existing, tmp_path):
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    library = tmp_path / "libpool.so"
    built = subprocess.run(["cc", "-shared", "-fPIC", "-fopenmp", "-o", library, "-x", "c", "-"], input=POOL.encode())
    if built.returncode:
        pytest.skip("this C compiler has no OpenMP")
    source = f"pool = ctypes.CDLL({str(library)!r}); assert pool.warm() == 3"
    result = refused(existing, [support.PYTHON], "--preload", "culprit", env=program(tmp_path, source))
    assert any("OpenMP pool (libgomp)" in line and "OMP_NUM_THREADS=1" in line for line in findings(result)), result
    source = f"pool = ctypes.CDLL({str(library)!r}); KEPT.append(pool)"
    support.frozen(existing, [support.PYTHON], "--preload", "culprit", env=program(tmp_path, source))
    code = "import culprit; print(culprit.pool.warm())"
    assert support.thawed([existing, "-c", code], env=support.environment(PYTHONPATH=str(tmp_path))).out == "3\n"


def test_other_threads_are_named_but_not_refused(tmp_path):
    source = "thread = threading.Thread(target=time.sleep, args=(60,), daemon=True); thread.start()"
    result = support.freeze(
        tmp_path / "app.img", [support.PYTHON], "--preload", "culprit", env=program(tmp_path, source)
    )
    assert result.status == 0 and "is not in the image" in result.err, result
    # A busy one, too.
    source = "def spin():\n    while True: pass\nthread = threading.Thread(target=spin, daemon=True); thread.start()"
    result = support.freeze(
        tmp_path / "app.img", [support.PYTHON], "--preload", "culprit", env=program(tmp_path, source)
    )
    assert result.status == 0 and "is not in the image" in result.err, result


# What looks like the above and can be frozen.
FINE = {
    "an eventfd that is a semaphore": (
        "number = done(libc.eventfd(5, 1))",
        "print(int.from_bytes(os.read(culprit.number, 8), 'little'))",
        "1",
    ),
    "an eventfd": ("number = done(libc.eventfd(5, 0))", "print(int.from_bytes(os.read(culprit.number, 8), 'little'))", "5"),
    "an empty pipe": (
        "ends = os.pipe()",
        "os.write(culprit.ends[1], b'through'); print(os.read(culprit.ends[0], 9).decode())",
        "through",
    ),
    "an event loop": (
        "import asyncio\nloop = asyncio.new_event_loop()\nasync def value(): await asyncio.sleep(0.001); return 5",
        "culprit.loop.call_soon_threadsafe(print, 'woken'); print(culprit.loop.run_until_complete(culprit.value()))",
        "5",
    ),
    "a pair of unix sockets": (
        "pair = socket.socketpair(type=socket.SOCK_SEQPACKET); pair[0].setblocking(False)",
        "culprit.pair[0].send(b'through'); print(culprit.pair[1].recv(9).decode(), culprit.pair[0].getblocking())",
        "through False",
    ),
    "new sockets": (
        "stream, datagram = socket.socket(), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
        "culprit.stream.bind(('127.0.0.1', 0)); culprit.stream.listen(); "
        "print(culprit.stream.getsockname()[0], int(culprit.datagram.type))",
        "127.0.0.1 2",
    ),
    "an idle timerfd": (
        "number = done(libc.timerfd_create(1, 0))",
        "culprit.libc.timerfd_settime(culprit.number, 0, (culprit.ctypes.c_long * 4)(0, 0, 0, 1), None); "
        "print(int.from_bytes(os.read(culprit.number, 8), 'little'))",
        "1",
    ),
    "a signalfd": (
        "mask = (ctypes.c_ulong * 16)(1 << 9); number = done(libc.signalfd(-1, mask, 0))",
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [10]); os.kill(os.getpid(), 10); "
        "print(int.from_bytes(os.read(culprit.number, 128)[:4], 'little'))",
        "10",
    ),
    "the pidfd of the process itself": (
        "number = done(libc.syscall(434, os.getpid(), 0))",
        "info = open(f'/proc/self/fdinfo/{culprit.number}').read(); print(int(info.split('Pid:')[1].split()[0]) == os.getpid())",
        "True",
    ),
    "an inotify that watches nothing": (
        "number = done(libc.inotify_init1(0))",
        "culprit.libc.inotify_add_watch(culprit.number, culprit.FOLDER.encode(), 0x20); "
        "open(culprit.FOLDER + '/noticed', 'w').close(); print(os.read(culprit.number, 99)[16:].strip(b'\\0').decode())",
        "noticed",
    ),
    "an epoll that watches nothing": (
        "import select; poll = select.epoll()",
        "culprit.poll.register(0); print('registered')",
        "registered",
    ),
    "guard pages": (
        """
        number = done(libc.mmap(None, 5 * 4096, 3, 0x22, -1, 0))
        ctypes.memset(number, 7, 5 * 4096)
        done(libc.madvise(ctypes.c_void_p(number + 4096), ctypes.c_size_t(4096), 102))
        """,
        "from ctypes import string_at; pid = os.fork() or string_at(culprit.number + 4096, 1); "
        "print(os.waitpid(pid, 0)[1] & 127, string_at(culprit.number + 4095, 1) + string_at(culprit.number + 8192, 1))",
        "11 b'\\x07\\x07'",
    ),
    "an epoll that watches": (
        """
        import select
        poll, number, ends = select.epoll(), done(libc.eventfd(5, 0)), os.pipe()
        poll.register(number, select.EPOLLIN)
        poll.register(ends[0], select.EPOLLIN | select.EPOLLET)
        """,
        "os.write(culprit.ends[1], b'x'); print({*culprit.poll.poll(0)} == {(culprit.number, 1), (culprit.ends[0], 1)}, "
        "len(culprit.poll.poll(0)))",
        "True 1",
    ),
    "a file that is read": (
        'file = open(__file__, "rb"); file.seek(7)',
        "print(culprit.file.tell(), culprit.file.read(3) == open(culprit.__file__, 'rb').read()[7:10])",
        "7 True",
    ),
    "a file that is appended to": (
        'file = open(FOLDER + "/log", "a")',
        "culprit.file.write('line\\n'); culprit.file.flush(); print(open(culprit.FOLDER + '/log').read().strip())",
        "line",
    ),
    "a directory": (
        "number = os.open(FOLDER, os.O_RDONLY)",
        "print('culprit.py' in os.listdir(culprit.number))",
        "True",
    ),
    "/dev/urandom": (
        'file = open("/dev/urandom", "rb", buffering=0)',
        "print(len(culprit.file.read(8)))",
        "8",
    ),
    "a private mapping of a file": (
        'with open(__file__, "rb") as file: area = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)',
        "print(culprit.area[:8] == open(culprit.__file__, 'rb').read(8))",
        "True",
    ),
    "a child that was waited for": (
        "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)",
        "print('alone')",
        "alone",
    ),
    "a lock that was released": (
        'file = open(FOLDER + "/lock", "w"); fcntl.flock(file, fcntl.LOCK_EX); fcntl.flock(file, fcntl.LOCK_UN)',
        "print(culprit.file.closed)",
        "False",
    ),
}


@pytest.mark.parametrize("name", FINE)
def test_what_can_be_made_again_is_not_refused(name, tmp_path):
    source, code, answer = FINE[name]
    env = program(tmp_path, source)
    image = tmp_path / "app.img"
    result = freeze(image, [support.PYTHON], "--preload", "culprit", env=env)
    assert result.status == 0, result
    for _ in range(2):
        result = support.thawed([image, "-c", f"import culprit, os; {code}"], env=env)
        assert result.out.splitlines()[-1:] == [answer], result
        (tmp_path / "log").write_text("")


RUBY_FINE = {
    "a pair of unix sockets": (
        'require "socket"; PAIR = UNIXSocket.pair',
        'PAIR[0].write("through"); PAIR[0].close; puts PAIR[1].read',
        "through",
    ),
    "a new socket": (
        'require "socket"; NEW = Socket.new(:INET, :DGRAM)',
        'NEW.bind(Addrinfo.udp("127.0.0.1", 0)); puts NEW.local_address.ip_address',
        "127.0.0.1",
    ),
    "a pipe": ("READ, WRITE = IO.pipe", 'WRITE.write("through"); WRITE.close; puts READ.read', "through"),
}


@support.needs_ruby
@pytest.mark.parametrize("name", RUBY_FINE)
def test_what_can_be_made_again_is_not_refused_in_ruby(name, tmp_path):
    source, code, answer = RUBY_FINE[name]
    (tmp_path / "culprit.rb").write_text(source + "\n")
    image = tmp_path / "app.img"
    result = freeze(image, [support.RUBY], "--preload", "./culprit", cwd=tmp_path)
    assert result.status == 0, result
    for _ in range(2):
        assert support.thawed([image, "-e", code], cwd=tmp_path).out == answer + "\n"


@support.needs_ruby
@pytest.mark.parametrize("name", RUBY_PROGRAMS)
def test_refused_by_name_in_ruby(name, existing, tmp_path):
    source, words = RUBY_PROGRAMS[name]
    (tmp_path / "culprit.rb").write_text(source + "\n")
    result = refused(existing, [support.RUBY], "--preload", "./culprit", cwd=tmp_path)
    assert [line for line in findings(result) if all(word in line for word in words)], result


@support.needs_ruby
def test_a_descriptor_of_ruby_is_refused_with_the_place_that_opened_it(existing, tmp_path):
    culprit = tmp_path / "culprit.rb"
    culprit.write_text('require "socket"\nSERVER = TCPServer.new("127.0.0.1", 0)\n')
    result = refused(existing, [support.RUBY], "--preload", "./culprit", cwd=tmp_path)
    assert f"opened by {culprit}:2" in result.err, result


@support.needs_ruby
def test_ruby_starts_no_script_when_its_input_is_closed(existing, tmp_path):
    (tmp_path / "culprit.rb").write_text("$stdin.close\n")
    result = refused(existing, [support.RUBY], "--preload", "./culprit", cwd=tmp_path)
    assert "the program has closed STDIN while it booted" in result.err and "Close it in the main part." in result.err


def test_this_is_x86_64():
    """The system call numbers above are those of x86-64."""
    assert platform.machine() == "x86_64"
