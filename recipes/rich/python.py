"""Consoles of rich, which many command-line tools make while they are imported: what they keep of their terminal is renewed.

A console looks whether its stream is a terminal when it is made, and keeps what colours it has and whether it is interactive. Of one
that is to find that out by itself a thaw has it found out again, so its look binds no image. Whoever else looks at what a console
keeps does bind it; that is watched until the freeze. (rich/console.py, also where pip and others carry it along; rich 9 to 14.)
"""

import sys

from .channel import FACT
from .recipes import Defaults

MODULE = "rich/console.py"
PROPERTY = "is_terminal"
# What a console keeps, and whose argument says whether it is to find out by itself: by which value.
KEPT = {"_color_system": ("color_system", "auto"), "is_interactive": ("force_interactive", None)}
NEEDED = ("_detect_color_system", "is_dumb_terminal", PROPERTY)


class Recipe(Defaults):
    """Watches from the first console on, until `end`."""

    def __init__(self):
        self._reads = None  # the Reads that it tells
        self._made = {}  # id: the console, and the attributes to be renewed
        self._looks = []  # the number of a stream, and the frame's file and line
        self._classes = []

    def begin(self, reads):
        """See Defaults."""
        self._reads = reads

    def renews_look(self, frame, of):
        """Whether this is the look of a console that is being made."""
        making = _making(frame)
        if making is None:
            return False
        arguments = making.f_locals
        console = arguments["self"]
        makers = [one for one in type(console).__mro__ if getattr(one.__dict__.get("__init__"), "__code__", None) is making.f_code]
        class_ = makers[0] if makers else None
        if class_ is None or not all(hasattr(class_, name) for name in NEEDED):
            return False
        if class_ not in self._classes:
            self._watch(class_)
        names = [name for name, (argument, itself) in KEPT.items() if arguments.get(argument, self) == itself]
        self._made[id(console)] = console, names
        self._looks.append((of, frame.f_code.co_filename, "%s:%d" % (frame.f_code.co_filename, frame.f_lineno)))
        return True

    def end(self, report):
        """Adds the looks to the report, as such that are renewed."""
        for class_ in self._classes:
            for name in KEPT:
                delattr(class_, name)
        self._classes = []
        self._reads = None
        for of, reader, place in self._looks:
            report.add_event(FACT, "terminal", reader, place, str(of), b"1")
        self._looks = []
        self._made = list(self._made.values())
        return bool(self._made)

    def renew(self):
        """Has each console find out what its terminal is. Raises what rich does."""
        for console, names in self._made:
            if "_color_system" in names:
                console._color_system = console._detect_color_system()
            if "is_interactive" in names:
                console.is_interactive = console.is_terminal and not console.is_dumb_terminal

    def _watch(self, class_):
        self._classes.append(class_)
        for name in KEPT:
            setattr(class_, name, Watched(name, self._read))

    def _read(self, frame):
        """Somebody reads what a console keeps. That is as good as a look at its terminal."""
        reader = frame
        while reader is not None and reader.f_code.co_filename.endswith(MODULE):
            if reader.f_code.co_name == "__init__":
                return  # of the console itself
            reader = reader.f_back
        for of in {of for of, _, _ in self._looks}:
            self._reads.fact("terminal", reader or frame, of)


class Watched:
    """An attribute that reports who reads it. It is where it would be without this."""

    def __init__(self, name, report):
        self.name = name
        self.report = report

    def __get__(self, console, class_):
        if console is None:
            return self
        try:
            value = console.__dict__[self.name]
        except KeyError:
            raise AttributeError(self.name) from None
        self.report(sys._getframe(1))
        return value

    def __set__(self, console, value):
        console.__dict__[self.name] = value

    def __delete__(self, console):
        del console.__dict__[self.name]


def _making(frame):
    """The frame that makes a console, if this one looks at its terminal for that."""
    module = frame.f_code.co_filename
    if not module.endswith(MODULE) or frame.f_code.co_name != PROPERTY:
        return None
    while frame is not None and frame.f_code.co_filename == module:
        if frame.f_code.co_name == "__init__":
            return frame if "self" in frame.f_locals else None
        frame = frame.f_back
    return None
