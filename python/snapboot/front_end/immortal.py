"""Makes objects immortal that no program can end, so that a thaw does not count references to them.

Each count is a write, and a page that is written is copied. From CPython 3.12 on an object may be immortal: its count never changes, and
nothing frees it. This is done only to objects that last as long as the process in an ordinary start, too:

* the front end's own modules, functions, code and classes, which no program sees;
* what the interpreter's import system holds: `builtins`, `sys`, the modules of importlib and those that these use; and the functions and
  types that are these modules' own. Their counts were never those of an ordinary start, as the front end has references to them.

Whatever a program has loaded or made stays as it is: it is counted, freed and finalised as ever.

This knows that an object begins with its count of references and the address of its type. What an immortal count looks like is read from a
name in compiled code, which the interpreter makes immortal itself. `_Header` tries that on an object of its own. Where anything is
unexpected, nothing is changed.
"""

import posix
import sys

from .modules import NAMES, is_module


def settle(modules):
    """Call right before the freeze. modules: those of the front end, by name."""
    if not IS_USED:
        return
    try:
        header = _Header()
    except (OSError, OverflowError, Unexpected):
        return
    try:
        # By address: a frame gives back a reference that it has taken before without looking whether the object is immortal by now.
        found = _Found(modules).things
        for place in [(id(thing), id(type(thing))) for thing in found.values()]:
            header.make_immortal(*place)
    except (OSError, Unexpected):
        pass  # each object is immortal or not, by itself
    finally:
        header.close()


class Unexpected(Exception):
    """Objects of this interpreter are not as this module expects."""


class _Header:
    """The beginning of objects in memory. Raises OSError or Unexpected."""

    def __init__(self):
        self._memory = posix.open("/proc/self/mem", posix.O_RDWR | posix.O_CLOEXEC)
        try:
            self._find()
        except BaseException:
            self.close()
            raise

    def _find(self):
        names = compile("a_name_of_the_front_end", "", "eval").co_names
        self._immortal = self._read(*_place(names))
        tried = [object()]
        place = _place(tried)
        count = self._read(*place)
        held = tried * 2
        if self._read(*place) != count + 2 or count >= MOST or self._immortal < MOST or _counts(names) or not _counts(tried):
            raise Unexpected
        del held
        self.make_immortal(*place)
        if self._read(*place) != self._immortal or sys.getrefcount(tried[0]) != sys.getrefcount(names[0]) or _counts(tried):
            raise Unexpected

    def _read(self, address, kind):
        """Returns the count that the object at an address has in memory. Raises Unexpected unless the address of its type follows."""
        data = posix.pread(self._memory, 2 * WORD, address)
        if int.from_bytes(data[WORD:], sys.byteorder) != kind:
            raise Unexpected
        return int.from_bytes(data[:WORD], sys.byteorder)

    def make_immortal(self, address, kind):
        """Leaves out an object that is immortal already, or that has bits beside its count."""
        if self._read(address, kind) < MOST:
            posix.pwrite(self._memory, self._immortal.to_bytes(WORD, sys.byteorder), address)

    def close(self):
        posix.close(self._memory)


def _place(things):
    """Returns the addresses of the only object in a container, and of its type."""
    return id(things[0]), id(type(things[0]))


def _counts(things):
    """Returns whether the count of the only object in a container follows the references to it."""
    before = sys.getrefcount(things[0])
    many = list(things) * MANY
    after = sys.getrefcount(things[0])
    del many
    return after != before or sys.getrefcount(things[0]) != before


class _Found:
    """The objects to be made immortal, by id."""

    def __init__(self, modules):
        self.things = {}
        imports = [sys.modules.get(name) for name in IMPORT_SYSTEM]
        for module in filter(is_module, (*modules.values(), *imports)):
            self._add_module(module)
            names = NAMES(module)
            for thing in tuple(names.values()):
                self._add_member(thing, names)
        used = [thing for module in filter(is_module, imports) for thing in NAMES(module).values()]
        for module in filter(is_module, (sys.modules.get("builtins"), sys, *used)):
            self._add_module(module)
            for thing in tuple(NAMES(module).values()):
                self._add_member_in_c(thing, module)

    def _add(self, thing):
        is_new = id(thing) not in self.things
        self.things[id(thing)] = thing
        return is_new

    def _add_module(self, module):
        self._add(module)
        self._add(NAMES(module))

    def _add_member(self, thing, names):
        """Adds a function or class of a module, or of a class of it, if it is its own. names: those of the module."""
        kind = type(thing)
        if kind is FUNCTION:
            if thing.__globals__ is names and self._add(thing):
                self._add_code(thing.__code__)
        elif kind in WRAPPERS:
            self._add(thing)
            self._add_member(thing.__func__, names)
        elif kind is property:
            self._add(thing)
            self._add_member(thing.fget, names)
            self._add_member(thing.fset, names)
        elif kind in DESCRIPTORS:
            self._add(thing)
        elif kind is type and thing.__module__ == names["__name__"] and self._add(thing):
            self._add(thing.__mro__)
            for member in tuple(MEMBERS(thing).values()):
                self._add_member(member, names)

    def _add_member_in_c(self, thing, module):
        """Adds a function or type of a module that is written in C, if it is its own and cannot be changed."""
        kind = type(thing)
        if kind is BUILT_IN and thing.__self__ is module:
            self._add(thing)
        elif kind is type and FLAGS(thing) & IMMUTABLE and thing.__module__ == NAMES(module).get("__name__") and self._add(thing):
            self._add(thing.__mro__)
            for member in MEMBERS(thing).values():
                if type(member) in DESCRIPTORS:
                    self._add(member)

    def _add_code(self, code):
        self._add(code)
        for part in (code.co_consts, code.co_names, code.co_filename, code.co_qualname, code.co_linetable, code.co_exceptiontable):
            self._add(part)
        for constant in code.co_consts:
            if type(constant) is CODE:
                self._add_code(constant)
            elif type(constant) in PLAIN:
                self._add(constant)


# Not on free-threaded builds, whose objects begin otherwise, nor on debug builds, which add up all counts.
IS_USED = sys.version_info >= (3, 12) and not sys.abiflags and not hasattr(sys, "gettotalrefcount")
WORD = object.__basicsize__ // 2
# No count of an object that is not immortal is as large, in any version: 32 bits of it are counted.
MOST = 1 << 28
MANY = 1000  # references
FUNCTION, CODE, BUILT_IN = type(settle), type(settle.__code__), type(len)
PLAIN = (str, bytes, int, float)
WRAPPERS = (staticmethod, classmethod)
# Of methods, special methods, attributes that are computed or stored, and class methods.
DESCRIPTORS = tuple(
    map(type, (str.join, str.__add__, FUNCTION.__dict__["__code__"], FUNCTION.__dict__["__globals__"], dict.__dict__["fromkeys"]))
)
MEMBERS = type.__dict__["__dict__"].__get__
FLAGS = type.__dict__["__flags__"].__get__
# Py_TPFLAGS_IMMUTABLETYPE of object.h.
IMMUTABLE = 1 << 8
IMPORT_SYSTEM = "_frozen_importlib", "_frozen_importlib_external"
