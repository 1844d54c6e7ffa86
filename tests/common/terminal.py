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

SECONDS = 120
CODES = re.compile(rb"\x1b(\[[0-9;?<>=]*[a-zA-Z]|\][^\x07]*\x07|[=>78])|\x0f")
CURSOR = b"\x1b[6n"  # "where is the cursor?"
INTERRUPTS = (b"\x03", b"\x1a")


def is_edited(terminal):
    """Whether a line editor reads each key."""
    return not termios.tcgetattr(terminal)[3] & termios.ICANON


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
            try:
                part = os.read(terminal, 4096)
            except OSError:
                break
            if not part:
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
    child, terminal = pty.fork()
    if child == 0:
        try:
            if size is not None:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            if cwd is not None:
                os.chdir(cwd)
            os.execve(argv[0], [os.fspath(word) for word in argv], env)
        finally:
            os._exit(126)
    shown = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            part = b""
        if not part:
            break
        shown += part
    os.close(terminal)
    return shown, os.waitpid(child, 0)[1]
