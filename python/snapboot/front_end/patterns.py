"""Compiles the regular expressions of training runs before the freeze: `re` caches compiled patterns, so later starts find them."""

import _codecs
import sys

from .request import decode


def entries(variables):
    """Returns an entry `pattern` for each pattern that `re` has cached. Call at the end of a training run.

    A pattern that contains a variable's value may be a secret, and is useless for others. variables: those of the run's start (bytes).
    """
    found = []
    re = sys.modules.get("re")
    kept = getattr(re, "_cache", None)
    if type(kept) is dict:
        values = {bytes: [value for value in variables.values() if len(value) >= MIN_SIZE]}
        values[str] = list(map(decode, values[bytes]))
        for some in values.values():
            some += map(re.escape, some[:])
        for kind, pattern, flags in list(kept):
            if type(pattern) is kind in KINDS and type(flags) is int and not any(value in pattern for value in values[kind]):
                text = pattern if kind is str else pattern.decode("latin-1")
                found.append(("pattern", "%s %d %s" % (KINDS[kind], flags, _codecs.unicode_escape_encode(text)[0].decode())))
    return found


def load(texts):
    """Compiles the patterns. texts: values of such entries. A pattern that warns or fails is left to each start, which then does the same.

    Returns how many new patterns `re` has cached.
    """
    re = sys.modules.get("re")
    kept = getattr(re, "_cache", None)
    if type(kept) is not dict:
        return 0
    warned = []
    loaded = 0
    # A warning imports this first.
    warnings = sys.modules.get("warnings")
    sys.modules["warnings"] = stand_in = type(sys)("warnings")
    stand_in.warn = lambda *_, **__: warned.append(True)
    try:
        for kind, pattern, flags in map(_parse, texts):
            if (kind, pattern, flags) in kept:
                continue
            warned.clear()
            try:
                re._compile(pattern, flags)
            except Exception:
                continue
            if warned:
                for cache in (kept, getattr(re, "_cache2", {})):
                    cache.pop((kind, pattern, flags), None)
            else:
                loaded += 1
    finally:
        if warnings is None:
            del sys.modules["warnings"]
        else:
            sys.modules["warnings"] = warnings
    return loaded


def _parse(text):
    name, flags, escaped = text.split(" ", 2)
    pattern = _codecs.unicode_escape_decode(escaped)[0]
    return (str, pattern, int(flags)) if name == KINDS[str] else (bytes, pattern.encode("latin-1"), int(flags))


KINDS = {str: "str", bytes: "bytes"}
# Shorter values, such as 1, occur in many patterns by chance.
MIN_SIZE = 6
