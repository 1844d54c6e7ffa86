"""Runs one program with standard streams of one kind, and tells everything that could be seen of it from outside."""

import dataclasses
import errno
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time

from common.waiting import LOOK, SECONDS, Rest

ENDS = 5
WINDOW = (33, 117)  # rows and columns: what no default would be


class Stuck(Exception):
    """The program did not end in time."""


@dataclasses.dataclass
class Seen:
    """What a run showed. On a terminal, `stdout` is what the terminal showed."""

    stdout: bytes
    stderr: bytes
    status: object  # a number, or a signal's name
    files: dict
    pid: int


def run(argv, kind, folder, cwd=".", env=None, stdin=b"", signals=()):
    """Runs argv (bytes) in folder/cwd. `kind` is pipe, file or pty. Returns Seen; raises Stuck.

    signals: tables with `after`, a text to wait for in the output, and `send` (a signal's name) or `keys` (typed at the
    terminal).
    """
    streams = KINDS[kind](stdin)
    try:
        process = subprocess.Popen(
            argv,
            cwd=folder / cwd,
            env=env,
            stdin=streams.child[0],
            stdout=streams.child[1],
            stderr=streams.child[2],
            start_new_session=True,
            preexec_fn=streams.in_child,
        )
        streams.started()
        try:
            _attend(process, streams, list(signals))
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        stdout, stderr = streams.shown()
    finally:
        streams.close()
    status = process.returncode
    return Seen(
        stdout=stdout,
        stderr=stderr,
        status=status if status >= 0 else signal.Signals(-status).name,
        files=_contents(folder),
        pid=process.pid,
    )


def _attend(process, streams, signals):
    ended = os.pidfd_open(process.pid)
    limit = time.monotonic() + SECONDS
    rest = Rest(process.pid)
    try:
        while True:
            streams.exchange(ended, LOOK if signals else limit - time.monotonic())
            if signals and signals[0]["after"].encode() in b"".join(streams.shown()):
                if rest.is_reached():  # a signal finds it where the case wants it
                    _send(process.pid, streams, signals.pop(0))
                    rest.forget()
            if select.select([ended], [], [], 0)[0]:
                process.wait()
                streams.exchange(None, 0)
                return
            if time.monotonic() > limit:
                raise Stuck(f"still running after {SECONDS} s; it showed {streams.shown()}")
    finally:
        os.close(ended)


def _send(pid, streams, step):
    if "keys" in step:
        os.write(streams.master, step["keys"].encode())
    else:
        os.kill(pid, signal.Signals["SIG" + step["send"]])


def _contents(folder):
    """Each file below folder: type and mode, and content."""
    contents = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if "__pycache__" in name:
            continue  # what Python compiled and may keep; a module in an image is not compiled again
        if path.is_symlink():
            contents[name] = ("link", os.readlink(path))
        elif path.is_file():
            contents[name] = (oct(path.stat().st_mode), path.read_bytes())
        else:
            contents[name] = (oct(path.lstat().st_mode), None)
    return contents


class Streams:
    """The three standard streams of a process. `child`: its descriptors 0, 1 and 2."""

    def __init__(self):
        self.buffers = [b"", b""]
        self.sources = {}  # descriptor to read from -> index of its buffer
        self.sink = None  # descriptor to write standard input to
        self.input = b""

    def in_child(self):
        """Runs in the child before the program: the signals as a shell leaves them."""
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            try:
                signal.signal(number, signal.SIG_DFL)
            except OSError:
                pass
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def started(self):
        """Closes what only the child needs."""
        for descriptor in set(self.child):
            os.close(descriptor)

    def exchange(self, ended, seconds):
        """Reads and writes until `ended` is readable, or for some seconds; when `ended` is None, what is there now."""
        while self.sources or self.sink is not None or ended is not None:
            wanted = [*self.sources, *([] if ended is None else [ended])]
            written = [] if self.sink is None else [self.sink]
            readable, writable, _ = select.select(wanted, written, [], max(seconds, 0))
            if writable:
                self._write()
            busy = [descriptor for descriptor in readable if descriptor != ended]
            for descriptor in busy:
                self._read(descriptor)
            if not busy and (not writable or ended is None or ended in readable):
                return

    def _read(self, descriptor):
        try:
            data = os.read(descriptor, 1 << 16)
        except OSError as error:
            if error.errno != errno.EIO:  # what a terminal says when nobody has it open any more
                raise
            data = b""
        self.buffers[self.sources[descriptor]] += data
        if not data:
            del self.sources[descriptor]
            os.close(descriptor)

    def _write(self):
        try:
            self.input = self.input[os.write(self.sink, self.input) :] if self.input else b""
        except BrokenPipeError:
            self.input = b""
        if not self.input:
            os.close(self.sink)
            self.sink = None

    def shown(self):
        """What was written to standard output and standard error so far."""
        return tuple(self.buffers)

    def close(self):
        """Closes what is still open."""
        for descriptor in self.sources:
            os.close(descriptor)
        if self.sink is not None:
            os.close(self.sink)
        self.sources, self.sink = {}, None


class Pipes(Streams):
    """A pipe each."""

    def __init__(self, stdin):
        super().__init__()
        self.input = stdin
        into, self.sink = os.pipe()
        os.set_blocking(self.sink, False)
        out, out_write = os.pipe()
        errors, errors_write = os.pipe()
        self.sources = {out: 0, errors: 1}
        self.child = (into, out_write, errors_write)


class Files(Streams):
    """A file each."""

    def __init__(self, stdin):
        super().__init__()
        self.files = [tempfile.TemporaryFile() for _ in range(3)]
        self.files[0].write(stdin)
        self.files[0].seek(0)
        self.child = tuple(os.dup(file.fileno()) for file in self.files)

    def shown(self):
        return tuple(os.pread(file.fileno(), 1 << 26, 0) for file in self.files[1:])

    def close(self):
        super().close()
        for file in self.files:
            file.close()


class Terminal(Streams):
    """One terminal for all three, which controls the process. Its end of input has been typed already."""

    def __init__(self, stdin):
        super().__init__()
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *WINDOW, 0, 0))
        # As a shell in an emulator has it, whatever this machine's defaults.
        modes = termios.tcgetattr(slave)
        modes[0] = termios.ICRNL | termios.IXON
        modes[3] |= termios.ICANON | termios.ISIG | termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        if stdin is not None:
            os.write(self.master, stdin + b"\x04" * ENDS)  # one for each time that the program reads on after the end
            # The kernel echoes it when it gets to that: before the program writes anything.
            select.select([self.master] if stdin else [], [], [], SECONDS if stdin else 0)
        self.sources = {self.master: 0}
        self.child = (slave, slave, slave)

    def in_child(self):
        super().in_child()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


KINDS = {"pipe": Pipes, "file": Files, "pty": Terminal}
