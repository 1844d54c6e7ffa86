"""An interactive session: a bare interpreter whose standard input is a terminal.

This does what CPython's `pymain_run_python` does before the first prompt. The loop is the interpreter's own: it starts by itself after a
program that has set PYTHONINSPECT, which the interpreter reads when the program has ended. The program is PYTHONSTARTUP. From 3.13 on, the
loop is a Python program, `_pyrepl`, unless the old one is requested; 3.13 runs it as `__main__`, later versions call it with the existing
`__main__`.
"""

import posix
import sys

from . import main_part
from .environment import current
from .request import decode, read_file

VARIABLE = b"PYTHONINSPECT"


def is_wanted(main):
    """Returns whether the program comes from a terminal. main: a command_line.Main."""
    return main.kind == "stdin" and _is_at_terminal()


def _is_at_terminal():
    if sys.flags.interactive:
        return True  # the option says so
    try:
        return posix.isatty(0)
    except OSError:
        return False


def follows():
    """Returns whether a session follows the program, by -i or PYTHONINSPECT. Loads the modules that a session loads before the program.
    Raises main_part.Fallback."""
    if not sys.flags.inspect or not _is_at_terminal():
        return False
    _load_editor()
    return True


def call_of(module):
    """Prints the interpreter's banner. Returns a function that runs PYTHONSTARTUP, if any, in this `__main__`.

    Raises main_part.Fallback where the interpreter would not start a session, or the line editor has looked for its terminal too early.
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
    """Replaces `sys.__interactivehook__`, which the interpreter calls after it has read the variable, so that other code does not see the
    variable."""

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
    """Returns whether a start without a program begins this `_pyrepl.main` as _ready_pyrepl expects."""
    code = main.interactive_console.__code__
    return RUN_AS_MAIN in code.co_consts if RUNS_AS_MAIN else "pythonstartup" in code.co_varnames


def _ready_pyrepl(names):
    """Lets `_pyrepl` begin as in a start without a program: after a program it would run PYTHONSTARTUP itself. Where it runs as `__main__`,
    it keeps the names of that."""
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
    """Replaces `os` in `_pyrepl.main` until that has looked up PYTHONSTARTUP, which has already run."""

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
