"""Calls the program's main part with no Python frame beneath it, as the interpreter itself does.

A front end that is seen in `sys._getframe`, `inspect.stack`, in tracebacks and in `warnings.warn(..., stacklevel=2)` would make
a thawed program different from an ordinary one. So the front end returns from all its functions, and from `_freeze.py`
itself, and lets CPython call: after a script has run, it calls `sys.stderr.flush()`, from C.

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
        self.__dict__["flush"] = None  # so that what `first` refers to ends when its time has come
        self.then()


class Ended(BaseException):
    """Carries the exception that the main part ended with, as its context."""


class Trampoline:
    """Stands in for `sys.stderr` from the return of `_freeze.py` to the call of the main part."""

    def __init__(self, first, leave):
        """first: called without arguments, no frame beneath. leave: called with the exception it raised, or None; never
        returns."""
        self._stderr = sys.stderr
        self._ended = Ended()
        self._leave = leave
        self._outer = Then(Then(first, self._raise).close, self._finish)
        sys.stderr = self

    @property
    def flush(self):
        sys.stderr = self._stderr
        return self._outer.close

    def _raise(self):
        raise self._ended

    def _finish(self):
        ended = self._ended
        error = ended.__context__
        ended.__context__ = None
        leave = self._leave
        leave([error])
