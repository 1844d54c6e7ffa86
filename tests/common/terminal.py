"""A person at a terminal, who types when the program has shown what they wait for."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from .waiting import SECONDS

CODES = re.compile(rb"\x1b(\[[0-9;?<>=]*[a-zA-Z]|\][^\x07]*\x07|[=>78])|\x0f")
CURSOR = b"\x1b[6n"  # "where is the cursor?"
END = b"\0the end\0"  # no program shows it
SOON = 0.005
INTERRUPTS = (b"\x03", b"\x1a")


def is_edited(terminal):
    """Whether a line editor reads each key."""
    return not termios.tcgetattr(terminal)[3] & termios.ICANON


def next_part(terminal):
    """What a terminal shows next; nothing when its last user is gone."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


def talk(argv, env, steps):
    """Starts a program at a terminal of its own. steps: pairs of what the program must have shown since the keys before, as a
    regular expression for the text without its codes, and the keys that are typed then: when a line editor listens, but for
    those to interrupt what is running.

    Returns the text, and the exit status.
    """
    child, terminal = pty.fork()
    if child == 0:
        os.execve(argv[0], [os.fspath(word) for word in argv], env)
    all_shown, shown, steps = b"", b"", list(steps)
    last = time.monotonic() + SECONDS
    try:
        while True:
            is_due = steps and re.search(steps[0][0], CODES.sub(b"", shown), re.DOTALL)
            if is_due and (steps[0][1] in INTERRUPTS or is_edited(terminal)):
                os.write(terminal, steps.pop(0)[1])
                all_shown, shown = all_shown + shown, b""
                continue
            ready = select.select([terminal], [], [], 0.01 if is_due else max(0, last - time.monotonic()))[0]
            if is_due and not ready and time.monotonic() < last:
                continue
            assert ready, ("waited and saw nothing", steps[:1], all_shown + shown)
            if not (part := next_part(terminal)):
                break
            os.write(terminal, b"\x1b[1;2R" * part.count(CURSOR))
            shown += part
        assert not steps, ("ended too early", steps[0], all_shown + shown)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.close(terminal)
        _, status = os.waitpid(child, 0)
    return CODES.sub(b"", all_shown + shown).decode(errors="replace"), os.waitstatus_to_exitcode(status)


def shown_on(argv, env, cwd=None, size=None):
    """What a program shows at a terminal of its own, as bytes, and its status as waitpid has it. size: rows and columns."""
    terminal, others_end = pty.openpty()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            fcntl.ioctl(others_end, termios.TIOCSCTTY, 0)
            for number in range(3):
                os.dup2(others_end, number)
            if size is not None:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            if cwd is not None:
                os.chdir(cwd)
            os.execve(argv[0], [os.fspath(word) for word in argv], env)
        finally:
            os._exit(126)
    shown, status = b"", None
    try:
        # This keeps the other end: Linux may drop what was written just before the last one closes it.
        while not shown.endswith(END):
            if status is not None or select.select([terminal], [], [], SOON)[0]:
                shown += os.read(terminal, 65536)
                continue
            ended, wait_status = os.waitpid(child, os.WNOHANG)
            if ended:
                status = wait_status
                os.write(others_end, END)
    finally:
        os.close(others_end)
        os.close(terminal)
    return shown.removesuffix(END), status
