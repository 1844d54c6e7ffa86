"""Records which renewable settings (settings.py) the program reads while it boots: what it keeps may depend on them.

The attributes of `sys.flags` and of the standard streams belong to C types. While the program boots, properties replace them in the
dictionaries of these types, which the garbage collector shows. All of this is undone before the freeze.
"""

import _io
import gc
import sys

from . import modules, references
from .reads import LIBRARY, reader_and_place
from .settings import ALL, ALWAYS_UTF8, DONT_WRITE, ENCODING, LOCALE, OF_STREAMS, UNBUFFERED, ask


class SettingsReads:
    """Records reads from construction until `stop()`.

    reads: the Reads, which watch functions. settings: the Settings.
    """

    def __init__(self, reads, settings):
        self.settings = settings
        # The settings that may have influenced what the program keeps, by name, and who has read them.
        self.bound = {}
        self._patched = []
        self._flag = None
        self._added = None
        if not settings.renewed:
            return
        self._texts = {id(stream.text) for stream in settings.streams.all}
        self._patch(type(sys.flags), {"dont_write_bytecode": [DONT_WRITE], **OF_LOCALE}, {})
        of_texts = {"encoding": [ENCODING], "errors": [*BY_LOCALE, ENCODING], "line_buffering": [UNBUFFERED], "write_through": [UNBUFFERED]}
        self._patch(_io.TextIOWrapper, of_texts, {"reconfigure": OF_STREAMS, "detach": OF_STREAMS})
        if not self._is_watching():
            self.bound = dict.fromkeys(ALL, ("", ""))
            return
        if sys.__dict__.get("dont_write_bytecode") is settings.began:
            self._flag = sys.dont_write_bytecode = Flag(settings.began).watched_by(self)
        self._watch_locale(reads)

    def _watch_locale(self, reads):
        """Watches the functions that return the locale of text."""
        if "_locale" not in sys.modules:
            self._added = __import__("_locale")
            self._holders = sys.getrefcount(self._added)
        names = sys.modules["_locale"].__dict__
        for name, note in (
            ("setlocale", self._asks_for_locale),
            ("nl_langinfo", self._asks_for_encoding),
            ("getencoding", self._reads_locale),
            ("_get_locale_encoding", self._reads_locale),
        ):
            if name in names:
                reads.watch(names, name, note)
        # Both return a spelling that follows the mode.
        if SPELLINGS_DIFFER:
            reads.watch(_io.__dict__, "text_encoding", self._asks_for_text_encoding)
            if "io" in sys.modules:
                sys.modules["io"].text_encoding = _io.text_encoding
        if "os" in sys.modules and not ALWAYS_UTF8:
            reads.watch(sys.modules["os"].__dict__, "device_encoding", self._reads_locale)

    def stop(self):
        """Removes the properties and wrappers. Call before `Reads.stop`."""
        for kind, name, original in self._patched:
            _names_of(kind)[name] = original
            ask(b"modified=%x" % id(kind))
        self._patched = []
        self._put_flag_back()
        if SPELLINGS_DIFFER and self.settings.renewed and self._has_texts():
            self._record([LOCALE], None)

    def report_to(self, report):
        """Adds to the report which settings are renewed, which are fixed, and where these were read."""
        # In an ordinary start, only the program would have loaded it.
        if self._added is not None and "locale" not in sys.modules and sys.getrefcount(self._added) <= self._holders:
            sys.modules.pop("_locale", None)
        self._added = None
        for name in ALL:
            if name in self.settings.renewed - self.settings.tried:
                report.add("renews", name)
            elif name in self.bound:
                report.add_record("bound", name, self.bound[name][1])
            if name in self.settings.tried:
                report.add("renewable", name)

    def _put_flag_back(self):
        flag, self._flag = self._flag, None
        if flag is None:
            return
        plain = self.settings.began
        self.settings.sets_flag = sys.__dict__.get("dont_write_bytecode") is flag
        flag.reads = None
        for names in modules.all_names():
            for name in [name for name, value in names.items() if value is flag]:
                if names is not sys.__dict__ or name != "dont_write_bytecode":
                    self.bound.setdefault(DONT_WRITE, ("", ""))
                names[name] = plain
        if sys.getrefcount(flag) > references.OWN_VARIABLE:
            self.bound.setdefault(DONT_WRITE, ("", ""))

    def _has_texts(self):
        """Returns whether the program has a text file open whose encoding may be spelled differently in another mode."""
        texts = [thing for thing in gc.get_objects() if type(thing) is _io.TextIOWrapper and id(thing) not in self._texts]
        return any(not text.closed and text.encoding.lower() == "utf-8" for text in texts)

    def _record(self, names, frame):
        """Records a read that settings of these names influence. frame: where, or None if unknown."""
        reader, place = reader_and_place(frame) if frame is not None else ("", "")
        if reader is not None:
            for name in names:
                self.bound.setdefault(name, (reader, place))

    def _asks_for_locale(self, frame, arguments):
        if len(arguments) < 2 or arguments[1] is None:
            # Before the program chooses them, no code does.
            if arguments and arguments[0] not in OF_TEXT:
                return
        self._reads_locale(frame, ())

    def _asks_for_encoding(self, frame, arguments):
        if not arguments or arguments[0] == CODESET:
            self._reads_locale(frame, ())

    def _asks_for_text_encoding(self, frame, arguments):
        if arguments and arguments[0] is None and frame.f_code.co_filename not in READERS_OF_FILES:
            self._reads_locale(frame, ())

    def _reads_locale(self, frame, _):
        code = frame.f_code
        if not SPELLINGS_DIFFER and code.co_name == "getpreferredencoding" and code.co_filename in PREFERRED:
            return  # equal in all renewed locales
        while frame.f_back is not None and frame.f_code.co_filename in PREFERRED:
            frame = frame.f_back
        self._record([LOCALE], frame)

    def _patch(self, kind, attributes, methods):
        """Replaces attributes and methods of a type with recording ones. Both arguments: the settings that influence each, by name."""
        names = _names_of(kind)
        for name, settings in attributes.items():
            if name in names:
                self._put(kind, name, self._property(kind, names[name], settings))
        for name, settings in methods.items():
            self._put(kind, name, self._method(names[name], settings))
        ask(b"modified=%x" % id(kind))

    def _put(self, kind, name, replacement):
        names = _names_of(kind)
        self._patched.append((kind, name, names[name]))
        names[name] = replacement

    def _property(self, kind, original, settings):
        read = original.__get__
        is_flag = kind is not _io.TextIOWrapper

        def value(thing):
            frame = sys._getframe(1)
            if is_flag:
                if settings[0] is not LOCALE or frame.f_code.co_filename not in READERS_OF_MODE:
                    self._reads_locale(frame, ()) if settings[0] is LOCALE else self._record(settings, frame)
            elif id(thing) in self._texts:
                self._record(settings, frame)
            elif SPELLINGS_DIFFER and settings[0] is ENCODING:
                self._record([LOCALE], frame)
            return read(thing, kind)

        return property(value, getattr(original, "__set__", None), None, original.__doc__)

    def _method(self, original, settings):
        def method(thing, *args, **kwargs):
            if id(thing) in self._texts:
                self._record(settings, sys._getframe(1))
            return original(thing, *args, **kwargs)

        return method

    def _is_watching(self):
        """Returns whether look-ups find the replacements."""
        before, self.bound = self.bound, {}
        watched = self._record
        seen = []
        self._record = lambda names, frame: seen.extend(names)
        try:
            values = sys.flags.utf8_mode, sys.flags.dont_write_bytecode, sys.__stdout__.encoding, sys.__stdout__.errors
        finally:
            self._record = watched
            self.bound = before
        return len(values) == 4 and {*BY_LOCALE, DONT_WRITE, ENCODING} <= set(seen)


