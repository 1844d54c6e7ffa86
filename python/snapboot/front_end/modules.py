"""What modules hold, without reading their attributes: a lazy one would load, another one fail or make something up."""

import sys

from .channel import record
from .report import as_bytes

MODULE = type(sys)
SPEC = type(sys.__spec__)
NAMES = MODULE.__dict__["__dict__"].__get__


def is_module(thing):
    """Whether it is one, whatever it says of itself (`__class__`)."""
    return issubclass(type(thing), MODULE)


def loaded_from_files(loaded):
    """Entries `module`, each with a name and a file, of those that were loaded by their own name from a file.

    loaded: pairs of a name and what `sys.modules` has by it.
    """
    entries = []
    for name, module in loaded:
        names = NAMES(module) if is_module(module) else None
        spec = names.get("__spec__") if type(names) is dict else None
        if type(spec) is SPEC and spec.name == name and spec.has_location and type(spec.origin) is str:
            entries.append(("module", record(as_bytes(name), as_bytes(spec.origin))))
    return entries


def all_names():
    """The names of each loaded module, and of what stands in for one."""
    for thing in list(sys.modules.values()):
        try:
            names = NAMES(thing) if is_module(thing) else object.__getattribute__(thing, "__dict__")
        except Exception:
            continue
        if type(names) is dict:
            yield names
