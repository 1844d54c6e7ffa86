"""The end of a thawed process: nothing observable is lost, but the frozen heap is not torn down.

Follows Py_RunMain and Py_FinalizeEx step by step, up to where they free everything: of that, only what came after the thaw
is released, since releasing it may run the program's code. `gc.freeze` at the freeze point keeps that cheap.
"""

import _io
import _signal
import _weakref
import builtins
import gc
import posix
import sys

from . import _modules, _trampoline

FLUSH_FAILED = 120

# What sys forgets first when the interpreter ends, so that nothing of the program hangs on to it.
# Split, so that the names are strings of their own that lie side by side, and not on as many pages as there are names.
SYS_ATTRIBUTES = (
    "path argv ps1 ps2 last_exc last_type last_value last_traceback path_hooks path_importer_cache meta_path __interactivehook__"
).split()
ADDED_BUILTINS = "open exit quit copyright credits license help _".split()
STREAMS = [("stdin", "__stdin__"), ("stdout", "__stdout__"), ("stderr", "__stderr__")]


class Exit:
    """How this process will end. Made before the program can change anything."""

    def __init__(self):
        self._unraisable = _unraisable_arguments_type()
        self._last_module = None
        self._finalizable = []
        self._files = []
        self._status = 0
        self._interrupted = False
        self._io = None
        # Kinds of things that have nothing to do at the end, by their ids: a metaclass may be in the way of looking a kind up.
        self._plain = {id(kind): kind for kind in _trampoline.KINDS}
        self._atexit = None
        self._callbacks = gc.callbacks
        self.from_file = False
        # Whether this is the rehearsal of a new image: what the program asked for at the end is not done then, but for exit
        # handlers in a process that is confined, so that they can do nothing to anybody else.
        self.rehearses = False
        self.is_confined = False
        self.session = False  # whether the interpreter goes on to one
        self.inspected = False  # whether one comes after the program, however it ends
        self.script_names = None  # those of `__main__`, if the interpreter takes the name of a script from it then
        # What the interpreter brings back at its end: the builtins from before `io` and `site` added theirs.
        self._builtins = {name: thing for name, thing in builtins.__dict__.items() if name not in ADDED_BUILTINS}

    def settle(self):
        """Notes what is in the frozen heap that has something to do at the end. To be called before the last garbage collection."""
        self._last_module = next(reversed(sys.modules))
        self._atexit = sys.modules.get("atexit")
        self._modules = {id(module) for module in sys.modules.values()} - {id(sys.modules["__main__"])}
        standard = _standard_files()
        things = gc.get_objects()
        # The interpreter's own kinds are not all in use yet.
        kinds = {id(kind): kind for kind in [*map(type, things), *object.__subclasses__()]}
        self._plain.update({key: kind for key, kind in kinds.items() if _is_plain(kind)})
        for thing in things:
            kind = type(thing)
            if id(kind) in self._plain:
                continue
            if id(kind) in WRITERS:
                if id(thing) not in standard and not _is_closed(thing):
                    self._files.append(thing)
            elif kind is not GENERATOR and _finalizer(kind) is not None and not issubclass(kind, _io._IOBase):
                try:
                    self._finalizable.append(_weakref.ref(thing))
                except TypeError:
                    pass

    def warm_up(self):
        """See _stages.Freeze. What the end does it cannot do, but it can go the way there."""
        _trampoline.Trampoline(int, list.clear)
        try:
            sys.stderr.flush()
        except _trampoline.Ended:
            pass

    def leave(self, holder):
        """Ends the process as the interpreter does after the main part. A _trampoline.Trampoline calls it, last thing.

        holder: a list with the exception that the main part ended with, or None; it is emptied, so that nobody
        hangs on to the exception. Exit handlers see no frame of the front end: they are called after this has returned.
        """
        if self._begin(holder):
            return
        if self.rehearses:
            self._finalizable.clear()
            self._files.clear()
            if not self.is_confined:
                self._end()
        atexit = self._atexit or sys.modules.get("atexit")
        if atexit is None:
            self._end()
        _trampoline.call_next(atexit._run_exitfuncs, self._end)

    def leave_now(self, error):
        """The same from anywhere, after an error. Never returns."""
        self._begin([error])
        try:
            if "atexit" in sys.modules:
                sys.modules["atexit"]._run_exitfuncs()
        except BaseException:
            pass  # shown by then
        self._end()

    def _begin(self, holder):
        """Up to the exit handlers. Returns True when the interpreter itself is to go on: with an interactive session."""
        error = holder.pop()
        if self.from_file:
            # After a script, and nothing else, the interpreter flushes before it looks at what came of it.
            self._flush(sys.__dict__.get("stderr"), False)
            self._flush(sys.__dict__.get("stdout"), False)
        if error is not None:
            self._interrupted = type(error) is KeyboardInterrupt
            self._status = self._report(error)
        if self.inspected or (self.session or _wants_session()) and not isinstance(error, SystemExit):
            for name in ("__file__", "__cached__") if self.script_names else ():
                self.script_names.pop(name, None)
            return True
        del error
        threading = sys.modules.get("threading")
        if threading is not None:
            try:
                threading._shutdown()
            except BaseException as error:
                self._ignore(error, None if WORDED else threading, "threading shutdown")
        return False

    def _end(self):
        """What follows the exit handlers. Never returns."""
        status = self._status
        try:
            if not self._finalize():
                status = FLUSH_FAILED
        except BaseException:
            pass  # of the front end itself: nothing of that is for those who use the program
        finally:
            if self._interrupted:
                _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
                posix.kill(posix.getpid(), _signal.SIGINT)
                status = 128 + _signal.SIGINT
            # The freezer then writes out the C library's own streams.
            posix.putenv(b"SNAPBOOT_EXIT", b"stop" if self.rehearses else b"1")
            posix._exit(status)

    def _report(self, error):
        """Shows an exception as PyErr_Print does; returns the exit status."""
        if isinstance(error, SystemExit) and not (sys.flags.inspect and not self.session):
            return _status_of(error, self._leave_behind)
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith(FOLDER):
            trace = trace.tb_next
        error.__traceback__ = trace
        kind = type(error)
        if LAST_EXC:
            sys.last_exc = error
        sys.last_type = kind
        sys.last_value = error
        sys.last_traceback = trace
        try:
            hook = sys.excepthook
        except AttributeError:
            _write_stderr("sys.excepthook is missing\n")
            sys.__excepthook__(kind, error, trace)
            return 1
        sys.audit("sys.excepthook", hook, kind, error, trace)
        try:
            hook(kind, error, trace)
        except SystemExit as exit:
            return _status_of(exit, self._leave_behind)
        except BaseException as second:
            second.__traceback__ = second.__traceback__.tb_next
            _write_stderr("Error in sys.excepthook:\n")
            sys.__excepthook__(type(second), second, second.__traceback__)
            _write_stderr("\nOriginal exception was:\n")
            sys.__excepthook__(kind, error, trace)
        return 1

    def _leave_behind(self, error):
        """An error that the interpreter does not clear: where it is short of `threading` to shut down, it takes it for that."""
        if LEAVES_BEHIND and "threading" not in sys.modules:
            self._ignore(error, None, "threading shutdown")

    def _finalize(self):
        """Py_FinalizeEx from there, up to where it frees everything. Returns False when output was lost."""
        kept = self._flush(sys.__dict__.get("stdout"), True)
        kept = self._flush(sys.__dict__.get("stderr"), False) and kept
        _give_signals_back()
        self._release()
        self._flush(sys.__dict__.get("__stdout__"), False)
        self._flush(sys.__dict__.get("__stderr__"), False)
        return kept

    def _flush(self, stream, tell):
        if stream is None or _is_closed(stream):
            return True
        try:
            stream.flush()
        except BaseException as error:
            if tell:
                self._ignore(error, None if WORDED else stream, "flushing sys.stdout")
            return False
        return True

    def _ignore(self, error, culprit, occasion=None):
        """PyErr_WriteUnraisable, or PyErr_FormatUnraisable where that is used for the occasion."""
        message = "Exception ignored on " + occasion if occasion and WORDED else None
        trace = error.__traceback__
        trace = None if trace is None else trace.tb_next
        try:
            sys.unraisablehook(self._unraisable((type(error), error, trace, message, culprit)))
        except BaseException:
            pass

    def _release(self):
        """Lets go of what came after the thaw: `__main__`, modules imported since, and what only they hold."""
        names = sys.__dict__
        modules = sys.modules
        if gc.isenabled():
            self._collect()
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
        self._io = modules.pop("io", None)  # so that tracebacks come without source lines from here on, as in CPython
        alive = []
        last = []
        for name in new:
            module = modules.get(name)
            # What only pretends to be a module stays where it is.
            if _modules.is_module(module):
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
        # To touch each of them would write to fifty frozen pages. So one that the program has replaced stays replaced.
        if len(names) != len(self._builtins):
            held = names.copy()  # what ends with it still finds the builtins
            names.clear()
            names.update(self._builtins)
            del held
        self._callbacks.clear()  # the interpreter calls them for the first collection only
        self._collect()
        for reference in reversed(alive):
            module = reference()
            if module is not None:
                _clear(_modules.NAMES(module))
            del module
        self._finish_rest()

    def _collect(self):
        # Everything younger than the thaw, and no more: a full collection empties free lists too, and so writes to frozen pages.
        # What a collection of one generation leaves is in the next one, which the next collection then has to cover.
        generation = 2 if gc.get_objects(2) else 1 if gc.get_objects(1) else 0
        _from_outside(gc.collect, generation)

    def _finish_rest(self):
        """Finalises what is still held, mostly by modules from before the thaw, and flushes files."""
        plain = self._plain
        rest = [thing for thing in gc.get_objects() if id(type(thing)) not in plain]
        kinds = {id(kind): kind for kind in map(type, rest)}
        ranks = {key: _rank(kind) for key, kind in kinds.items() if _finalizer(kind) is not None}
        if ranks:
            kept = _standard_files()
            last = [(ranks[id(type(thing))], thing) for thing in rest if id(type(thing)) in ranks]
            del rest
            last.sort(key=_first)
            for _, thing in last:
                if id(thing) not in kept:
                    self._finish(thing)
        for reference in self._finalizable:
            thing = reference()
            if thing is not None:
                self._finish(thing)
        for stream in reversed(self._files):
            try:
                stream.flush()
            except BaseException:
                pass

    def _finish(self, thing):
        kind = type(thing)
        try:
            if kind is GENERATOR:
                thing.close()
            else:
                _from_outside(_finalizer(kind), thing)
        except BaseException as error:
            self._ignore(error, _finalizer(kind))


