"""What is in objects in C that their referents do not tell, for object_paths.py. To be used in a process that is not frozen."""

from _blake2 import blake2b


def opaque(thing, kind):
    """What can be seen of an object in C that leads nowhere."""
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
    """The state of objects in C that their referents do not tell: counters, positions, and what is in buffers. Nothing but methods of
    the interpreter's own types is called."""
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
# Of these a text tells the state.
PLAIN = frozenset(("datetime", "decimal", "_decimal", "uuid", "zoneinfo", "fractions"))
# So does it of these, and of these what methods tell, all of them without an effect.
TOLD_BY_REPR = frozenset((("builtins", "range"), ("itertools", "count"), ("decimal", "Context")))
TOLD_BY_METHODS = {
    ("_io", "StringIO"): ("getvalue", "tell"),
    ("_io", "BytesIO"): ("getvalue", "tell"),
    ("_thread", "lock"): ("locked",),
    ("random", "Random"): ("getstate",),
}
# What has copies that may be brought to their end.
COMPRESSORS = frozenset((("zlib", "Compress"), ("zlib", "Decompress")))
HASHES = frozenset(("_hashlib", "_md5", "_sha1", "_sha2", "_sha256", "_sha512", "_sha3", "_blake2"))
