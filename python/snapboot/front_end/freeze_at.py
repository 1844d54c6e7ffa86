"""Freezes where the program first calls a certain function (`snapboot freeze --at MODULE:FUNCTION`).

A profile function is called at each call in the main thread, before the first instruction of the called function. The frozen process
continues there, and no frame of the front end is beneath.
"""

import posix
import sys


class FreezeAt:
    """Waits for the call. names: MODULE:FUNCTION of each function; whichever is called first counts. freeze: called without arguments at
    the call; returns in the thawed process."""

    def __init__(self, names, freeze):
        self._places = [Place(name) for name in names]
        self._by_name = {}
        for place in self._places:
            self._by_name.setdefault(place.last, []).append(place)
        self._freeze = freeze
        self._process = posix.getpid()

    def begin(self):
        """Call right before the main part."""
        sys.setprofile(self._called)

    def _called(self, frame, event, _):
        # Most calls are told apart by the name alone.
        if event == "call" and frame.f_code.co_name in self._by_name:
            if any(place.code() is frame.f_code for place in self._by_name[frame.f_code.co_name]):
                sys.setprofile(None)
                if posix.getpid() != self._process:
                    posix._exit(1)  # a child, such as a daemon whose parent has ended
                self._freeze()

    def never_reached(self):
        """Returns what to say of a program that has ended without the call."""
        names = " or ".join(place.name for place in self._places)
        return "the program ended without calling %s: %s." % (names, self._places[0].why_not())


class Place:
    """A function. name: MODULE:FUNCTION."""

    def __init__(self, name):
        self.name = name
        self._module, _, function = name.partition(":")
        self._way = function.split(".")
        self.last = self._way[-1]

    def code(self):
        """Returns the code of the function; None while there is none. Nothing of the program runs for that."""
        found = sys.modules.get(self._module)
        for name in self._way:
            found = _attribute(found, name)
        # Below static and class methods, and below decorators that name what they have wrapped.
        for _ in range(MOST_WRAPPERS):
            names = _names(found)
            inner = found.__func__ if isinstance(found, (staticmethod, classmethod)) else names.get("__wrapped__")
            if inner is None:
                break
            found = inner
        return found.__code__ if isinstance(found, FunctionType) else None

    def why_not(self):
        """Returns why a program may have ended without calling it."""
        module = sys.modules.get(self._module)
        if self._way == [""]:
            return "--at wants MODULE:FUNCTION, as in --at app.server:Server.run"
        if module is None:
            return "it has not loaded a module %s. Check the name" % self._module
        if self.code() is None:
            return "the module %s has no function %s that is written in Python. Check the name" % (self._module, ".".join(self._way))
        return "it does not call that function with the given arguments, or calls it outside the main thread. Name another one"


def _attribute(holder, name):
    """Returns an attribute of a module or class as it is stored there; None if there is none."""
    for names in [_names(kind) for kind in holder.__mro__] if isinstance(holder, type) else [_names(holder)]:
        if name in names:
            return names[name]
    return None


def _names(thing):
    try:
        return object.__getattribute__(thing, "__dict__") if not isinstance(thing, type) else type.__dict__["__dict__"].__get__(thing)
    except AttributeError:
        return {}


FunctionType = type(_names)
MOST_WRAPPERS = 32
