"""Calls the program's main part with no Python frame beneath it, as the interpreter itself does.

A front end that is visible in `sys._getframe`, `inspect.stack`, tracebacks and `warnings.warn(..., stacklevel=2)` would make a thawed
program differ from an ordinary one. So the front end returns from all its functions, and from `freeze.py` itself, and lets CPython make the
call: after a script has run, it calls `sys.stderr.flush()` and then `sys.stdout.flush()`, from C. The first call runs the main part, the
second the exit handlers.

`close` of an `_io` object, also written in C, does the rest: it calls the object's `flush`, keeps an exception of it, then sets an
attribute, and chains the exception to the one raised there.
"""

import _io
import sys


class Then(_io._IOBase):
    """`close()` calls `first`, and `then` afterwards, whatever happens in `first`."""

    def __init__(self, first, then):
        self.__dict__["flush"] = first
        self.__dict__["then"] = then

    def __setattr__(self, name, value):
        self.__dict__[name] = value  # closed: no one closes it again
        self.__dict__["flush"] = None  # releases what `first` refers to in time
        self.then()


class Ended(BaseException):
    """Carries the exception that ended the main part, as its context."""


class Trampoline:
    """Replaces `sys.stderr` from the return of `freeze.py` to the call of the main part."""

    def __init__(self, first, leave):
        """first: called without arguments, with no frame beneath. leave: called with the exception that `first` raised, or None; when it
        returns, the interpreter goes on to flush `sys.stdout`, see `call_next`."""
        self._ended = Ended()
        self._leave = leave
        self._stand_in = StandIn("stderr", Then(Then(first, self._raise).close, self._finish).close)

    def _raise(self):
        raise self._ended

    def _finish(self):
        ended = self._ended
        error = ended.__context__
        ended.__context__ = None
        leave = self._leave
        leave([error])


class StandIn:
    """Replaces a stream of `sys` until it is flushed: the flush calls something else, and restores the stream."""

    def __init__(self, name, call):
        self._name = name
        self._missing = name not in sys.__dict__
        self._stream = sys.__dict__.get(name)
        self._call = call
        sys.__dict__[name] = self

    @property
    def flush(self):
        if self._missing:
            del sys.__dict__[self._name]
        else:
            sys.__dict__[self._name] = self._stream
        return self._call


def call_next(first, then):
    """Call at the end of a Trampoline's `leave`. Both are called after its return: `first` with no frame beneath it, and its exception is
    dropped; `then` never returns."""
    KEPT.append(StandIn("stdout", Then(first, then).close))


KEPT = []  # the interpreter keeps no reference to what it flushes
# The methods of these run when the process ends.
KINDS = (Then, Ended, Trampoline, StandIn)
