"""Threads of Python's that a fork drops, and that nothing starts again: a thaw would be without them.

Threads that a library in C has started for itself are none: they never run Python code, and such a library starts them again.
"""

import posix
import sys
from time import monotonic, sleep  # those of the interpreter, whatever the program replaces

from .fork import fork

# Top-level packages that look whether their thread is alive when they need it, and start another one where it is not. From the request.
RESTARTED = set()
# So long threads get to end that have nothing left to do, and a child to say which it has (seconds).
PATIENCE = 0.2
ANSWER = 5.0
STEP = 0.01


def lost():
    """What a thaw would be without: names of threads and where they run, as text."""
    if not _running():
        return []
    deadline = monotonic() + PATIENCE
    while _running() and monotonic() < deadline:
        sleep(STEP)
    running = _running()
    if not running:
        return []
    # Fork hooks may start them again, as they would after a thaw.
    for place in _after_fork():
        for thread in running:
            if thread[0] == place:
                running.remove(thread)
                break
    return ["%s (%s)" % (name, place) for place, name in running]


def _running():
    """A place in the program and a name for each thread but this one."""
    own = sys.modules["_thread"].get_ident()
    threading = sys.modules.get("threading")
    known = {} if threading is None else threading.__dict__.get("_active", {})
    found = []
    for number, frame in sys._current_frames().items():
        if number == own:
            continue
        frames = []
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        names = {str(frame.f_globals.get("__name__")).partition(".")[0] for frame in frames}
        if names & RESTARTED:
            continue
        # The first one that is none of the module's which starts threads.
        first = next((frame for frame in reversed(frames) if frame.f_globals.get("__name__") != "threading"), frames[-1])
        code = first.f_code
        thread = known.get(number)
        name = "a thread" if thread is None else "thread %r" % getattr(thread, "_name", "")
        found.append(("%s:%d" % (code.co_filename, code.co_firstlineno), name))
    return found


def _after_fork():
    """The places of threads that a forked child has."""
    answer, tell = posix.pipe()
    child = fork()
    if not child:
        try:
            posix.write(tell, "\0".join(place for place, _ in _running()).encode("utf-8", "surrogateescape"))
        finally:
            posix._exit(0)
    posix.close(tell)
    posix.set_blocking(answer, False)
    deadline = monotonic() + ANSWER
    while posix.waitpid(child, posix.WNOHANG)[0] == 0:
        if monotonic() > deadline:
            posix.kill(child, 9)
            posix.waitpid(child, 0)
            break
        sleep(STEP)
    try:
        text = posix.read(answer, 65536).decode("utf-8", "surrogateescape")
    except BlockingIOError:
        text = ""
    posix.close(answer)
    return [place for place in text.split("\0") if place]
