"""The fork that is the freeze: the freezer writes the image in the child, and the thawed process continues there."""

import _signal
import posix
import sys

from . import process
from .channel import ARM, ASIDE, DISARM, call
from .report import FREEZER_REFUSED, OK

# Exit statuses of the freezer's child.
WRITTEN = 0
REFUSED = 3

# The entry that `warnings.simplefilter("ignore")` inserts.
IGNORE_ALL = ("ignore", None, Warning, None, 0)


def fork():
    """Calls `os.fork` without the warning about other threads: dropping them is intended here. Raises OSError."""
    filters = sys.modules["_warnings"].filters
    filters.insert(0, IGNORE_ALL)
    try:
        return posix.fork()
    finally:
        del filters[0]


def in_child(look, seconds=None):
    """Calls `look` (without arguments) in a child that ends with it. The child may load and leave behind anything, and its reads are no
    inputs. seconds: processor time that it may take. Returns whether it succeeded. Raises OSError."""
    child = fork()
    if not child:
        status = 1
        try:
            call(ASIDE)
            if seconds is not None:
                import resource  # here, to keep it out of the process that is frozen

                # The child starts at zero processor time. It leaves no core file.
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
    """Lets the freezer write the image into the control directory.

    Returns None in the thawed process. In the freezing process, returns the wait status of the child that wrote. Raises OSError.
    """
    call(ARM, process.buffer())
    wakeup = _signal.set_wakeup_fd(-1)
    child = fork()
    # From CPython 3.12 on, asyncio drops its loop in each forked child.
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
