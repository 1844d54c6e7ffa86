"""What modules hold, without reading their attributes: a lazy one would load, another one fail or make something up."""

import sys

MODULE = type(sys)
NAMES = MODULE.__dict__["__dict__"].__get__


def is_module(thing):
    """Whether it is one, whatever it says of itself (`__class__`)."""
    return issubclass(type(thing), MODULE)


def all_names():
    """The names of each loaded module, and of what stands in for one."""
    for thing in list(sys.modules.values()):
        try:
            names = NAMES(thing) if is_module(thing) else object.__getattribute__(thing, "__dict__")
        except Exception:
            continue
        if type(names) is dict:
            yield names
