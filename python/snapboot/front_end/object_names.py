"""How objects are named where two boots are compared (object_paths.py): by what is in them, and never by where they lie."""

import sys
from _blake2 import blake2b


def digest(content):
    """A short text that stands for a value, which is a text."""
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def id_free_name(kind):
    module = getattr(kind, "__module__", None)
    return "%s.%s" % (module if type(module) is str else "?", kind.__qualname__)


def is_address(thing, kind):
    """Whether a number or bytes have addresses, which are others in each boot: C code keeps its objects by them."""
    if kind is int:
        return not -LARGE < thing < LARGE
    if kind is not bytes or not thing or len(thing) % WORD:
        return False
    words = (int.from_bytes(thing[start : start + WORD], sys.byteorder) for start in range(0, len(thing), WORD))
    return any(LARGE <= word < ADDRESS_END for word in words)


def content_of_text(text):
    return text if isinstance(text, str) else "b:" + text.decode("latin-1")


# Larger numbers are addresses, which are others in each boot.
LARGE = 1 << 31
# Of a word (bytes). A word of text is larger than any address of a program.
WORD = 8
ADDRESS_END = 1 << 47
