"""Settings that an interpreter takes from its environment at its start, and that a thaw renews: the locale of text with UTF-8 mode,
PYTHONDONTWRITEBYTECODE, PYTHONIOENCODING and PYTHONUNBUFFERED.

A start with the same variables as the boot takes them from the image. In any other start the freezer, in this same process, sets what no
Python code can set (crates/freezer sys/renewal.rs). Only C, which Python replaces with UTF-8, and locales whose text is UTF-8 are renewed:
files, names and arguments read while booting have the same contents in all of them.
"""

import _codecs
import posix
import sys

from .channel import COERCED, HAS_OTHERS, IS_C, IS_CHOSEN, IS_TARGET, IS_UTF8, RENEW, call
from .main_part import Fallback
from .request import decode

LOCALE = "locale"
DONT_WRITE = "PYTHONDONTWRITEBYTECODE"
ENCODING = "PYTHONIOENCODING"
UNBUFFERED = "PYTHONUNBUFFERED"
ALL = (LOCALE, DONT_WRITE, ENCODING, UNBUFFERED)
# The settings that the standard streams follow.
OF_STREAMS = (LOCALE, ENCODING, UNBUFFERED)


class Settings:
    """Create this before the program can change anything.

    streams: the Streams. environment: the Environment. request: the Request.
    """

    def __init__(self, streams, environment, request):
        self.streams = streams
        self.coerced = environment.coerced
        self.began = sys.dont_write_bytecode
        # Whether the interpreter chose `sys.dont_write_bytecode`, and not the program.
        self.sets_flag = True
        booted = dict(posix.environ)
        if self.coerced is not None:
            del booted[b"LC_CTYPE"]
        self.booted = tuple(map(booted.get, VARIABLES))
        # The names of the settings that a thaw renews, if the image serves starts with other values at all.
        self.renewed = frozenset(ALL) if self._is_possible(booted, request) else frozenset()
        # Those that it renews only if other boots show that nothing depends on them.
        self.tried = frozenset()

    def _is_possible(self, variables, request):
        """Returns whether this interpreter is of a known kind and its settings can be changed: each change is tried."""
        options = request.argv[1 : request.main_index]
        if sys.flags.ignore_environment or any(set(option) & DECIDING for option in options):
            return False
        if any(variables.get(name) for name in (b"PYTHONUTF8", b"PYTHONCOERCECLOCALE", b"PYTHONLEGACYWINDOWSSTDIO")):
            return False
        flags = tuple(sys.flags)
        names = [name for name in dir(type(sys.flags)) if name in FLAGS]
        places = {name: _index(name) for name in names}
        if len(places) != len(FLAGS) or None in places.values():
            return False
        if ask(b"find=%x,%x,%x" % (id(sys.flags), places["dont_write_bytecode"], places["utf8_mode"])) < 0:
            return False
        state = ask(b"state")
        utf8_mode = _is_utf8_mode(state) or self.coerced is not None
        dont_write = _is_on(variables, DONT_WRITE)
        wanted = _streams(variables, utf8_mode, state)
        is_known = (utf8_mode, dont_write, dont_write) == (
            sys.flags.utf8_mode,
            sys.flags.dont_write_bytecode,
            sys.dont_write_bytecode,
        )
        if not is_known or state & HAS_OTHERS or not self.streams.are_as(_is_on(variables, UNBUFFERED), *wanted):
            return False
        return self._can_change(flags, places, dont_write, utf8_mode)

    def _can_change(self, flags, places, dont_write, utf8_mode):
        """Returns whether the flags can be changed without changing anything else."""
        expected = list(flags)
        expected[places["dont_write_bytecode"]] = 1 - dont_write
        expected[places["utf8_mode"]] = 1 - utf8_mode
        is_done = ask(b"flags=%d,%d" % (1 - dont_write, 1 - utf8_mode)) == 0
        changed = tuple(sys.flags)
        values = sys.flags.dont_write_bytecode, sys.flags.utf8_mode
        ask(b"flags=%d,%d" % (dont_write, utf8_mode))
        is_back = tuple(sys.flags) == flags
        return is_done and is_back and changed == tuple(expected) and values == (1 - dont_write, 1 - utf8_mode)

    def settle(self, bound):
        """Records what a thaw must leave alone. Call right before the freeze. bound: the settings that may have influenced what the program
        keeps, by name, with the reader and the place."""
        is_chosen = self.renewed and ask(b"state") & IS_CHOSEN
        # If the locale was only read, and not through streams that may have been changed, other boots may show that nothing depends on it.
        is_read = bound.get(LOCALE, ("", ""))[1] and ENCODING not in bound
        self.tried = {LOCALE} & self.renewed if is_read and not is_chosen else frozenset()
        self.renewed -= frozenset({*bound, LOCALE} if is_chosen else bound) - self.tried
        if self.renewed and not self.streams.are_own():
            self.renewed -= frozenset(OF_STREAMS)
        elif not self.streams.are_alone():
            self.renewed -= {UNBUFFERED}

    def renew(self, names):
        """Applies the settings of this environment that differ from the boot's. names: the environment, a mapping of bytes.

        Returns the value that the interpreter itself has set LC_CTYPE to, or None. Raises Fallback.
        """
        now = tuple(map(names.get, VARIABLES))
        if now == self.booted or not self.renewed:
            return self.coerced
        coerced, utf8_mode, state = self.coerced, bool(sys.flags.utf8_mode), ask(b"state")
        if LOCALE in self.renewed and now[:LOCALES] != self.booted[:LOCALES]:
            state = ask(b"python locale")
            if state < 0 or state & HAS_OTHERS or not state & (IS_C | IS_UTF8):
                raise Fallback("the locale is one that an image cannot take over")
            number = state // COERCED
            coerced = TARGETS[number - 1] if number else None
            utf8_mode = _is_utf8_mode(state)
        dont_write = bool(sys.flags.dont_write_bytecode)
        if DONT_WRITE in self.renewed:
            dont_write = _is_on(names, DONT_WRITE)
            if self.sets_flag:
                sys.dont_write_bytecode = dont_write
        if ask(b"flags=%d,%d" % (dont_write, utf8_mode)) < 0:
            raise Fallback("the flags of the interpreter cannot be changed")
        if OF_STREAMS[0] in self.renewed or ENCODING in self.renewed:
            try:
                self.streams.encode_as(*_streams(names, utf8_mode, state))
            except LookupError:
                raise Fallback("PYTHONIOENCODING names no encoding") from None
        is_unbuffered = _is_on(names, UNBUFFERED)
        if UNBUFFERED in self.renewed and is_unbuffered is not self.streams.unbuffered:
            self.streams.buffer(is_unbuffered)
            ask(b"unbuffered=%d" % is_unbuffered)
        return coerced


