"""Values of variables, and the host's name, that record what a program compares them with.

Another start shows what a program makes of one other value. A program that compares the value with a text of its own
(`socket.gethostname() == "production"`) treats all values but that one alike. So one boot of a freeze has values of
the classes here, and a fact that was compared becomes an input. A part that the program cuts out of a value
(`host.split(".")[0]`) is watched, too; a text that it joins is an ordinary text."""

import sys
from opcode import opname

from .reads import LIBRARY, SITE, reader_and_place
from .start_form import PATH

# A text with fewer letters and digits means nothing by itself: "/", "~" or "".
FEWEST = 2
# Code that keeps paths looks them up in tables.
PATHS = (b"HOME", PATH)
# Instructions that put a value into a table.
PUTS = ("STORE_SUBSCR", "BUILD_MAP", "BUILD_CONST_KEY_MAP", "MAP_ADD", "DICT_UPDATE", "BUILD_SET", "SET_ADD", "SET_UPDATE")
ORDER = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
SEARCHES = ("__contains__", "startswith", "endswith", "find", "rfind", "index", "rindex", "count")
CUTS = ("split", "rsplit", "partition", "rpartition", "replace", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix")
FORMS = ("lower", "upper", "casefold", "swapcase", "title", "capitalize", "splitlines", "__getitem__", "encode", "decode")


class Comparisons:
    """Records comparisons.

    facts: the values of this boot by name, as bytes; more may be added. found: for each fact that was compared, the
    first text and place."""

    def __init__(self, facts):
        self.facts = facts
        self.found = {}
        self._types = {str: self._watched_type(str), bytes: self._watched_type(bytes)}

    def watched(self, name, value):
        """Returns a text or bytes that replaces a fact's value."""
        if name not in self.facts or type(value) not in self._types:
            return value
        watched = self._types[type(value)](value)
        watched.fact = name
        return watched

    def _record_comparison(self, name, others):
        if name in self.found:
            return
        frame = sys._getframe(2)
        reader, place = _program_at(frame)
        if reader is not None:
            other = next(filter(self._counts, others), None)
            # Python's own modules compare with texts that are not values, such as "unknown".
            if other is not None and not (reader.startswith(LIBRARY) and other in frame.f_code.co_consts):
                self.found[name] = "a comparison with %.40r at %s" % (other, place)

    def _record_look_up(self, name):
        frame = sys._getframe(2)
        if opname[frame.f_code.co_code[frame.f_lasti]] in PUTS:
            return
        reader, place = _program_at(frame)
        if reader is not None and not reader.startswith(LIBRARY):
            self.found.setdefault(name, "a look-up in a table at %s" % place)

    def _counts(self, other):
        """Returns whether a text is unrelated to the values of this boot."""
        if isinstance(other, str):
            other = str.encode(other, "utf-8", "surrogateescape")
        elif not isinstance(other, (bytes, bytearray)):
            return False
        text = bytes(other)
        return sum([part.isalnum() for part in text.decode("latin-1")]) >= FEWEST and not any(
            [value and (value in text or text in value) for value in self.facts.values()]
        )

    def _watched_type(self, base):
        comparisons = self

        class Watched(base):
            def __hash__(self):
                if self.fact not in PATHS:
                    comparisons._record_look_up(self.fact)
                return base.__hash__(self)

            def __reduce_ex__(self, _protocol):
                return base, (base.__add__(self, base()),)

        def comparing(method):
            def function(self, *args, **kwargs):
                others = args[:1] + tuple(kwargs.values())
                comparisons._record_comparison(self.fact, others[0] if others and type(others[0]) is tuple else others)
                return comparisons._part(self.fact, method(self, *args, **kwargs))

            return function

        def cutting(method):
            return lambda self, *args, **kwargs: comparisons._part(self.fact, method(self, *args, **kwargs))

        for names, kind in ((ORDER + SEARCHES + CUTS, comparing), (FORMS, cutting)):
            for name in names:
                if hasattr(base, name):
                    setattr(Watched, name, kind(getattr(base, name)))
        Watched.fact = b""
        if base is bytes:
            Watched.__bytes__ = lambda self: self  # os.environb makes bytes of what it has
        return Watched

    def _part(self, name, part):
        """Returns the result of a value's method, watched like the value."""
        if type(part) in (list, tuple):
            return type(part)([self.watched(name, item) for item in part])
        return self.watched(name, part)


def _program_at(frame):
    """Returns the file whose code runs, and its FILE:LINE; None for both in the front end and in the module `site`."""
    reader, place = reader_and_place(frame)
    return (None, None) if reader in (None, SITE) else (reader, place.rpartition("/")[2])
