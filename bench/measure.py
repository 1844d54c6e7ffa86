"""How one sample of each kind is taken, and what a series of them amounts to.

A sample is one number. The kinds:

    time      milliseconds from just before a process is made until it was reaped (posix_spawn, CLOCK_MONOTONIC, wait4)
    cpu       milliseconds of CPU, user and system, that a process and all whom it waited for have used
    response  milliseconds from just before a server's process is made until its first answer over loopback HTTP
    rate      answers per second of a server over one connection of loopback HTTP, after WARMING ones
    footprint megabytes (PSS) of a server and its children, after WARMING answers
    memory    megabytes (PSS) of PROCESSES processes of the same program that are alive at the same time
    printed   the number that the program itself prints

Every command runs with exactly the environment that it is given and with the standard streams alone: input is /dev/null or
an empty pipe, and what this process inherited from its own caller is closed.
"""

import contextlib
import ctypes
import gc
import http.client
import mmap
import os
import pathlib
import resource
import signal
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator

PROCESSES = 10
WARMING = COUNTED = 1500  # answers of a server
# A proxy says so before a server that redirects others.
SECURE = ("X-Forwarded-Proto", "https")
LIMIT_SECONDS = 120  # no measured command may take longer
LOGGED = {"SNAPBOOT_LOG": "1"}  # lets an image that is not used say why: such a start must not pass as thawed
FALLBACK = "starting the ordinary way"


class MeasureError(Exception):
    """A command did not do what it was measured for; the text says which, what was expected and what it printed."""


def keep_descriptors() -> None:
    """Let no measured process inherit what this one happens to have open besides the standard streams."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):  # the one that listed the directory is gone
                os.set_inheritable(int(name), False)


def streams(stderr: str) -> list[tuple]:
    """What posix_spawn does about the standard streams: nothing to read, and nobody who reads."""
    opened = ((0, "/dev/null"), (1, "/dev/null"), (2, stderr))
    return [(os.POSIX_SPAWN_OPEN, number, path, os.O_RDWR | os.O_APPEND, 0) for number, path in opened]


def spawn(argv: list[str], env: dict[str, str], stderr: str) -> int:
    """Start a process as a shell would, with the signals that Python ignores at their defaults. Returns its id."""
    defaults = [signal.SIGPIPE, signal.SIGXFSZ]
    return os.posix_spawn(argv[0], argv, env, file_actions=streams(stderr), setsigdef=defaults, setpgroup=0)


def check(argv: list[str], env: dict[str, str]) -> str:
    """Run a command once, unmeasured, and return its standard output.

    Raises MeasureError unless it exits with 0, and for an image that was not used.
    """
    try:
        done = subprocess.run(
            argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MeasureError(f"`{shown(argv)}`: {error}") from None
    refuse_fallback(done.stderr)
    if done.returncode != 0:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise MeasureError(f"`{shown(argv)}` exited with {done.returncode}, not 0:\n{tail}")
    return done.stdout


def refuse_fallback(stderr: str) -> None:
    """Raises MeasureError when a launcher says in `stderr` that it did not use its image."""
    said = [line for line in stderr.splitlines() if FALLBACK in line]
    if said:
        raise MeasureError(f"an image was not used ({len(said)} times): {said[0]}")


def shown(argv: list[str]) -> str:
    """The command for a reader, without the directories."""
    return " ".join(os.path.basename(word) if word.startswith("/") else word for word in argv)


def time_once(argv: list[str], env: dict[str, str], stderr: str = "/dev/null") -> float:
    """Milliseconds of one whole process. Raises MeasureError unless it exits with 0."""
    began = time.monotonic_ns()
    ended_well(argv, env, stderr)
    return (time.monotonic_ns() - began) / 1e6


def cpu_once(argv: list[str], env: dict[str, str], stderr: str = "/dev/null") -> float:
    """Milliseconds of CPU of one whole process and its children. Raises MeasureError unless it exits with 0."""
    used = ended_well(argv, env, stderr)
    return (used.ru_utime + used.ru_stime) * 1000


def ended_well(argv: list[str], env: dict[str, str], stderr: str) -> resource.struct_rusage:
    """Run a process to its end. Returns what it used. Raises MeasureError unless it exits with 0."""
    pid = spawn(argv, env, stderr)
    _, status, used = os.wait4(pid, 0)
    if status != 0:
        raise MeasureError(f"`{shown(argv)}` ended with {os.waitstatus_to_exitcode(status)}, not 0")
    return used


def response_once(argv: list[str], env: dict[str, str], stderr: str = "/dev/null", port: int | None = None) -> float:
    """Milliseconds until a server answers. port: see `server`. Raises MeasureError if it does not."""
    with server(argv, env, stderr, port) as (_, _, milliseconds):
        return milliseconds


def rate_once(argv: list[str], env: dict[str, str], stderr: str = "/dev/null", port: int | None = None) -> float:
    """Answers per second of a warm server. port: see `server`. Raises MeasureError if it does not answer."""
    with server(argv, env, stderr, port) as (_, port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
        try:
            ask(connection, WARMING)
            began = time.monotonic()
            ask(connection, COUNTED)
            return COUNTED / (time.monotonic() - began)
        finally:
            connection.close()


def footprint_once(argv: list[str], env: dict[str, str], stderr: str = "/dev/null", port: int | None = None) -> float:
    """Megabytes of a warm server and its children. port: see `server`. Raises MeasureError if it does not answer."""
    with server(argv, env, stderr, port) as (pid, port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
        try:
            ask(connection, WARMING)
        finally:
            connection.close()
        return sum(pss(member) for member in members(pid))


def members(group: int) -> list[int]:
    """The processes of a process group."""
    found = []
    for number in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            fields = pathlib.Path(f"/proc/{number}/stat").read_text().rpartition(") ")[2].split()
            found += [int(number)] if int(fields[2]) == group and fields[0] != "Z" else []
    return found


@contextlib.contextmanager
def server(argv: list[str], env: dict[str, str], stderr: str, port: int | None) -> Iterator[tuple[int, int, float]]:
    """A server that has answered: its number, its port, and milliseconds from just before its process was made until then. It is
    ended at the end, with its children. port: where it listens; None: where the word {port} in `argv` says."""
    port = free_port(port)
    words = [word.replace("{port}", str(port)) for word in argv]
    began = time.monotonic_ns()
    pid = spawn(words, env, stderr)
    try:
        while not answers(port):
            waited = (time.monotonic_ns() - began) / 1e9
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                raise MeasureError(
                    f"`{shown(words)}` ended with {os.waitstatus_to_exitcode(status)} before it answered"
                )
            if waited > LIMIT_SECONDS:
                raise MeasureError(f"`{shown(words)}` did not answer on port {port} within {LIMIT_SECONDS} s")
            time.sleep(0.0002)
        yield pid, port, (time.monotonic_ns() - began) / 1e6
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        while members(pid):  # children, which are init's by now
            time.sleep(0.0002)


def free_port(port: int | None) -> int:
    """The port, as soon as nobody listens there: threads of a process that was killed end after its first one. None: any port."""
    began = time.monotonic()
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port or 0))
            return probe.getsockname()[1]
        if time.monotonic() - began > LIMIT_SECONDS:
            raise MeasureError(f"port {port} of 127.0.0.1 stays taken")
        time.sleep(0.001)


def answers(port: int) -> bool:
    """Ask for / once. Whether somebody listens there and answers with 200."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_SECONDS) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n%s: %s\r\n\r\n" % tuple(word.encode() for word in SECURE))
            return b" 200 " in connection.recv(64)
    except OSError:
        return False


