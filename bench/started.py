"""Starts a program with pipes or at a terminal, and tells what it printed, how it ended and which files it left."""

import dataclasses
import fcntl
import fnmatch
import os
import pathlib
import pty
import struct
import subprocess
import termios
import threading

SECONDS = 120


@dataclasses.dataclass(frozen=True)
class Seen:
    """At a terminal, `stdout` is all that the terminal showed. `status` is negative after a signal."""

    stdout: bytes
    stderr: bytes
    status: int


def run(
    argv: list[str],
    *,
    cwd: pathlib.Path,
    env: dict[str, str],
    umask: int = 0o022,
    stdin: str = "pipe",
    terminal: tuple[int, int] | None = None,
) -> Seen:
    """Starts a program and waits for its end. `stdin`: an empty `pipe`, or `null`. `terminal`: its columns and rows.

    Raises TimeoutExpired.
    """
    if terminal:
        return run_at_terminal(argv, terminal, cwd=cwd, env=env, umask=umask)
    options = {"stdin": subprocess.DEVNULL} if stdin == "null" else {"input": b""}
    done = subprocess.run(
        argv, cwd=cwd, env=env, umask=umask, capture_output=True, start_new_session=True, timeout=SECONDS, **options
    )
    return Seen(done.stdout, done.stderr, done.returncode)


def run_at_terminal(argv: list[str], size: tuple[int, int], **options) -> Seen:
    """The same, at a terminal that controls the process."""
    master, slave = pty.openpty()
    columns, lines = size
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    name = os.ttyname(slave)
    shown: list[bytes] = []
    process = subprocess.Popen(
        argv,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        # In a session without a terminal, the first one that is opened becomes its own.
        preexec_fn=lambda: os.close(os.open(name, os.O_RDWR)),
        **options,
    )
    reader = threading.Thread(target=read_all, args=(master, shown))
    reader.start()
    try:
        status = process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
    finally:
        # While a slave end is open here, nothing that was written is lost; without one, reading ends.
        os.close(slave)
        reader.join()
        os.close(master)
    return Seen(b"".join(shown), b"", status)


def read_all(master: int, shown: list[bytes]) -> None:
    """Reads what a terminal shows until nobody has it open."""
    while True:
        try:
            data = os.read(master, 1 << 16)
        except OSError:  # EIO: nobody has it open
            return
        if not data:
            return
        shown.append(data)


def contents(folder: pathlib.Path, ignored: tuple[str, ...]) -> dict[str, tuple[str, bytes | None]]:
    """Mode and content of each file below a folder, without those whose names match a pattern, and without compiled Python."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if "__pycache__" in path.parts or any(fnmatch.fnmatch(name, pattern) for pattern in ignored):
            continue
        if path.is_symlink():
            found[name] = ("link", os.readlink(path).encode())
        else:
            found[name] = (oct(path.stat().st_mode), path.read_bytes() if path.is_file() else None)
    return found
