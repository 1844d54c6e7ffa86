"""Delays garbage collection while modules are imported, and restores it right after.

Most objects that a module body creates are permanent: each collection in between walks over all of them and frees next to nothing. The same
holds at the end of the process, where collections take most of the time. So objects created by imports are set aside (`gc.freeze`) until
the first full collection, or until somebody reads all objects; a process that ends before that ends without a walk over them. Objects with
work to do at the end are recorded when they are set aside, and no object with a finaliser stays there.
"""

import _io
import _weakref
import sys

# Collections still run when containers exceed the freed ones by this many (gc.set_threshold): an import may really create garbage.
HELD = 100_000
# The generation of a full collection.
FULL = 2
# Files, which the interpreter flushes and closes, and may warn about.
FILES = (_io.FileIO, _io.BufferedReader, _io.BufferedWriter, _io.BufferedRandom, _io.BufferedRWPair, _io.TextIOWrapper)
# These have no work to do at the end, although they could be closed.
IN_MEMORY = (_io.BytesIO, _io.StringIO)
# Py_TPFLAGS_HEAPTYPE and Py_TPFLAGS_IMMUTABLETYPE of object.h.
MADE_AT_RUN_TIME = 1 << 9
IMMUTABLE = 1 << 8
# More objects than a function creates for itself.
SOME = 100
# Independent of metaclasses.
FLAGS = type.__dict__["__flags__"].__get__
GENERATOR = type(_ for _ in ())


def _is_suspended(generator):
    """Returns whether a generator is suspended: the code in which it waits may have work to do at the end."""
    try:
        return generator.gi_suspended
    except AttributeError:  # before Python 3.11
        return generator.gi_frame is not None and generator.gi_frame.f_lasti >= 0


def _is_open(file):
    try:
        return not file.closed
    except ValueError:  # detached, or never opened
        return False


def standard_files():
    """Returns the ids of the standard streams and of their files, which the interpreter flushes and leaves open."""
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
    """Delays garbage collection from `hold` to `give_back`, and shortens the end of the process."""

    def __init__(self, gc, native, sets_aside, is_thawed=False):
        """gc, native: these modules. sets_aside: whether objects created by imports stay out of collections for a while. is_thawed: whether
        everything in an image is set aside for good: counting it takes milliseconds."""
        self._gc = gc
        self._native = native
        self._before = None
        # A thawed process releases the objects created since the thaw itself at its end.
        self.sets_aside = sets_aside and not is_thawed
        # How many objects are set aside, including those that CPython 3.12 starts with.
        self._aside = 0 if is_thawed else gc.get_freeze_count()
        self._is_thawed = is_thawed
        # Kinds that never have work to do at the end, by id: a metaclass may forbid comparing them.
        self._plain = {}
        self._finalisable = []
        # Whether modules were imported since memory was last returned.
        self._has_grown = False
        self._files = []
        if self.sets_aside:
            gc.callbacks.append(self._collecting)
            native.watch(self.bring_back)

    def hold(self):
        """Call before the import of a module that is not nested in another import."""
        if self._gc.isenabled():
            before = self._gc.get_threshold()
            # The program has chosen a threshold itself.
            if 0 < before[0] < HELD:
                self._before = before
                self._gc.set_threshold(HELD, *before[1:])

    def give_back(self):
        """Call after that import."""
        before, self._before = self._before, None
        if before is None:
            return
        gc, self._has_grown = self._gc, True
        if self.sets_aside:
            self._set_aside()
        # Makes the new objects old, as they would be by now. Otherwise the next collection would begin at once, with all of them.
        elif not self._is_thawed and gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
        if gc.get_threshold() == (HELD, *before[1:]):
            gc.set_threshold(*before)

    def bring_back(self):
        """Lets collections see all objects again."""
        if self.sets_aside:
            self.sets_aside = False
            # Any more were frozen by the program itself.
            if self._gc.get_freeze_count() <= self._aside:
                self._gc.unfreeze()

    def end(self):
        """Call after the program's exit handlers. The interpreter then ends."""
        if not self.sets_aside:
            return
        # Newer objects may refer to those set aside, and so never be collected.
        self._record(self._native.all_objects(self._gc.get_objects))
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
        self.sets_aside = False

    def _set_aside(self):
        things = self._native.all_objects(self._gc.get_objects)
        self._record(things)
        # Objects created here since then are set aside, too: references, and lists of kinds and of objects.
        self._aside += len(things) + 2 * (len(self._finalisable) + len(self._files)) + len(self._plain) + SOME
        del things
        self._gc.freeze()

    def _record(self, things):
        """Remembers those that may have work to do at the end."""
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
            # As the interpreter looks it up, without the metaclass.
            type.__getattribute__(kind, "__del__")
            return False
        except AttributeError:
            pass
        # A class can be given a finaliser later.
        if FLAGS(kind) & (MADE_AT_RUN_TIME | IMMUTABLE) != MADE_AT_RUN_TIME:
            self._plain[key] = kind
        return True

    def _collecting(self, phase, information):
        # The first collection after imports: the program is running, and needs no memory in advance.
        if self._has_grown and self._before is None:
            self._has_grown = False
            self._native.trim()
        if phase == "start" and information["generation"] == FULL:
            self.bring_back()
