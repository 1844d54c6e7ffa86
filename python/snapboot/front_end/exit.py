"""The end of a thawed process: nothing observable is lost, but the frozen heap is not torn down.

Follows Py_RunMain and Py_FinalizeEx step by step up to the point where they free everything. Of that, only objects created after the thaw
are released (see release.py).
"""

import _signal
import posix
import sys

from . import trampoline
from .channel import END, call
from .release import Release
from .stdio import is_closed

FLUSH_FAILED = 120


class Exit:
    """Controls how this process ends. Created before the program can change anything."""

    def __init__(self):
        self._unraisable = _unraisable_arguments_type()
        self.release = Release(self._ignore, self._unraisable, trampoline.KINDS)
        self._status = 0
        self._interrupted = False
        self._atexit = None
        self.from_file = False
        # Whether this is the rehearsal of a new image. It skips what the program has registered for its end, except exit handlers in a
        # confined process, where they cannot affect anybody else.
        self.rehearses = False
        self.is_confined = False
        self.load_report = None  # the LoadReport of an image of the store
        self.archive = None  # its BootArchive
        self.spans = None  # see explained.py
        self.session = False  # whether the interpreter enters an interactive session
        self.inspected = False  # whether a session follows the program, however that ends
        self.script_names = None  # of `__main__`, if the session takes the script's name from it

    def settle(self):
        """Finds the objects of the frozen heap that have work to do at the end. Call before the last garbage collection."""
        self._atexit = sys.modules.get("atexit")
        self.release.settle()
        if self.load_report is not None:
            self.load_report.settle()

    def warm_up(self):
        """See freeze_run.Freeze. Runs as much of the way to the end as it can without ending."""
        trampoline.Trampoline(int, list.clear)
        self._new_entries()
        if self.archive is not None:
            self.archive.end()
        try:
            sys.stderr.flush()
        except trampoline.Ended:
            pass

    def leave(self, holder):
        """Ends the process as the interpreter does after the main part. A trampoline.Trampoline calls it last.

        holder: a list with the exception that ended the main part, or None. It is emptied, so that nothing keeps the exception alive. Exit
        handlers see no frame of the front end: they are called after this has returned.
        """
        if self._begin(holder):
            return
        if self.rehearses:
            self.release.forget()
            if not self.is_confined:
                self._end()
        atexit = self._atexit or sys.modules.get("atexit")
        if atexit is None:
            self._end()
        trampoline.call_next(atexit._run_exitfuncs, self._end)

    def leave_now(self, error):
        """Does the same from anywhere, after an error. Never returns."""
        self._begin([error])
        try:
            if "atexit" in sys.modules:
                sys.modules["atexit"]._run_exitfuncs()
        except BaseException:
            pass  # already shown
        self._end()

    def _begin(self, holder):
        """Runs everything up to the exit handlers. Returns True if the interpreter itself goes on with an interactive session."""
        error = holder.pop()
        if self.spans is not None:
            self.spans.step("exit", "exit handlers")
        if self.from_file:
            # Only after a script, the interpreter flushes before it looks at the result.
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
        """Runs everything after the exit handlers. Never returns."""
        status = self._status
        entries = ()
        if self.spans is not None:
            self.spans.write()  # before it releases its objects
        try:
            entries = self._new_entries()
            if not self._finalize():
                status = FLUSH_FAILED
            if self.archive is not None:
                self.archive.end()
        except BaseException:
            pass  # an error of the front end itself: the program's users must not see it
        finally:
            if self._interrupted:
                _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
                posix.kill(posix.getpid(), _signal.SIGINT)
                status = 128 + _signal.SIGINT
            elif entries:
                self.load_report.write(entries)
            # The freezer then flushes the C library's own streams.
            call(END, b"stop" if self.rehearses else b"")
            posix._exit(status)

    def _new_entries(self):
        """Returns the entries of this process that the profile should get; see load_report.py."""
        if self.load_report is None or self.rehearses or self._interrupted:
            return ()
        try:
            return self.load_report.new_entries()
        except BaseException:
            return ()

    def _report(self, error):
        """Prints an exception as PyErr_Print does. Returns the exit status."""
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
        """Keeps an error that the interpreter does not clear: if it cannot shut down `threading`, it takes this one for the cause."""
        if LEAVES_BEHIND and "threading" not in sys.modules:
            self._ignore(error, None, "threading shutdown")

    def _finalize(self):
        """Does the work of Py_FinalizeEx up to where it frees everything. Returns False if output was lost."""
        kept = self._flush(sys.__dict__.get("stdout"), True)
        kept = self._flush(sys.__dict__.get("stderr"), False) and kept
        _give_signals_back()
        self.release.run()
        self._flush(sys.__dict__.get("__stdout__"), False)
        self._flush(sys.__dict__.get("__stderr__"), False)
        return kept

    def _flush(self, stream, tell):
        if stream is None or is_closed(stream):
            return True
        try:
            stream.flush()
        except BaseException as error:
            if tell:
                self._ignore(error, None if WORDED else stream, "flushing sys.stdout")
            return False
        return True

    def _ignore(self, error, culprit, occasion=None):
        """Does the work of PyErr_WriteUnraisable, or of PyErr_FormatUnraisable where the interpreter uses that."""
        message = f"Exception ignored {WORDS.get(occasion, 'on')} {occasion}" if occasion and WORDED else None
        trace = error.__traceback__
        trace = None if trace is None else trace.tb_next
        # The hook of CPython 3.15 shows the traceback of the error itself.
        error.__traceback__ = trace
        try:
            sys.unraisablehook(self._unraisable((type(error), error, trace, message, culprit)))
        except BaseException:
            pass

def _give_signals_back():
    """Restores the kernel's default action for each signal with a handler: no handler of the program runs from here on."""
    for number in range(1, _signal.NSIG):
        try:
            if callable(_signal.getsignal(number)):
                _signal.signal(number, _signal.SIG_DFL)
        except BaseException:
            pass  # one that arrived just now


def _wants_session():
    """Returns whether the program asks for an interactive session after it, by setting PYTHONINSPECT on a terminal."""
    loaded = sys.modules.get("os")
    try:
        names = posix.environ if loaded is None else loaded.environ._data
        return bool(names.get(b"PYTHONINSPECT")) and not sys.flags.ignore_environment and posix.isatty(0)
    except (AttributeError, OSError):
        return False


def _status_of(exit, leave_behind):
    """Returns the status of a SystemExit, and prints its text to stderr if it has one. leave_behind: called with an error on the way."""
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


def _unraisable_arguments_type():
    """Returns the type of the argument of sys.unraisablehook. It has no public name, so one is captured from a call."""

    class Raising:
        def __del__(self):
            raise Exception

    seen = []
    hook = sys.unraisablehook
    sys.unraisablehook = lambda arguments: seen.append(type(arguments))
    Raising()
    sys.unraisablehook = hook
    return seen[0]


FOLDER = __file__.rpartition("/")[0] + "/"
LAST_EXC = sys.version_info >= (3, 12)
LEAVES_BEHIND = (3, 12) <= sys.version_info < (3, 12, 8) or (3, 13) <= sys.version_info < (3, 13, 1)
WORDED = sys.version_info >= (3, 13)
# Words of a message that depend on the occasion.
WORDS = {"flushing sys.stdout": "while"} if sys.version_info >= (3, 14) else {}
