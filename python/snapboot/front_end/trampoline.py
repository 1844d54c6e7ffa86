"""Calls the program's main part with no Python frame beneath it, as the interpreter itself does.

A front end that is seen in `sys._getframe`, `inspect.stack`, in tracebacks and in `warnings.warn(..., stacklevel=2)` would
make a thawed program different from an ordinary one. So the front end returns from all its functions, and from `freeze.py`
itself, and lets CPython call: after a script has run, it calls `sys.stderr.flush()` and then `sys.stdout.flush()`, from C.
The first is the main part, the second the exit handlers.

`close` of an `_io` object, which is written in C too, does the rest: it calls the object's `flush`, puts an exception
of it aside, then sets an attribute, and chains the exception to the one that is raised there.
"""

import _io
import sys


class Then(_io._IOBase):
    """Its `close()` calls `first`, and `then` afterwards, whatever became of `first`."""

    def __init__(self, first, then):
        self.__dict__["flush"] = first
        self.__dict__["then"] = then

    def __setattr__(self, name, value):
        self.__dict__[name] = value  # closed: nobody closes it once more
        self.__dict__["flush"] = None  # so that what `first` refers to ends when its time has come
        self.then()


class Ended(BaseException):
    """Carries the exception that the main part ended with, as its context."""


class Trampoline:
    """Stands in for `sys.stderr` from the return of `freeze.py` to the call of the main part."""

    def __init__(self, first, leave):
        """first: called without arguments, no frame beneath. leave: called with the exception it raised, or None; when it
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
    """Stands in for a stream of `sys` until it is flushed: that calls something else, and brings the stream back."""

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
    """To be called at the end of a Trampoline's `leave`: both are called after its return, `first` with no frame beneath it,
    and what it raises is forgotten; `then` never returns."""
    KEPT.append(StandIn("stdout", Then(first, then).close))


KEPT = []  # the interpreter does not hold on to what it flushes
# What is running when the process ends.
KINDS = (Then, Ended, Trampoline, StandIn)
