"""The fork that is the freeze: in the child the freezer writes the image, and there the thawed process continues."""

import _signal
import posix
import sys

from . import process
from .channel import ARM, ASIDE, DISARM, call
from .report import FREEZER_REFUSED, OK

# How the freezer's child ends.
WRITTEN = 0
REFUSED = 3

# What `warnings.simplefilter("ignore")` puts in front of the filters.
IGNORE_ALL = ("ignore", None, Warning, None, 0)


def fork():
    """`os.fork` without the warning about other threads: dropping them is understood here. Raises OSError."""
    filters = sys.modules["_warnings"].filters
    filters.insert(0, IGNORE_ALL)
    try:
        return posix.fork()
    finally:
        del filters[0]


def in_child(look, seconds=None):
    """Calls `look` (without arguments) in a child that ends with it: it may load and leave behind what it likes, and nothing that it reads
    is an input. seconds: of processor time that it may take. Returns whether that went well. Raises OSError."""
    child = fork()
    if not child:
        status = 1
        try:
            call(ASIDE)
            if seconds is not None:
                import resource  # here, since only a process that is not frozen needs it

                # Such a process has used none yet. It leaves no core.
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            look()
            status = 0
        except BaseException as error:
            sys.__excepthook__(type(error), error, error.__traceback__)
        finally:
            posix._exit(status)
    return posix.waitpid(child, 0)[1] == 0


def freeze():
    """Has the freezer write the image into the control directory.

    Returns None in the thawed process, and in the freezing one the wait status of the child that wrote. Raises OSError.
    """
    call(ARM, process.buffer())
    wakeup = _signal.set_wakeup_fd(-1)
    child = fork()
    # asyncio has each child of a fork forget it, from CPython 3.12 on.
    if wakeup >= 0:
        _signal.set_wakeup_fd(wakeup)
    if not child:
        return None
    call(DISARM)
    return posix.waitpid(child, 0)[1]


def outcome(status):
    """Turns the wait status of the writing child into (status of the front end, error text or None)."""
    if posix.WIFEXITED(status):
        code = posix.WEXITSTATUS(status)
        if code == WRITTEN:
            return OK, None
        if code == REFUSED:
            return FREEZER_REFUSED, None
        return FREEZER_REFUSED, "the freezer ended with status %d instead of writing the image" % code
    return FREEZER_REFUSED, "the freezer was killed by signal %d while it wrote the image" % posix.WTERMSIG(status)
