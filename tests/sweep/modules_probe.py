"""What can be seen of a module that was imported: a line for each of its names, with the value where that is made of plain data.

    python -c "$(cat modules_probe.py)" MODULE

Read by modules.py, which compares an ordinary start with one from an image in which MODULE was preloaded.
"""

import sys

MOST = 2000  # characters of one value
DEEPEST = 4


def shown(value, depth=0):
    """The value in words, without addresses: what is no plain data is shown by its type and name."""
    kind = type(value)
    if value is None or kind in (bool, int, float, complex, bytes, str, range, slice):
        return repr(value)
    if depth < DEEPEST:
        inner = [shown(item, depth + 1) for item in value] if kind in (list, tuple, set, frozenset) else None
        if kind in (set, frozenset):
            inner.sort()
        if kind is dict:
            inner = ["%s: %s" % (shown(key, depth + 1), shown(item, depth + 1)) for key, item in value.items()]
        if inner is not None:
            return "%s(%s)" % (kind.__name__, ", ".join(inner))
        if kind.__module__ not in ("builtins", "types") and isinstance(getattr(value, "__dict__", None), dict):
            return "%s %s" % (kind.__qualname__, shown(vars(value), depth + 1))
    return "<%s %s>" % (kind.__name__, getattr(value, "__qualname__", getattr(value, "__name__", "")))


def print_names(prefix, owner, module, depth=0):
    """A line for each name of a module, and of the classes that it defines."""
    for name, value in sorted(vars(owner).items(), key=lambda item: item[0]):
        if name in ("__builtins__", "__cached__", "__dict__", "__weakref__"):
            continue
        print("%s.%s = %s" % (prefix, name, shown(value)[:MOST]))
        if isinstance(value, type) and value.__module__ == module and depth < 2:
            print_names("%s.%s" % (prefix, name), value, module, depth + 1)


try:
    # Python shows what a main part imports that will go away, and a preload has imported it before.
    exec("__import__(name)", {"__name__": "probe", "name": sys.argv[1]})
except BaseException as error:
    print("%s: %s" % (type(error).__name__, error))
else:
    print_names(sys.argv[1], sys.modules[sys.argv[1]], sys.argv[1])
print("sys.argv = %r" % (sys.argv,))
for name in ("path", "flags", "warnoptions", "_xoptions", "prefix", "executable", "stdin", "stdout"):
    print("sys.%s = %r" % (name, getattr(sys, name)))