def _give_signals_back():
    """From here on no handler of the program is called: what has one gets the kernel's default action."""
    for number in range(1, _signal.NSIG):
        try:
            if callable(_signal.getsignal(number)):
                _signal.signal(number, _signal.SIG_DFL)
        except BaseException:
            pass  # one that came just now


def _clear(names):
    """_PyModule_ClearDict: first the names with one underscore, then all but the builtins."""
    for name in list(names):
        if type(name) is str and name[:1] == "_" and name[1:2] != "_" and names[name] is not None:
            names[name] = None
    for name in list(names):
        if type(name) is str and name != "__builtins__" and not (name[:1] == "_" and name[1:2] != "_"):
            if names[name] is not None:
                names[name] = None


def _wants_session():
    """Whether the program has asked for an interactive session after it, by setting PYTHONINSPECT on a terminal."""
    loaded = sys.modules.get("os")
    try:
        names = posix.environ if loaded is None else loaded.environ._data
        return bool(names.get(b"PYTHONINSPECT")) and not sys.flags.ignore_environment and posix.isatty(0)
    except (AttributeError, OSError):
        return False


def _standard_files():
    """The ids of the standard streams and of what they are made of."""
    found = set()
    for thing in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        try:
            while thing is not None:
                found.add(id(thing))
                thing = getattr(thing, "buffer", None) or getattr(thing, "raw", None)
        except ValueError:  # detached
            pass
    return found