def ask(question):
    """Returns the freezer's answer; negative if it cannot answer."""
    answer = call(RENEW, question)
    return -1 if answer is None else int(answer)


def _index(name):
    """Returns the index of a flag in `sys.flags`; None if unknown."""
    for index, line in enumerate(repr(sys.flags).partition("(")[2].rstrip(")").split(", ")):
        if line.partition("=")[0] == name:
            return index
    return None


def _is_utf8_mode(state):
    """Returns whether the interpreter chooses UTF-8 mode in this state of the locale, without an option or variable for it."""
    return ALWAYS_UTF8 or bool(state & IS_C)


def _is_on(variables, name):
    """Returns whether a variable switches a flag on: as in CPython, by any text except a number 0."""
    text = variables.get(name.encode())
    if not text:
        return False
    digits = text.lstrip(b" \t\n\v\f\r")
    return (digits[1:] if digits[:1] in (b"+", b"-") else digits).strip(b"0") != b"" or not digits.strip(b"+-")


def _streams(variables, utf8_mode, state):
    """Returns encoding and errors of the standard streams, except the errors of standard error. Raises LookupError. state: of the locale.
    """
    encoding, _, errors = decode(variables.get(b"PYTHONIOENCODING", b"")).partition(":")
    if encoding and not errors:
        errors = "strict"
    if not errors:
        errors = "surrogateescape" if utf8_mode or state & (IS_C | IS_TARGET) else "strict"
    return _codecs.lookup(encoding or "utf-8").name, errors


ALWAYS_UTF8 = sys.version_info >= (3, 15)
FLAGS = ("dont_write_bytecode", "utf8_mode")
# Letters of options that set some of this, or that make the interpreter ignore the environment.
DECIDING = frozenset("BEIXiu")
# The order of the C library's categories, LC_ALL first. The locale of text follows the first three. Where Python replaces C with C.UTF-8,
# it takes the other categories from the environment as well.
VARIABLES = (b"LC_ALL", b"LC_CTYPE", b"LANG", b"LC_NUMERIC", b"LC_TIME", b"LC_COLLATE", b"LC_MONETARY", b"LC_MESSAGES")
VARIABLES += (b"LC_PAPER", b"LC_NAME", b"LC_ADDRESS", b"LC_TELEPHONE", b"LC_MEASUREMENT", b"LC_IDENTIFICATION")
LOCALES = len(VARIABLES)
VARIABLES += (b"PYTHONDONTWRITEBYTECODE", b"PYTHONIOENCODING", b"PYTHONUNBUFFERED")
TARGETS = (b"C.UTF-8", b"C.utf8", b"UTF-8")
