"""Freezes where the program first calls a certain function (`snapboot freeze --at MODULE:FUNCTION`).

A profile function is called at each call in the main thread, before the first instruction of the called function. The frozen process
continues there, and no frame of the front end is beneath.
"""

import sys


class FreezeAt:
    """Waits for the call. name: MODULE:FUNCTION. freeze: called without arguments at the call; returns in the thawed process."""

    def __init__(self, name, freeze):
        self.name = name
        self._module, _, function = name.partition(":")
        self._way = function.split(".")
        self._last = self._way[-1]
        self._freeze = freeze

    def begin(self):
        """Call right before the main part."""
        sys.setprofile(self._called)

    def _called(self, frame, event, _):
        # Most calls are told apart by the name alone.
        if event == "call" and frame.f_code.co_name == self._last and self._code() is frame.f_code:
            sys.setprofile(None)
            self._freeze()

    def _code(self):
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

    def never_reached(self):
        """Returns what to say of a program that has ended without the call."""
        module = sys.modules.get(self._module)
        if self._way == [""]:
            why = "--at wants MODULE:FUNCTION, as in --at app.server:Server.run"
        elif module is None:
            why = "it has not loaded a module %s. Check the name" % self._module
        elif self._code() is None:
            why = "the module %s has no function %s that is written in Python. Check the name" % (self._module, ".".join(self._way))
        else:
            why = "it does not call that function with the given arguments, or calls it outside the main thread. Name another one"
        return "the program ended without calling %s: %s." % (self.name, why)


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
