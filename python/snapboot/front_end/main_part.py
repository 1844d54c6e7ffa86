"""Prepares `__main__` and the program's main part, so that it can be called as CPython would call it."""

import posix
import sys

from . import code_lines
from .request import encode, read_all, read_file
from .search_path import absolute, importer_of

IGNORE_COOKIE = 0x10  # PyCF_IGNORE_COOKIE: the argument of -c is text, not a file

function = type(lambda: None)


class Fallback(Exception):
    """Raised for what only an ordinary start can do. Its text says why."""


def new_main_module():
    """Puts an empty `__main__` in place of the front end's own, as the interpreter makes it at its start."""
    module = type(sys)("__main__")
    names = module.__dict__
    names["__loader__"] = BuiltinImporter
    if HAS_ANNOTATIONS:
        names["__annotations__"] = {}
    names["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = module
    return module


def script_name(given, script):
    """Returns the name of a script for `__file__` and tracebacks: its absolute path; up to CPython 3.8, the path as given.

    given: as in argv. script: its absolute path where the image knows it, else None.
    """
    if script is None:
        script = absolute(given)
    if ABSOLUTE_SCRIPT or absolute(given) != script:
        return script
    return given


class Prepared:
    """A script that was read and compiled before the freeze. filename and code, and whether it is a folder or archive.

    is_left: whether each start reads and compiles it instead.
    """

    def __init__(self, given, script, filename=None, is_left=False):
        self.script = script
        self.is_left = is_left
        self.filename = filename or script_name(given, script)
        self.is_package = importer_of(script) is not None
        self.source = None if self.is_package or is_left else read_file(encode(script))
        self.code = None if self.source is None else self._compile()

    def named(self, given, is_link=False):
        """Returns the same script under the name that a thaw gives it. The name differs outside the directory of the freeze, and where a
        link leads to the image (crates/launcher link.rs). Raises Fallback."""
        name = script_name(given, None if is_link else self.script)
        if name == self.filename:
            return self
        if self.is_package:
            raise Fallback("the program is a directory or archive, and its path led there from another directory")
        try:
            return Prepared(given, self.script, name, self.is_left)
        except OSError:
            raise Fallback(CANNOT_COMPILE % "OSError") from None

    def _compile(self):
        # A warning must appear at each start, so a script that warns is compiled at each start.
        filters = sys.modules["_warnings"].filters
        filters.insert(0, ("error", None, Warning, None, 0))
        try:
            return compile_script(self.source, self.filename)
        except Exception:
            return None
        finally:
            del filters[0]


def check_syntax(main, prepared):
    """Raises the SyntaxError that would end each start of the program, so that nobody freezes a program that can never run.

    An image that reports the error at every start would also be correct, but the user is watching the freeze. main: a command_line.Main.
    prepared: its script, if it is one.
    """
    if main.kind == "code":
        source, filename, flags = main.value + "\n", "<string>", IGNORE_COOKIE
    elif prepared is not None and prepared.source is not None and prepared.code is None:
        source, filename, flags = prepared.source, prepared.filename, 0
    else:
        return
    filters = sys.modules["_warnings"].filters
    filters.insert(0, ("ignore", None, Warning, None, 0))  # warnings that -W turns into errors are raised at the start
    try:
        compile_script(source, filename) if flags == 0 else compile(source, filename, "exec", flags, True, **OF_MAIN)
    except SyntaxError:
        raise
    except Exception:
        pass  # only an ordinary start may be able to
    finally:
        del filters[0]


def compile_script(source, filename):
    """Compiles a script. Raises SyntaxError, or Fallback if it is not Python source."""
    if b"\0" in source or filename.endswith(".pyc") or source[:2] == PYC_MAGIC:
        raise Fallback(filename + " is not Python source")
    return compile(source, filename, "exec", 0, True, **OF_MAIN)


def call_of(main, module, prepared=None):
    """Returns a function without arguments that runs the main part. It has the main part's own code, so no other frame appears.

    main: a command_line.Main. module: the `__main__`. prepared: the script as it was when freezing, if this is it. Raises Fallback.
    """
    kind = main.kind
    names = module.__dict__
    if kind == "module":
        return _runpy(main.value, True)
    if kind == "code":
        return function(_compile_code(main.value), names)
    if kind == "stdin":
        code, error = _compile_stdin()
        if error is not None:
            return raising(error)
        return function(code, as_file(names, "<stdin>", None))
    if prepared is not None:
        filename = prepared.filename
        if prepared.is_package:
            return _runpy("__main__", False)
        code = prepared.code
    else:
        filename = script_name(main.value, None)
        if importer_of(filename) is not None:
            return _runpy("__main__", False)
        code = None
    if code is None:
        try:
            code = compile_script(read_file(encode(filename)), filename)
        except (OSError, SyntaxError, ValueError, OverflowError) as error:
            raise Fallback(CANNOT_COMPILE % type(error).__name__) from None
    return function(code, as_file(names, filename, SourceFileLoader("__main__", filename)))


def as_file(names, filename, loader):
    """Sets the names in `__main__` of a program that comes from a file. Returns its names."""
    names["__file__"] = filename
    if HAS_CACHED:
        names["__cached__"] = None
    if loader is not None:
        names["__loader__"] = loader
    return names


def _compile_code(text):
    text += "\n"
    try:
        text.encode()
        code = compile(text, "<string>", "exec", IGNORE_COOKIE, True, **OF_MAIN)
    except (SyntaxError, ValueError, OverflowError) as error:
        raise Fallback(CANNOT_COMPILE % type(error).__name__) from None
    if code_lines.IS_USED:
        code_lines.register(code, text)
    return code


def _compile_stdin():
    try:
        start = posix.lseek(0, 0, 1)
    except OSError:
        start = None
    try:
        if posix.isatty(0):
            raise Fallback("the program is an interactive session")
        return compile_script(read_all(0), "<stdin>"), None
    except (Fallback, OSError, SyntaxError, ValueError) as error:
        if start is not None:
            posix.lseek(0, start, 0)
        elif isinstance(error, SyntaxError):
            # The input cannot be read a second time, so the error ends the program.
            return None, error.with_traceback(None)
        if isinstance(error, Fallback):
            raise
        raise Fallback(CANNOT_COMPILE % type(error).__name__) from None


def raising(error):
    """Returns a function that raises this error."""
    return function(_raise.__code__, globals(), "<module>", (error,))


def _raise(error):
    raise error


def _runpy(name, as_module):
    import runpy

    run = runpy._run_module_as_main
    return function(run.__code__, run.__globals__, run.__name__, (name, as_module))


CANNOT_COMPILE = "the program cannot be read or compiled (%s)"
# CPython makes the script's path absolute since 3.9.
ABSOLUTE_SCRIPT = sys.version_info >= (3, 9)
# From 3.14 on, a module gets them on demand.
HAS_ANNOTATIONS = sys.version_info < (3, 14)
# Up to 3.14, modules have `__cached__` besides that of their spec.
HAS_CACHED = sys.version_info < (3, 15)
# From 3.15 on, compiler warnings belong to the module whose code is compiled.
OF_MAIN = {"module": "__main__"} if sys.version_info >= (3, 15) else {}
BuiltinImporter = sys.modules["_frozen_importlib"].BuiltinImporter
SourceFileLoader = sys.modules["_frozen_importlib_external"].SourceFileLoader
PYC_MAGIC = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER[:2]
