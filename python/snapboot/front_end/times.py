"""Finds times that the program has taken while it booted, and its process number, where it keeps them: a thaw would keep the old ones.

A program reads the clock often and rarely keeps the result, so only the final contents of modules and classes count: a number or a date
between the beginning of the boot and now, or a text with the date and the minute. A process number also needs a fitting name; a private
name of this kind mostly serves to detect a fork, and a thaw is one.
"""

import posix
import sys

from . import modules


def kept(folder):
    """Returns the names that hold such a time or number: pairs of "time" or "pid" and a name (`module.NAME`), sorted. folder: the control
    directory, whose request is as old as the boot."""
    clock = sys.modules.get("time")
    if clock is None:
        return []
    taken = Taken(clock, posix.stat(folder + b"/request").st_mtime)
    found = set()
    for names in modules.all_names():
        module = names.get("__name__")
        if type(module) is not str or module.partition(".")[0] == "snapboot":
            continue
        found.update((kind, "%s.%s" % (module, name)) for kind, name in taken.among(names))
        for name, value in list(names.items()):
            if issubclass(type(value), type) and type(name) is str:
                # Bypasses the metaclass.
                attributes = type.__getattribute__(value, "__dict__")
                if _is_same(attributes.get("__module__"), module):
                    found.update((kind, "%s.%s.%s" % (module, name, key)) for kind, key in taken.among(attributes))
    return sorted((kind, name) for kind, name in found if name not in RENEWED)


def _is_same(value, text):
    return type(value) is str and value == text


class Taken:
    """The times of a boot that began then."""

    def __init__(self, clock, began):
        now = clock.time()
        ends = [now, clock.monotonic(), clock.perf_counter()]
        # From when to when by each clock (seconds): first that of the time since 1970, then those with another origin.
        self.windows = [(end - (now - began), end) for end in ends]
        self.clock = clock
        dates = sys.modules.get("datetime")
        self.datetime, self.date = getattr(dates, "datetime", None), getattr(dates, "date", None)
        self.zones = (None, getattr(getattr(dates, "timezone", None), "utc", None))
        minutes = range(int(began) // 60, min(int(now) // 60, int(began) // 60 + MAX_MINUTES) + 1)
        moments = {moment(minute * 60)[:5] for minute in minutes for moment in (clock.localtime, clock.gmtime)}
        self.days = {moment[:3] for moment in moments}
        self.moments = moments
        self.stamps = [stamp for moment in moments for stamp in _stamps(*moment)]
        self.marks = {mark for mark, _ in self.stamps}
        self.pid = posix.getpid()
        # By id: a class may define `__eq__` and then have no hash.
        self.kinds = {id(kind) for kind in (str, int, float, clock.struct_time, self.datetime, self.date)}

    def among(self, names):
        """Returns the values of a namespace that are one of these: pairs of "time" or "pid" and the name."""
        # There are tens of thousands of values, and few of these types.
        likely = [(name, value) for name, value in names.items() if id(type(value)) in self.kinds and type(name) is str]
        return [(kind, name) for name, value in likely for kind in [self.kind_of(name, value)] if kind]

    def kind_of(self, name, value):
        """Returns "time", "pid" or None."""
        if self.is_time(value):
            return "time"
        if type(value) is int and value == self.pid and name[:1] != "_":
            lower = name.lower()
            return "pid" if "pid" in lower or "process" in lower else None
        return None

    def is_time(self, value):
        kind = type(value)
        if kind is str:
            return SHORTEST <= len(value) <= LONGEST and self._is_stamp(value)
        if kind is int:
            return 0 < value < 1 << 63 and self._fits(value / 1e9)
        if kind is float:
            return self._fits(value)
        if kind is self.datetime:
            return self._is_moment(value)
        if kind is self.date:
            return (value.year, value.month, value.day) in self.days
        # The fields that localtime and gmtime return.
        return kind is self.clock.struct_time and value[:5] in self.moments

    def _is_moment(self, value):
        # A date without a zone may be local time or UTC.
        for zone in self.zones if value.tzinfo is None else (value.tzinfo,):
            try:
                if self._is_between(self.windows[0], value.replace(tzinfo=zone).timestamp()):
                    return True
            except (ValueError, OverflowError, OSError):
                pass  # beyond the range of dates
        return False

    def _fits(self, value):
        # Soon after the machine's start, a setting such as 30.0 seconds might look like a time.
        fits = self.windows if value * 1000 % 1 else self.windows[:1]
        return any(self._is_between(window, value) for window in fits)

    @staticmethod
    def _is_between(window, value):
        return window[0] <= value <= window[1]

    def _is_stamp(self, text):
        # Hardly any of the thousands of texts has one of these.
        if not any(mark in text for mark in self.marks):
            return False
        return any(mark in text and any(rest in text for rest in rests) for mark, rests in self.stamps)


def _stamps(year, month, day, hour, minute):
    """Yields the ways to write a minute: pairs of a rare part, and the texts that may stand beside it."""
    name = MONTHS[month - 1]
    dates = ["%d%s%02d%s%02d" % (year, mark, month, mark, day) for mark in "-/."]
    dates += ["%02d%s%02d%s%d" % (first, mark, second, mark, year) for mark in "-/." for first, second in ((month, day), (day, month))]
    dates += ["%s %2d " % (name, day), "%s %02d" % (name, day), "%02d %s" % (day, name), "%02d/%s/%d" % (day, name, year)]
    in_one = "%d%02d%02d" % (year, month, day)
    return [
        ("%02d:%02d" % (hour, minute), dates),
        (in_one, ["%s%s%02d%02d" % (in_one, mark, hour, minute) for mark in ("", "T", "-", "_")]),
    ]


MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
# As long as 20260102T0304; a text longer than the other limit is more than a time.
SHORTEST = 12
# See above.
LONGEST = 200
# Of a longer boot, only the first minutes are searched for in texts.
MAX_MINUTES = 30
# The front end sets it to the time of each start.
RENEWED = {"logging._startTime"}
