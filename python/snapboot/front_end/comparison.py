"""The contents of a process, in a form that can be compared with another boot: see crates/freeze programs/derived.rs.

Each text and number that the garbage collector can reach, with the secrets taken out, becomes a digest. Run this only in a process that is
not frozen, since it leaves many objects behind.
"""

import gc
import sys

from .holders_of_texts import TEXTS, UNTRACKED, front_end_objects, own_frames, referents
from .modules import NAMES, all_names, is_module

SIZE = 8


def digests(patterns, own):
    """Returns the digests of all contents, sorted. own: ids of objects to leave out."""
    digest = _digest()
    found = set()
    for _, content in contents(patterns, own | {id(found)}):
        found.add(digest(content))
    return b"".join(sorted(found))


def named(patterns, own, suspects):
    """Describes in words who holds contents with one of these digests."""
    wanted = {suspects[at : at + SIZE] for at in range(0, len(suspects), SIZE)}
    digest = _digest()
    found = []
    for holder, content in contents(patterns, own | {id(wanted), id(found)}):
        if digest(content) in wanted:
            found.append((holder, content))
    return sorted({_describe(holder, content) for holder, content in found})


def _digest():
    blake2b = __import__("_blake2").blake2b
    return lambda content: blake2b(content, digest_size=SIZE).digest()


def contents(patterns, own):
    """Yields pairs of a holder and a value that it holds, as bytes."""
    own = own | front_end_objects() | own_frames()
    seen = set()
    stack = gc.get_objects()
    seen |= {id(stack), id(seen), id(own)}
    for tracked in stack:
        below = [tracked]
        while below:
            holder = below.pop()
            if id(holder) in own or id(holder) in seen:
                continue
            seen.add(id(holder))
            if type(holder) is dict:
                for name, value in list(holder.items()):
                    if type(name) is str and type(value) in SMALL:
                        yield (holder, name), _plain(patterns, name) + b"=" + repr(value).encode()
            for thing in referents(holder):
                kind = type(thing)
                if issubclass(kind, TEXTS):
                    yield (holder, thing), _plain(patterns, thing)
                elif kind in SMALL:
                    if kind in (int, float) and not -LARGE < thing < LARGE:
                        yield (holder, thing), repr(thing).encode()
                elif type(kind.__module__) is str and kind.__module__ in HASHES and hasattr(kind, "digest"):
                    yield (holder, thing), b"digest:" + _state(thing)
                elif not gc.is_tracked(thing) and kind in UNTRACKED:
                    below.append(thing)


def _state(thing):
    try:
        return thing.digest()
    except TypeError:
        return thing.digest(32)


def _plain(patterns, text):
    """Returns a text as bytes, with the values of secrets replaced by their names."""
    pieces = patterns.split(text)
    if pieces is None:
        return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    return b"".join([b"\0%d\0" % piece if type(piece) is int else _plain(patterns, piece) for piece in pieces])


def _describe(holder, content):
    """Describes in words who holds the value, and which line sets it."""
    thing, held = holder
    text = held if type(held) is str and b"=" in content and content.startswith(held.encode("utf-8", "replace")) else None
    for names in all_names():
        name = _name_in(names, thing, held, text)
        if name is not None:
            return "%s.%s%s" % (names.get("__name__"), name, _line(names, name.rpartition(".")[2]))
    kind = type(thing)
    if kind is dict:
        for owner in gc.get_referrers(thing):
            if getattr(owner, "__dict__", None) is thing:
                kind = type(owner)
    module = sys.modules.get(kind.__module__)
    name = next((name for name, value in thing.items() if value is held), text) if type(thing) is dict else None
    if name is not None:
        line = _line(NAMES(module), name) if is_module(module) else ""
        return "%s of an object of %s.%s%s" % (name, kind.__module__, kind.__qualname__, line)
    return "a value in an object of %s.%s" % (kind.__module__, kind.__qualname__)


def _name_in(names, thing, held, text):
    """Returns the name under which the namespace holds the value, directly or in one container or object; or None."""
    if names is thing:
        return next((name for name, value in names.items() if value is held), text)
    for name, value in list(names.items()):
        if value is thing:
            return name
        try:
            inner = None if issubclass(type(value), type(sys)) else value.__dict__
        except Exception:  # it has no attributes, or is a proxy for another object
            continue
        if inner is thing or type(inner).__name__ == "mappingproxy" and text in inner:
            attribute = next((key for key, item in inner.items() if item is held), text)
            return "%s.%s" % (name, attribute)
    return None


def _line(names, name):
    """Returns the line that sets a name of a module, as far as the source shows it. names: the module's namespace."""
    path = names.get("__file__")
    if type(path) is not str or not path.endswith(".py") or type(name) is not str:
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            before, found, after = line.partition(name)
            if found and "=" in after and not before.lstrip().startswith("#"):
                return " (%s:%d)" % (path, number)
    return " (%s)" % path


SMALL = (bool, int, float, type(None))
LARGE = 1 << 31
HASHES = ("_hashlib", "_md5", "_sha1", "_sha2", "_sha256", "_sha512", "_sha3", "_blake2", "hmac")