def ask(connection: http.client.HTTPConnection, times: int) -> None:
    """Ask for / so many times. Raises MeasureError unless each answer is 200."""
    for _ in range(times):
        connection.request("GET", "/", headers=dict([SECURE]))
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise MeasureError(f"a server answered {response.status}, not 200")


def memory_once(argv: list[str], env: dict[str, str], stderr: str = "/dev/null") -> float:
    """Megabytes of PROCESSES processes; each must print a line when it is ready and end when its input does."""
    processes = []
    try:
        with open(stderr, "ab") as log:
            for _ in range(PROCESSES):
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
                processes.append(subprocess.Popen(argv, env=env, **pipes))
        if not all(process.stdout.readline() for process in processes):
            raise MeasureError(f"`{shown(argv)}` ended before it printed a line")
        return sum(pss(process.pid) for process in processes)
    finally:
        for process in processes:
            process.stdin.close()
            process.stdout.close()
        for process in processes:
            process.wait(LIMIT_SECONDS)


def pss(pid: int) -> float:
    """The proportional set size of a process, in megabytes."""
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise MeasureError(f"/proc/{pid}/smaps_rollup has no line Pss:")


def printed_once(argv: list[str], env: dict[str, str], stderr: str = "/dev/null") -> float:
    """The number that the program prints. Raises MeasureError when it prints something else, or fell back."""
    output = check(argv, env)
    try:
        return float(output)
    except ValueError:
        raise MeasureError(f"`{shown(argv)}` should print one number and printed {output[:80]!r}") from None


KINDS: dict[str, Callable[..., float]] = {
    "time": time_once,
    "cpu": cpu_once,
    "response": response_once,
    "rate": rate_once,
    "footprint": footprint_once,
    "memory": memory_once,
    "printed": printed_once,
}


def evict(path: str) -> None:
    """Drop a file's pages from the page cache. Raises MeasureError if many stay, for example because it is running."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        for _ in range(10):  # pages that the kernel is just busy with stay for a moment
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            cached = cached_share(file.fileno())
            if cached < 0.01:
                return
            time.sleep(0.02)
    raise MeasureError(f"{os.path.basename(path)} stays in the page cache ({cached:.0%} of it): who uses it?")


def cached_share(descriptor: int) -> float:
    """How much of a file is in the page cache, from 0 to 1. Only mincore can tell without reading any of it in."""
    with mmap.mmap(descriptor, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as mapping:
        pages = -(-len(mapping) // mmap.PAGESIZE)
        states = (ctypes.c_ubyte * pages)()
        start = ctypes.c_char.from_buffer(mapping)
        libc = ctypes.CDLL(None, use_errno=True)
        failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(len(mapping)), states)
        del start  # or the mapping cannot be closed
        if failed:
            raise OSError(ctypes.get_errno(), "mincore cannot tell what is in the page cache")
        return sum(state & 1 for state in states) / pages


def interleaved(takers: dict[str, Callable[[], float]], rounds: int, warmup: int = 2) -> dict[str, list[float]]:
    """Samples by name, taken A B A B so that whatever disturbs the machine disturbs all alike."""
    keep_descriptors()
    samples: dict[str, list[float]] = {name: [] for name in takers}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for done in range(-warmup, rounds):
            for name, take in takers.items():
                sample = take()
                if done >= 0:
                    samples[name].append(sample)
    finally:
        if collecting:
            gc.enable()
    return samples


def summed_up(samples: list[float]) -> dict:
    """Number, median, least, greatest and quartiles of the samples."""
    quartiles = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else [samples[0]] * 3
    figures = {"median": quartiles[1], "min": min(samples), "max": max(samples), "q1": quartiles[0], "q3": quartiles[2]}
    return {"n": len(samples), **{name: round(figure, 4) for name, figure in figures.items()}}
