"""Releases the objects created after the thaw at the end, as the interpreter does, since that may run the program's code.

The frozen heap stays as it is. `gc.freeze` at the freeze point keeps that cheap.
"""

import _io
import _thread
import _weakref
import builtins
import gc
import sys

from . import code_lines
from .modules import NAMES, is_module
from .stdio import STREAMS, is_closed

# Attributes that sys forgets first when the interpreter ends, so that they keep nothing of the program alive. Split at run time, so that
# the names are strings of their own, side by side, and not on as many pages as there are names.
SYS_ATTRIBUTES = (
    "path argv ps1 ps2 last_exc last_type last_value last_traceback path_hooks path_importer_cache meta_path __interactivehook__"
).split()
ADDED_BUILTINS = "open exit quit copyright credits license help _".split()


class Release:
    """Releases objects at the end of this process. Created before the program can change anything."""

    def __init__(self, ignore, unraisable, plain):
        """ignore: called with an exception that a finaliser raised, and with the finaliser. unraisable: the type of the argument of
        sys.unraisablehook. plain: kinds of objects that have no work to do at the end."""
        self._ignore = ignore
        self._unraisable = unraisable
        self._hook = None
        self._last_module = None
        self._finalizable = []
        self._files = []
        self._io = None
        # By id: a metaclass may forbid hashing.
        self._plain = {id(kind): kind for kind in plain}
        self._callbacks = gc.callbacks
        # The builtins that the interpreter restores at its end: those from before `io` and `site` added theirs.
        self._builtins = {name: thing for name, thing in builtins.__dict__.items() if name not in ADDED_BUILTINS}

    def settle(self):
        """Finds the objects of the frozen heap that have work to do at the end. Call before the last garbage collection."""
        self._last_module = next(reversed(sys.modules))
        self._modules = {id(module) for module in sys.modules.values()} - {id(sys.modules["__main__"])}
        self._modules.update(map(id, code_lines.PREPARED))
        # Held, if only the interpreter's own importers are in it: freeing each of them and the names that it has listed would write to as
        # many pages.
        cache = sys.path_importer_cache
        self._importers = cache if all(type(importer) in IMPORTERS for importer in cache.values()) else None
        self._count = len(cache)
        standard = _standard_files()
        things = gc.get_objects()
        # Not all of the interpreter's own kinds are in use yet.
        kinds = {id(kind): kind for kind in [*map(type, things), *object.__subclasses__()]}
        self._plain.update({key: kind for key, kind in kinds.items() if _is_plain(kind)})
        for thing in things:
            kind = type(thing)
            if id(kind) in self._plain:
                continue
            if id(kind) in WRITERS:
                if id(thing) not in standard and not is_closed(thing):
                    self._files.append(thing)
            elif kind is not GENERATOR and _finalizer(kind) is not None and not issubclass(kind, _io._IOBase):
                try:
                    self._finalizable.append(_weakref.ref(thing))
                except TypeError:
                    pass
        self._files.sort(key=_rank_of)

    def forget(self):
        """From here on, no object from before the thaw is finalised or flushed."""
        self._finalizable.clear()
        self._files.clear()

    def run(self):
        """Releases what came after the thaw: `__main__`, modules imported since, and what only they hold."""
        names = sys.__dict__
        self._hook = names.get("unraisablehook")
        if self._hook is not None:
            names["unraisablehook"] = self._ignored
        modules = sys.modules
        if gc.isenabled():
            self._collect()
        if self._importers is not None and len(self._importers) > self._count:
            _drop_last(self._importers, len(self._importers) - self._count)
        for name in SYS_ATTRIBUTES:
            if name in names:
                names[name] = None
        for name, original in STREAMS:
            names[name] = names.get(original)
        builtins.__dict__["_"] = None
        new = ["__main__"]
        for name in reversed(modules):
            if name == self._last_module:
                break
            new.append(name)
        new[1:] = reversed(new[1:])
        self._io = modules.pop("io", None)  # from here on, tracebacks have no source lines, as in CPython
        alive = []
        last = []
        for name in new:
            module = modules.get(name)
            # An object that only pretends to be a module stays where it is.
            if is_module(module):
                if id(module) not in self._modules:
                    try:
                        alive.append(_weakref.ref(module))
                    except TypeError:
                        pass
                modules[name] = None
                last.append(module)
            del module
        last.reverse()
        for _ in range(len(last)):
            _from_outside(last.pop)
        names = builtins.__dict__
        for name in ADDED_BUILTINS:
            names.pop(name, None)
        # Resetting each of them would write to fifty frozen pages, so a builtin that the program has replaced stays replaced.
        if len(names) != len(self._builtins):
            held = names.copy()  # objects that end now still find the builtins
            names.clear()
            names.update(self._builtins)
            del held
        self._callbacks.clear()  # the interpreter calls them for the first collection only
        self._collect()
        for reference in reversed(alive):
            module = reference()
            if module is not None:
                _clear(NAMES(module))
            del module
        self._finish_rest()

    def _collect(self):
        # Collects only objects younger than the thaw: a full collection also empties free lists, and so writes to frozen pages. Survivors
        # of one generation move to the next, which the next collection must then cover.
        generation = 2 if gc.get_objects(2) else 1 if gc.get_objects(1) else 0
        _from_outside(gc.collect, generation)

    def _finish_rest(self):
        """Finalises objects that are still held, mostly by modules from before the thaw, and flushes files."""
        plain = self._plain
        rest = [thing for thing in gc.get_objects() if id(type(thing)) not in plain]
        kept = _held_by_threads(rest)
        kinds = {id(kind): kind for kind in map(type, rest)}
        ranks = {key: _rank(kind) for key, kind in kinds.items() if _finalizer(kind) is not None}
        if ranks:
            kept |= _standard_files()
            last = [(ranks[id(type(thing))], thing) for thing in rest if id(type(thing)) in ranks]
            del rest
            last.sort(key=_first)
            for _, thing in last:
                if id(thing) not in kept:
                    self._finish(thing)
        for reference in self._finalizable:
            thing = reference()
            if thing is not None and id(thing) not in kept:
                self._finish(thing)
        # Closed, not flushed: a stream that owns another stream's descriptor closes it for that one, too, as in an ordinary start.
        for stream in self._files:
            self._finish(stream)

    def _ignored(self, what):
        """Takes CALL out of the trace of an ignored exception: without a frame, the interpreter leaves the trace empty."""
        trace = what.exc_traceback
        if trace is not None and trace.tb_frame.f_code is CALL:
            what.exc_value.__traceback__ = trace.tb_next
            what = self._unraisable((what.exc_type, what.exc_value, trace.tb_next, what.err_msg, what.object))
        self._hook(what)

    def _finish(self, thing):
        kind = type(thing)
        try:
            if kind is GENERATOR:
                thing.close()
            else:
                _from_outside(_finalizer(kind), thing)
        except BaseException as error:
            self._ignore(error, _finalizer(kind))


