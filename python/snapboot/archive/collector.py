"""Garbage collection is held back while modules are imported, and given back right after.

What a module body makes is mostly there to stay: each collection meanwhile walks over all of it and frees next to nothing. The same
holds when the process ends, where collections are what takes longest. So what imports have made is set aside (`gc.freeze`) until the
first full collection, or until somebody looks at all objects; a process that ends before that ends without a walk over it. What has
something to do at the end is noted when it is set aside, and nothing stays there that a finaliser waits for.
"""

import _io
import _weakref
import sys

# So many containers more than were freed (gc.set_threshold): an import that makes garbage in earnest is collected all the same.
HELD = 100_000
# The generation of a full collection.
FULL = 2
# Files, which the interpreter flushes and closes, and may warn of.
FILES = (_io.FileIO, _io.BufferedReader, _io.BufferedWriter, _io.BufferedRandom, _io.BufferedRWPair, _io.TextIOWrapper)
# What has nothing to do at the end, although it could be closed.
IN_MEMORY = (_io.BytesIO, _io.StringIO)
# Py_TPFLAGS_HEAPTYPE and Py_TPFLAGS_IMMUTABLETYPE of object.h.
MADE_AT_RUN_TIME = 1 << 9
IMMUTABLE = 1 << 8
# More objects than a function has of its own.
SOME = 100
# Whatever a metaclass answers.
FLAGS = type.__dict__["__flags__"].__get__
GENERATOR = type(_ for _ in ())


def _is_suspended(generator):
    """Whether a generator has been begun and not ended: what it waits in may have something to do at the end."""
    try:
        return generator.gi_suspended
    except AttributeError:  # before Python 3.11
        return generator.gi_frame is not None and generator.gi_frame.f_lasti >= 0


def _is_open(file):
    try:
        return not file.closed
    except ValueError:  # it has been detached, or was never opened
        return False


def standard_files():
    """The ids of the standard streams and what they write to, which the interpreter flushes and leaves open."""
    found = set()
    for file in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        for name in ("buffer", "raw", None):
            found.add(id(file))
            try:
                file = getattr(file, name) if name else None
            except (AttributeError, ValueError):
                break
    return found


class Collector:
    """Holds garbage collection back from `hold` to `give_back`, and shortens the end of the process."""

    def __init__(self, gc, native, sets_aside, is_thawed=False):
        """gc, native: these modules. sets_aside: whether what imports make stays out of collections for a while. is_thawed: whether all
        that an image has is set aside for good: to count it takes milliseconds."""
        self._gc = gc
        self._native = native
        self._before = None
        self._sets_aside = sets_aside
        # How many objects were set aside, with those that CPython 3.12 starts with.
        self._aside = 0 if is_thawed else gc.get_freeze_count()
        self._is_thawed = is_thawed
        # Kinds that never have anything to do at the end, by their ids: a metaclass may be in the way of comparing them.
        self._plain = {}
        self._finalisable = []
        # Whether modules were imported since memory was given back.
        self._has_grown = False
        self._files = []
        if sets_aside:
            gc.callbacks.append(self._collecting)
            native.watch(self.bring_back)

    def hold(self):
        """To be called before a module is imported that no other import is about."""
        if self._gc.isenabled():
            before = self._gc.get_threshold()
            # A program that has chosen for itself knows why.
            if 0 < before[0] < HELD:
                self._before = before
                self._gc.set_threshold(HELD, *before[1:])

    def give_back(self):
        """To be called after that import."""
        before, self._before = self._before, None
        if before is None:
            return
        gc, self._has_grown = self._gc, True
        if self._sets_aside:
            self._set_aside()
        # What has been made counts as old, as it would by now, or the next collection would begin at once, with all of it.
        elif not self._is_thawed and gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
        if gc.get_threshold() == (HELD, *before[1:]):
            gc.set_threshold(*before)

    def bring_back(self):
        """Has collections see everything again."""
        if self._sets_aside:
            self._sets_aside = False
            # More than that the program itself has frozen.
            if self._gc.get_freeze_count() <= self._aside:
                self._gc.unfreeze()

    def end(self):
        """To be called when the program's exit handlers have run. The interpreter goes on to end."""
        if not self._sets_aside:
            return
        # What was made since then may hang on what was set aside, and never be collected.
        self._note(self._native.all_objects(self._gc.get_objects))
        for reference in self._finalisable:
            thing = reference()
            if thing is not None and (type(thing) is not GENERATOR or _is_suspended(thing)):
                del thing
                self.bring_back()
                return
        standard = standard_files()
        for reference in self._files:
            file = reference()
            if file is not None and _is_open(file) and id(file) not in standard:
                del file
                self.bring_back()
                return
        self._sets_aside = False

    def _set_aside(self):
        things = self._native.all_objects(self._gc.get_objects)
        self._note(things)
        # What was made here since then is set aside, too: references, and lists of kinds and of objects.
        self._aside += len(things) + 2 * (len(self._finalisable) + len(self._files)) + len(self._plain) + SOME
        del things
        self._gc.freeze()

    def _note(self, things):
        """Remembers those that may have something to do at the end."""
        special = [kind for kind in self._native.kinds_of(things) if not self._is_plain(kind)]
        for thing in self._native.of_kinds(things, special) if special else ():
            if type(thing) is GENERATOR and not _is_suspended(thing):
                continue
            try:
                (self._files if type(thing) in FILES else self._finalisable).append(_weakref.ref(thing))
            except TypeError:
                pass

    def _is_plain(self, kind):
        key = id(kind)
        if key in self._plain:
            return True
        if issubclass(kind, _io._IOBase):
            return kind in IN_MEMORY
        try:
            # As the interpreter looks: a metaclass is not consulted.
            type.__getattribute__(kind, "__del__")
            return False
        except AttributeError:
            pass
        # A class can be given a finaliser later.
        if FLAGS(kind) & (MADE_AT_RUN_TIME | IMMUTABLE) != MADE_AT_RUN_TIME:
            self._plain[key] = kind
        return True

    def _collecting(self, phase, information):
        # The first collection after imports: the program is at work, and needs no memory in advance.
        if self._has_grown and self._before is None:
            self._has_grown = False
            self._native.trim()
        if phase == "start" and information["generation"] == FULL:
            self.bring_back()