def _first(pair):
    return pair[0]


def _rank(kind):
    """In which order things end: whatever writes comes before what it writes to."""
    if not issubclass(kind, _io._IOBase):
        return 0
    if issubclass(kind, _io.TextIOWrapper):
        return 1
    if issubclass(kind, _io._RawIOBase):
        return 4
    return 3 if id(kind) in BUFFERS else 2


def _from_outside(function, *arguments):
    """Calls a function that is written in C. Warnings ascribe what it does to nobody, as when the interpreter ends."""
    OUTSIDE["function"] = function
    OUTSIDE["arguments"] = arguments
    exec(CALL, OUTSIDE)


def _is_plain(kind):
    """Whether things of this kind never have anything to do at the end: it has no finaliser, and nobody can give it one."""
    return FLAGS(kind) & (MADE_AT_RUN_TIME | IMMUTABLE) != MADE_AT_RUN_TIME and _finalizer(kind) is None


def _finalizer(kind):
    try:
        # As the interpreter looks: a metaclass is not asked.
        return GENERATOR if kind is GENERATOR else type.__getattribute__(kind, "__del__")
    except AttributeError:
        return None


def _status_of(exit, leave_behind):
    """The status that a SystemExit asks for; a text is written to stderr. leave_behind: called with an error on the way."""
    code = exit.code
    if code is None:
        return 0
    if isinstance(code, int):
        if -(2**63) <= code < 2**63:
            return int(code) & 0xFF
        leave_behind(OverflowError("Python int too large to convert to C long"))
        return 0xFF
    broken = None
    try:
        _write_stderr(str(code))
    except BaseException as error:
        broken = error
    _write_stderr("\n")
    if broken is not None:
        leave_behind(broken)
    return 1


def _write_stderr(text):
    stream = sys.__dict__.get("stderr")
    try:
        if stream is None:
            posix.write(2, text.encode("utf-8", "backslashreplace"))
        else:
            stream.write(text)
    except BaseException:
        pass


def _is_closed(stream):
    try:
        return bool(stream.closed)
    except BaseException:
        return False


def _unraisable_arguments_type():
    """The type of what sys.unraisablehook takes. It has no name, but can be caught in the act."""

    class Raising:
        def __del__(self):
            raise Exception

    seen = []
    hook = sys.unraisablehook
    sys.unraisablehook = lambda arguments: seen.append(type(arguments))
    Raising()
    sys.unraisablehook = hook
    return seen[0]


FOLDER = __file__.rpartition("/")[0] + "/_"
LAST_EXC = sys.version_info >= (3, 12)
LEAVES_BEHIND = (3, 12) <= sys.version_info < (3, 12, 8) or (3, 13) <= sys.version_info < (3, 13, 1)
WORDED = sys.version_info >= (3, 13)
GENERATOR = type(0 for _ in ())
# Whatever a metaclass answers.
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
