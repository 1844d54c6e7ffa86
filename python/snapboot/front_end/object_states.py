"""The state of C objects that their referents do not show, for object_paths.py. Use this only in a process that is not frozen."""

from _blake2 import blake2b


def opaque(thing, kind):
    """Returns what can be seen of a C object without referents."""
    try:
        with memoryview(thing) as view:
            return blake2b(bytes(view), digest_size=8).hexdigest()
    except Exception:
        pass
    if kind.__module__ in PLAIN:
        try:
            return repr(thing)
        except Exception:
            return None
    return None


def state(thing, kind):
    """Returns the state of C objects that their referents do not show: counters, positions, and the contents of buffers. Calls only methods
    of the interpreter's own types."""
    name = (kind.__module__, kind.__name__)
    try:
        if name in TOLD_BY_REPR:
            return repr(thing)
        if name in TOLD_BY_METHODS:
            return repr([getattr(kind, method)(thing) for method in TOLD_BY_METHODS[name]])
        if kind.__name__.endswith("iterator") and kind.__module__ == "builtins":
            return repr(kind.__reduce__(thing)[2:])
        if kind.__module__ in HASHES and "hexdigest" in kind.__dict__:
            return kind.hexdigest(thing)
        if name == ("collections", "deque"):
            return repr(thing.maxlen)
        if name in COMPRESSORS:
            return repr(kind.flush(kind.copy(thing)))
        if kind is GENERATOR and thing.gi_frame is not None:
            return repr((thing.gi_frame.f_lasti, thing.gi_frame.f_lineno))
    except Exception:
        pass
    return None


GENERATOR = type((value for value in ()))
# The text of these shows their state.
PLAIN = frozenset(("datetime", "decimal", "_decimal", "uuid", "zoneinfo", "fractions"))
# So does the `repr` of these, and of what their methods return; these methods have no effects.
TOLD_BY_REPR = frozenset((("builtins", "range"), ("itertools", "count"), ("decimal", "Context")))
TOLD_BY_METHODS = {
    ("_io", "StringIO"): ("getvalue", "tell"),
    ("_io", "BytesIO"): ("getvalue", "tell"),
    ("_thread", "lock"): ("locked",),
    ("random", "Random"): ("getstate",),
}
# These can be copied, and the copy can be run to its end.
COMPRESSORS = frozenset((("zlib", "Compress"), ("zlib", "Decompress")))
HASHES = frozenset(("_hashlib", "_md5", "_sha1", "_sha2", "_sha256", "_sha512", "_sha3", "_blake2"))