def _drop_last(cache, count):
    """Removes the newest entries."""
    while count:
        cache.popitem()
        count -= 1


def _clear(names):
    """Does what _PyModule_ClearDict does: clears first the names with one underscore, then all others except the builtins."""
    for name in list(names):
        if type(name) is str and name[:1] == "_" and name[1:2] != "_" and names[name] is not None:
            names[name] = None
    for name in list(names):
        if type(name) is str and name != "__builtins__" and not (name[:1] == "_" and name[1:2] != "_"):
            if names[name] is not None:
                names[name] = None


def _standard_files():
    """Returns the ids of the standard streams and of their parts."""
    found = set()
    for thing in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        try:
            while thing is not None:
                found.add(id(thing))
                thing = getattr(thing, "buffer", None) or getattr(thing, "raw", None)
        except ValueError:  # detached
            pass
    return found


def _held_by_threads(rest):
    """Returns the ids of objects that frames of other threads may hold. The interpreter stops such threads and never finalises what their
    frames hold. rest: the objects that are still held: a generator among them may be on a frame's stack, which Python does not show."""
    if not _thread._count():
        return set()
    own, held, holders = _thread.get_ident(), set(), [thing for thing in rest if type(thing) is GENERATOR]
    for number, frame in sys._current_frames().items():
        while number != own and frame is not None:
            holders += frame.f_locals.values()
            frame = frame.f_back
    while holders:
        held.update(map(id, holders))
        inner = gc.get_referents(*[thing for thing in holders if type(thing) is GENERATOR])
        holders = [thing for thing in inner if id(thing) not in held]
    return held


def _rank_of(thing):
    return _rank(type(thing))


def _first(pair):
    return pair[0]


def _rank(kind):
    """Returns the order in which objects end: a writer before the file that it writes to."""
    if not issubclass(kind, _io._IOBase):
        return 0
    if issubclass(kind, _io.TextIOWrapper):
        return 1
    if issubclass(kind, _io._RawIOBase):
        return 4
    return 3 if id(kind) in BUFFERS else 2


def _from_outside(function, *arguments):
    """Calls a C function. Its warnings are attributed to no caller, as when the interpreter ends."""
    OUTSIDE["function"] = function
    OUTSIDE["arguments"] = arguments
    exec(CALL, OUTSIDE)


def _is_plain(kind):
    """Returns whether objects of this kind never have work to do at the end: the kind has no finaliser, and cannot be given one."""
    return FLAGS(kind) & (MADE_AT_RUN_TIME | IMMUTABLE) != MADE_AT_RUN_TIME and _finalizer(kind) is None


def _finalizer(kind):
    try:
        # As the interpreter looks it up, without the metaclass.
        return GENERATOR if kind is GENERATOR else type.__getattribute__(kind, "__del__")
    except AttributeError:
        return None


GENERATOR = type(0 for _ in ())
IMPORTERS = type(None), sys.modules["_frozen_importlib_external"].FileFinder
# Independent of metaclasses.
FLAGS = type.__dict__["__flags__"].__get__
BUFFERS = frozenset(map(id, (_io.BufferedReader, _io.BufferedWriter, _io.BufferedRandom)))
OUTSIDE = {"__name__": "sys"}
CALL = compile("function(*arguments)", "<sys>" if sys.version_info >= (3, 13) else "sys", "exec")
if sys.version_info >= (3, 13):
    CALL = CALL.replace(co_firstlineno=0)
WRITERS = frozenset(map(id, (_io.BufferedWriter, _io.BufferedRandom, _io.TextIOWrapper)))
# Py_TPFLAGS_HEAPTYPE and Py_TPFLAGS_IMMUTABLETYPE of object.h.
MADE_AT_RUN_TIME = 1 << 9
IMMUTABLE = 1 << 8
