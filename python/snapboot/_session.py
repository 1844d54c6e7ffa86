"""An interactive session: a bare interpreter whose standard input is a terminal.

What comes before the first prompt is done here, as CPython's `pymain_run_python` does it. The loop is the interpreter's
own: it begins one by itself after a program that has set PYTHONINSPECT, which it reads when the program has ended. The
program is PYTHONSTARTUP.
"""

import posix
import sys

from . import _main, _plan

VARIABLE = b"PYTHONINSPECT"


def is_wanted(main):
    """Whether the program is to come from a terminal. main: an _arguments.Main."""
    if main.kind != "stdin":
        return False
    try:
        return posix.isatty(0)
    except OSError:
        return False


def call_of(module):
    """Says what the interpreter says first. Returns a function that runs PYTHONSTARTUP, if any, in this `__main__`.

    Raises _main.Fallback where the interpreter would not begin a session, or the line editor has looked for its terminal
    too early.
    """
    environment = _environment()
    if sys.flags.ignore_environment or VARIABLE in environment or UNLIKE:
        raise _main.Fallback("the program is an interactive session")
    if "readline" in sys.modules:
        raise _main.Fallback("the program is an interactive session, but readline was loaded without a terminal")
    for name in ("readline", "rlcompleter"):
        try:
            __import__(name)
        except ImportError:
            break
    if not sys.flags.quiet:
        text = "Python %s on %s\n" % (sys.version, sys.platform)
        if not sys.flags.no_site:
            text += 'Type "help", "copyright", "credits" or "license" for more information.\n'
        posix.write(2, text.encode())
    Hook(module)
    return _startup(environment.get(b"PYTHONSTARTUP"), module)


def _startup(path, module):
    if not path:
        return int
    name = _plan.decode(path)
    try:
        source = _plan.read_file(path)
    except OSError as error:
        posix.write(2, b"Could not open PYTHONSTARTUP\n")
        return _main.raising(type(error)(error.errno, error.strerror, name))
    try:
        code = compile(source, name, "exec", 0, True)
    except (SyntaxError, ValueError) as error:
        return _main.raising(error.with_traceback(None))
    module.__dict__["__file__"] = name
    module.__dict__["__cached__"] = None
    return _main.function(code, module.__dict__)


class Hook:
    """Takes the place of `sys.__interactivehook__`, which the interpreter calls when it has seen the variable, so that
    nobody else sees it."""

    def __init__(self, module):
        self.module = module
        self.original = sys.__dict__.get("__interactivehook__")
        sys.__interactivehook__ = self
        posix.putenv(VARIABLE, b"1")

    def __call__(self):
        posix.unsetenv(VARIABLE)
        for name in ("__file__", "__cached__"):
            self.module.__dict__.pop(name, None)
        if self.original is None:
            del sys.__interactivehook__
            return
        sys.__interactivehook__ = self.original
        self.original()


def _environment():
    loaded = sys.modules.get("os")
    return posix.environ if loaded is None else loaded.environ._data


# The session of 3.13 and later is a Python program of its own.
UNLIKE = sys.version_info >= (3, 13)
