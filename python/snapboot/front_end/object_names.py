"""Names for objects where two boots are compared (object_paths.py): made from their contents, never from their addresses."""

import sys
from _blake2 import blake2b


def digest(content):
    """Returns a short text that identifies a value, itself a text."""
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def id_free_name(kind):
    module = getattr(kind, "__module__", None)
    return "%s.%s" % (module if type(module) is str else "?", kind.__qualname__)


def is_address(thing, kind):
    """Returns whether a number or bytes contain addresses, which differ in each boot: C code uses them as keys for its objects."""
    if kind is int:
        return not -LARGE < thing < LARGE
    if kind is not bytes or not thing or len(thing) % WORD:
        return False
    words = (int.from_bytes(thing[start : start + WORD], sys.byteorder) for start in range(0, len(thing), WORD))
    return any(LARGE <= word < ADDRESS_END for word in words)


def content_of_text(text):
    return text if isinstance(text, str) else "b:" + text.decode("latin-1")


# Larger numbers are addresses, which differ in each boot.
LARGE = 1 << 31
# The size of a word (bytes). Eight bytes of text, read as a number, are larger than any address of a program.
WORD = 8
ADDRESS_END = 1 << 47
