"""The namespaces of modules, without reading attributes: a lazy module would load, another one might fail or make something up."""

import sys

from .channel import record
from .report import as_bytes

MODULE = type(sys)
SPEC = type(sys.__spec__)
LOADERS = ("_frozen_importlib_external", "importlib._bootstrap_external", "zipimport")
NAMES = MODULE.__dict__["__dict__"].__get__


def is_module(thing):
    """Returns whether this is a module, whatever its `__class__` claims."""
    return issubclass(type(thing), MODULE)


def loaded_from_files(loaded):
    """Returns an entry `module`, a name and a file, for each module that was loaded under its own name from a file.

    loaded: pairs of a name and the value in `sys.modules`. A module whose loader is none of Python's own, such as one that rewrites code,
    would be another one if it were loaded before that loader is there.
    """
    entries = []
    for name, module in loaded:
        names = NAMES(module) if is_module(module) else None
        spec = names.get("__spec__") if type(names) is dict else None
        if type(spec) is not SPEC or type(spec.loader).__module__ not in LOADERS:
            continue
        if spec.name == name and spec.has_location and type(spec.origin) is str:
            entries.append(("module", record(as_bytes(name), as_bytes(spec.origin))))
    return entries


def is_being_loaded(thing):
    """Returns whether a value of `sys.modules` is a module whose body has not ended yet."""
    names = NAMES(thing) if is_module(thing) else None
    spec = names.get("__spec__") if type(names) is dict else None
    return type(spec) is SPEC and getattr(spec, "_initializing", False)


def all_names():
    """Returns the names of all loaded modules, and of objects that stand in for modules."""
    for thing in list(sys.modules.values()):
        try:
            names = NAMES(thing) if is_module(thing) else object.__getattribute__(thing, "__dict__")
        except Exception:
            continue
        if type(names) is dict:
            yield names
