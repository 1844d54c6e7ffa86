"""Times that the program has taken while it booted, and keeps: a thaw has them as they are.

A program reads the clock all the time and hardly ever keeps what it says, so what counts is what is found in modules and classes in the
end: a number or a date between the beginning of the boot and now.
"""

import posix
import sys

from . import _modules


def kept(folder):
    """The names of what keeps such a time (`module.NAME`), sorted. folder: the control directory, whose plan is as old as the boot."""
    clock = sys.modules.get("time")
    if clock is None:
        return []
    windows = _windows(clock, posix.stat(folder + b"/plan").st_mtime)
    found = set()
    for names in _modules.all_names():
        module = names.get("__name__")
        if type(module) is not str or module.partition(".")[0] == "snapboot":
            continue
        for name, value in _named(names):
            if _is_in(windows, value):
                found.add("%s.%s" % (module, name))
            elif issubclass(type(value), type):
                # Past its metaclass, which may have other ideas.
                attributes = type.__getattribute__(value, "__dict__")
                if _is_same(attributes.get("__module__"), module):
                    found.update("%s.%s.%s" % (module, name, key) for key, kept in _named(attributes) if _is_in(windows, kept))
    return sorted(found - RENEWED)


def _named(names):
    return [(name, value) for name, value in names.items() if type(name) is str]


def _is_same(value, text):
    return type(value) is str and value == text


def _windows(clock, began):
    """From when to when by each clock: that of the time since 1970 first, then those that count from some other moment (seconds)."""
    now = clock.time()
    ends = [now, clock.monotonic(), clock.perf_counter()]
    return [(end - (now - began), end) for end in ends]


def _is_in(windows, value):
    kind = type(value)
    if kind is int:
        if not 0 < value < 1 << 63:
            return False
        value = value / 1e9
    elif kind is getattr(sys.modules.get("datetime"), "datetime", None):
        try:
            return windows[0][0] <= value.timestamp() <= windows[0][1]
        except (ValueError, OverflowError, OSError):
            return False  # the beginning or the end of all dates
    elif kind is not float:
        return False
    # Soon after a machine has started, a setting such as 30.0 seconds might be taken for a time.
    fits = windows if value * 1000 % 1 else windows[:1]
    return any(begin <= value <= end for begin, end in fits)


# The front end gives it the time of each start.
RENEWED = {"logging._startTime"}
