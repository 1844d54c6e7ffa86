"""An interactive session: a bare interpreter whose standard input is a terminal.

What comes before the first prompt is done here, as CPython's `pymain_run_python` does it. The loop is the interpreter's
own: it begins one by itself after a program that has set PYTHONINSPECT, which it reads when the program has ended. The
program is PYTHONSTARTUP. From 3.13 on that loop is a Python program, `_pyrepl`, unless it is told to be the old one; 3.13
runs it as `__main__`, later versions call it with the `__main__` that there is.
"""

import posix
import sys

from . import main_part
from .environment import current
from .request import decode, read_file

VARIABLE = b"PYTHONINSPECT"


def is_wanted(main):
    """Whether the program is to come from a terminal. main: a command_line.Main."""
    return main.kind == "stdin" and _is_at_terminal()


def _is_at_terminal():
    if sys.flags.interactive:
        return True  # by its word
    try:
        return posix.isatty(0)
    except OSError:
        return False


def follows():
    """Whether a session follows the program, by -i or PYTHONINSPECT. Loads what that loads before the program. Raises
    main_part.Fallback."""
    if not sys.flags.inspect or not _is_at_terminal():
        return False
    _load_editor()
    return True


def call_of(module):
    """Says what the interpreter says first. Returns a function that runs PYTHONSTARTUP, if any, in this `__main__`.

    Raises main_part.Fallback where the interpreter would not begin a session, or the line editor has looked for its terminal
    too early.
    """
    environment = current()
    if sys.flags.ignore_environment:
        raise main_part.Fallback("the program is an interactive session")
    _load_editor()
    if _uses_pyrepl():
        from _pyrepl import main

        if not _is_known(main):
            raise main_part.Fallback("the program is an interactive session of a Python that is not known yet")
    if not sys.flags.quiet:
        text = "Python %s on %s\n" % (sys.version, sys.platform)
        if not sys.flags.no_site:
            text += 'Type "help", "copyright", "credits" or "license" for more information.\n'
        posix.write(2, text.encode())
    Hook(module)
    return _startup(environment.get(b"PYTHONSTARTUP"), module)


def _load_editor():
    if "readline" in sys.modules:
        raise main_part.Fallback("the program is an interactive session, but readline was loaded without a terminal")
    for name in ("readline", "rlcompleter"):
        try:
            __import__(name)
        except ImportError:
            break


def _startup(path, module):
    if not path:
        return int
    name = decode(path)
    try:
        source = read_file(path)
    except OSError as error:
        posix.write(2, b"Could not open PYTHONSTARTUP\n")
        return main_part.raising(type(error)(error.errno, error.strerror, name))
    main_part.as_file(module.__dict__, name, main_part.SourceFileLoader("__main__", name))
    try:
        code = compile(source, name, "exec", 0, True, **main_part.OF_MAIN)
    except (SyntaxError, ValueError) as error:
        return main_part.raising(error.with_traceback(None))
    return main_part.function(code, module.__dict__)


class Hook:
    """Takes the place of `sys.__interactivehook__`, which the interpreter calls when it has seen the variable, so that
    nobody else sees it."""

    def __init__(self, module):
        self.module = module
        self.original = sys.__dict__.get("__interactivehook__")
        sys.__interactivehook__ = self
        if not sys.flags.inspect:
            posix.putenv(VARIABLE, b"1")

    def __call__(self):
        if not sys.flags.inspect:
            posix.unsetenv(VARIABLE)
        for name in ("__file__", "__cached__"):
            self.module.__dict__.pop(name, None)
        if self.original is None:
            del sys.__interactivehook__
        else:
            sys.__interactivehook__ = self.original
            self.original()
        if _uses_pyrepl():
            _ready_pyrepl(self.module.__dict__)


def _uses_pyrepl():
    return sys.version_info >= (3, 13) and not current().get(b"PYTHON_BASIC_REPL")


def _is_known(main):
    """Whether a start without a program begins this `_pyrepl.main` as _ready_pyrepl expects."""
    code = main.interactive_console.__code__
    return RUN_AS_MAIN in code.co_consts if RUNS_AS_MAIN else "pythonstartup" in code.co_varnames


def _ready_pyrepl(names):
    """Makes `_pyrepl` begin as in a start without a program: after one it would run PYTHONSTARTUP by itself. Where it is run as
    `__main__` it leaves the names of that."""
    from _pyrepl import main

    if main.CAN_USE_PYREPL and "PYTHONSTARTUP" in main.os.environ:
        main.os = WithoutStartup(main)
    if not RUNS_AS_MAIN:
        return
    spec = sys.modules["_frozen_importlib"]._find_spec("_pyrepl.__main__", sys.modules["_pyrepl"].__path__)
    names.update(__spec__=spec, __loader__=spec.loader, __package__=spec.parent)
    names.update(__file__=spec.origin, __cached__=spec.cached)
    if not main.CAN_USE_PYREPL:
        names[RUN_AS_MAIN] = main.interactive_console


class WithoutStartup:
    """Takes the place of `os` in `_pyrepl.main` until that has looked up PYTHONSTARTUP, which was run already."""

    def __init__(self, module):
        self.module = module
        self.os = module.os

    def __getattr__(self, name):
        return getattr(self.os, name)

    def getenv(self, name):
        if name != "PYTHONSTARTUP":
            return self.os.getenv(name)
        self.module.os = self.os
        return None


RUNS_AS_MAIN = sys.version_info < (3, 14)
RUN_AS_MAIN = "__pyrepl_interactive_console"
