"""What an import can change in the process for everybody: then it matters whether and when the program does it."""

import _signal
import posix
import sys


class State:
    """As it was at the last look."""

    def __init__(self):
        self._last = _state()

    def changes(self):
        """What has changed since the last look, in words."""
        last, self._last = self._last, _state()
        # What was not there before is as it is made, and nobody else's.
        return ["changes " + what for (what, old), (_, new) in zip(last, self._last) if old not in (new, None)]


def _state():
    modules = sys.modules
    root = getattr(modules.get("logging"), "root", None)
    collector = modules.get("gc")
    return (
        ("sys.path", list(sys.path)),
        ("sys.path_hooks", [id(hook) for hook in sys.path_hooks]),
        # What is added behind all others finds what nobody else does.
        ("sys.meta_path", id(sys.meta_path[0]) if sys.meta_path else None),
        ("sys.excepthook", id(sys.excepthook)),
        ("sys.displayhook", id(sys.displayhook)),
        ("a standard stream", (id(sys.stdin), id(sys.stdout), id(sys.stderr))),
        ("the recursion limit", sys.getrecursionlimit()),
        ("the filters of warnings", _broad_filters()),
        ("a signal handler", [_handler(number) for number in SIGNALS]),
        ("the current directory", _folder()),
        ("the names that are built in", len(modules["builtins"].__dict__)),
        ("the locale", _locale()),
        ("the root logger", (len(root.handlers), root.level) if root is not None else None),
        ("the garbage collector", (collector.get_threshold(), collector.isenabled()) if collector is not None else None),
    )


def _handler(number):
    handler = _signal.getsignal(number)
    return handler if type(handler) is int else id(handler)


def _broad_filters():
    """Those that concern more than one library's own warnings."""
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


def patchable():
    """The functions and classes of modules that are patched if anything is, by module and name."""
    found = {}
    for name in PATCHABLE:
        module = sys.modules.get(name)
        if module is not None:
            found[name] = {key: value for key, value in module.__dict__.items() if callable(value)}
    return found


def patched(before):
    """The first of these that is another one now; None if there is none."""
    for name, functions in before.items():
        module = sys.modules.get(name)
        if module is None:
            return name
        for key, value in functions.items():
            if module.__dict__.get(key) is not value:
                return "%s.%s" % (name, key)
    return None


SIGNALS = [number for number in range(1, _signal.NSIG) if number not in (9, 19, 32, 33)]
PATCHABLE = (
    *("builtins", "io", "inspect", "json", "os", "pathlib", "pickle", "queue", "select", "selectors", "shutil", "signal", "socket"),
    *("ssl", "subprocess", "sys", "tempfile", "threading", "time", "typing", "urllib.request", "warnings"),
)