class Flag(int):
    """A truth value that records who reads it."""

    def watched_by(self, reads):
        """Sends its reads to these SettingsReads. Returns itself."""
        self.reads = reads
        return self

    def _is_read(self):
        if self.reads is not None:
            self.reads._record([DONT_WRITE], sys._getframe(2))

    def __bool__(self):
        # The import system reads it each time, and keeps nothing of it.
        if not sys._getframe(1).f_code.co_filename.startswith("<frozen importlib"):
            self._is_read()
        return int(self) != 0

    def __repr__(self):
        self._is_read()
        return repr(int(self) != 0)

    def __eq__(self, other):
        self._is_read()
        return int(self) == other

    def __hash__(self):
        self._is_read()
        return hash(int(self))

    def __reduce__(self):
        self._is_read()
        return bool, (int(self),)


def _names_of(kind):
    """Returns the dictionary of a type itself."""
    return gc.get_referents(kind.__dict__)[0]


# The settings that influence the locale of text; none where all locales have UTF-8 mode.
BY_LOCALE = [] if ALWAYS_UTF8 else [LOCALE]
OF_LOCALE = {} if ALWAYS_UTF8 else {"utf8_mode": BY_LOCALE}
# From CPython 3.11 on, UTF-8 mode says "utf-8" where other locales say "UTF-8"; from 3.15 on, all have this mode.
SPELLINGS_DIFFER = sys.version_info >= (3, 11) and not ALWAYS_UTF8
# LC_CTYPE and LC_ALL of the C library.
OF_TEXT = (0, 6)
# CODESET of glibc's langinfo.h.
CODESET = 14
PREFERRED = (LIBRARY + "locale.py", LIBRARY + "_bootlocale.py")
# These open a file with the answer, or a pipe.
READERS_OF_FILES = tuple(LIBRARY + "pathlib" + file for file in (".py", "/_local.py", "/_abc.py", "/__init__.py"))
READERS_OF_MODE = (LIBRARY + "_bootlocale.py", LIBRARY + "subprocess.py")
