"""The end of a thawed process: nothing observable is lost, but the frozen heap is not torn down.

Follows Py_RunMain and Py_FinalizeEx step by step, up to where they free everything: of that, only what came after the thaw
is released (see release.py).
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
    """How this process will end. Made before the program can change anything."""

    def __init__(self):
        self._unraisable = _unraisable_arguments_type()
        self.release = Release(self._ignore, self._unraisable, trampoline.KINDS)
        self._status = 0
        self._interrupted = False
        self._atexit = None
        self.from_file = False
        # Whether this is the rehearsal of a new image: what the program has registered for its end is not done then, but for exit
        # handlers in a process that is confined, so that they can do nothing to anybody else.
        self.rehearses = False
        self.is_confined = False
        self.telling = None  # the Telling of an image of the store
        self.archive = None  # its BootArchive
        self.spans = None  # see explained.py
        self.session = False  # whether the interpreter goes on to one
        self.inspected = False  # whether one comes after the program, however it ends
        self.script_names = None  # those of `__main__`, if the interpreter takes the name of a script from it then

    def settle(self):
        """Notes what is in the frozen heap that has something to do at the end. To be called before the last garbage collection."""
        self._atexit = sys.modules.get("atexit")
        self.release.settle()
        if self.telling is not None:
            self.telling.settle()

    def warm_up(self):
        """See freeze_run.Freeze. What the end does it cannot do, but it can go the way there."""
        trampoline.Trampoline(int, list.clear)
        self._news()
        if self.archive is not None:
            self.archive.end()
        try:
            sys.stderr.flush()
        except trampoline.Ended:
            pass

    def leave(self, holder):
        """Ends the process as the interpreter does after the main part. A trampoline.Trampoline calls it, last thing.

        holder: a list with the exception that the main part ended with, or None; it is emptied, so that nobody
        hangs on to the exception. Exit handlers see no frame of the front end: they are called after this has returned.
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
        if self.spans is not None:
            self.spans.step("exit", "exit handlers")
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
        news = ()
        if self.spans is not None:
            self.spans.tell()  # before it is released
        try:
            news = self._news()
            if not self._finalize():
                status = FLUSH_FAILED
            if self.archive is not None:
                self.archive.end()
        except BaseException:
            pass  # of the front end itself: nothing of that is for those who use the program
        finally:
            if self._interrupted:
                _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
                posix.kill(posix.getpid(), _signal.SIGINT)
                status = 128 + _signal.SIGINT
            elif news:
                self.telling.tell(news)
            # The freezer then writes out the C library's own streams.
            call(END, b"stop" if self.rehearses else b"")
            posix._exit(status)

    def _news(self):
        """What there is to tell of this process; see telling.py."""
        if self.telling is None or self.rehearses or self._interrupted:
            return ()
        try:
            return self.telling.news()
        except BaseException:
            return ()

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
        """PyErr_WriteUnraisable, or PyErr_FormatUnraisable where that is used for the occasion."""
        message = f"Exception ignored {WORDS.get(occasion, 'on')} {occasion}" if occasion and WORDED else None
        trace = error.__traceback__
        trace = None if trace is None else trace.tb_next
        # The hook of CPython 3.15 shows the error's own.
        error.__traceback__ = trace
        try:
            sys.unraisablehook(self._unraisable((type(error), error, trace, message, culprit)))
        except BaseException:
            pass

def _give_signals_back():
    """From here on no handler of the program is called: what has one gets the kernel's default action."""
    for number in range(1, _signal.NSIG):
        try:
            if callable(_signal.getsignal(number)):
                _signal.signal(number, _signal.SIG_DFL)
        except BaseException:
            pass  # one that came just now


def _wants_session():
    """Whether the program wants an interactive session after it, by setting PYTHONINSPECT on a terminal."""
    loaded = sys.modules.get("os")
    try:
        names = posix.environ if loaded is None else loaded.environ._data
        return bool(names.get(b"PYTHONINSPECT")) and not sys.flags.ignore_environment and posix.isatty(0)
    except (AttributeError, OSError):
        return False


def _status_of(exit, leave_behind):
    """The status that a SystemExit stands for; a text is written to stderr. leave_behind: called with an error on the way."""
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


FOLDER = __file__.rpartition("/")[0] + "/"
LAST_EXC = sys.version_info >= (3, 12)
LEAVES_BEHIND = (3, 12) <= sys.version_info < (3, 12, 8) or (3, 13) <= sys.version_info < (3, 13, 1)
WORDED = sys.version_info >= (3, 13)
# How a message goes on before some occasions.
WORDS = {"flushing sys.stdout": "while"} if sys.version_info >= (3, 14) else {}
