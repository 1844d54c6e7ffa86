"""State of the whole process that an import can change: if it does, it matters whether and when the program runs the import."""

import _signal
import posix
import sys

from . import lost_threads
from .stdio import STREAMS, is_closed

# Names of functions and classes that may change at any time, such as "typing._check_generic", as recipes say.
HARMLESS_PATCHES = set()


class State:
    """The state as of the last look."""

    def __init__(self, count_written):
        """count_written: returns how many variables of the environment have been set."""
        self._count_written = count_written
        self._patches = Patches()
        self._last = self._now()

    def changes(self):
        """Returns the changes since the last look, in words."""
        last, self._last = self._last, self._now()
        # A new value (None before) is in its initial state, and belongs to the import.
        found = ["changes " + what for (what, old), (_, new) in zip(last, self._last) if old not in (new, None)]
        return found + ["changes " + name for name in self._patches.found()]

    def _now(self):
        return (("variables of the environment", self._count_written()), *_state())


class Patches:
    """The functions and classes of those modules that programs patch most often."""

    def __init__(self):
        self._functions = {}  # by module name, as of the module's load
        list(self.found())

    def found(self):
        """Yields the names of those that have changed since the last look, but for harmless ones."""
        for name in PATCHABLE:
            module = sys.modules.get(name)
            if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
                continue
            names = module.__dict__
            if name not in self._functions:
                self._functions[name] = {key: value for key, value in names.items() if callable(value)}
            known = self._functions[name]
            for key, value in list(known.items()):
                if names.get(key) is not value:
                    known[key] = names.get(key)
                    if "%s.%s" % (name, key) not in HARMLESS_PATCHES:
                        yield "%s.%s" % (name, key)


def _state():
    modules = sys.modules
    root = getattr(modules.get("logging"), "root", None)
    collector = modules.get("gc")
    return (
        ("sys.path", list(sys.path)),
        ("sys.path_hooks", [id(hook) for hook in sys.path_hooks]),
        # A finder added behind all others finds only what they do not.
        ("sys.meta_path", id(sys.meta_path[0]) if sys.meta_path else None),
        ("sys.excepthook", id(sys.excepthook)),
        ("sys.displayhook", id(sys.displayhook)),
        ("a standard stream", [_stream(number, *names) for number, names in enumerate(STREAMS)]),
        ("the recursion limit", sys.getrecursionlimit()),
        ("the filters of warnings", _broad_filters()),
        ("a signal handler", [_handler(number) for number in SIGNALS]),
        ("the current directory", _folder()),
        ("the names that are built in", len(modules["builtins"].__dict__)),
        ("the locale", _locale()),
        ("the root logger", (len(root.handlers), root.level) if root is not None else None),
        ("the running threads", lost_threads.lost()),
        ("the garbage collector", (collector.get_threshold(), collector.isenabled()) if collector is not None else None),
    )


def _stream(number, name, original):
    text = sys.__dict__.get(name)
    try:
        status = posix.fstat(number)
    except OSError:
        return id(text), None
    own = sys.__dict__[original]
    return id(text), own is not None and is_closed(own), status.st_dev, status.st_ino


def _handler(number):
    handler = _signal.getsignal(number)
    return handler if type(handler) is int else id(handler)


def _broad_filters():
    """Returns the filters that concern more than one library's own warnings."""
    filters = sys.modules["_warnings"].filters
    return [
        (one[0], one[2]) for one in filters if one[1] is None and one[3] is None and one[2].__module__ == "builtins"
    ]


def _folder():
    try:
        return posix.getcwd()
    except OSError:
        return None


def _locale():
    module = sys.modules.get("_locale")
    return module.setlocale(module.LC_ALL, None) if module is not None else None


# State that differs in every start.
OF_A_START = ("a standard stream", "the current directory", "the running threads")
SIGNALS = [number for number in range(1, _signal.NSIG) if number not in (9, 19, 32, 33)]
PATCHABLE = (
    *("builtins", "io", "inspect", "json", "os", "pathlib", "pickle", "queue", "select", "selectors", "shutil", "signal", "socket"),
    *("ssl", "subprocess", "sys", "tempfile", "threading", "time", "typing", "urllib.request", "warnings"),
)
