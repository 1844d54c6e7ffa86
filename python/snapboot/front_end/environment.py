"""`os.environ` after a thaw: the environment of the new process, with the changes that the program made while it booted."""

import posix
import sys

from . import process
from .channel import ENVIRONMENT, call, fields
from .copies import Copies
from .request import read_file

OWN_PREFIX = b"SNAPBOOT_"
IGNORED = b"SNAPBOOT_IGNORED"
EXPLAIN = b"SNAPBOOT_EXPLAIN"
LOCALE = b"LC_CTYPE"
HASH_SEED = b"PYTHONHASHSEED"


def current():
    """Returns the environment as the program sees it now, as a mapping of bytes: that behind `os.environ`, if `os` is loaded."""
    loaded = sys.modules.get("os")
    return posix.environ if loaded is None else loaded.environ._data


def changed(before):
    """Returns profile entries for the variables that differ. before: their former values, a mapping of bytes."""
    now = current()
    return [("changed", name) for name in sorted({*before, *now}) if before.get(name) != now.get(name)]


class Environment:
    """The environment as the interpreter knows it: `posix.environ`, and `os.environ` when `os` is loaded."""

    def __init__(self):
        """Create this first. Removes Snapboot's own variables, which the program must not see."""
        self.own = {}
        for name in [name for name in posix.environ if name.startswith(OWN_PREFIX)]:
            self.own[name] = posix.environ.pop(name)
            posix.unsetenv(name)
            if "os" in sys.modules:
                sys.modules["os"].environ._data.pop(name, None)
        if b"SNAPBOOT_HASHSEED" in self.own:
            # Set for the boot alone: see boot.rs of the command.
            for names in (posix.environ, sys.modules["os"].environ._data if "os" in sys.modules else {}):
                names.pop(HASH_SEED, None)
            posix.unsetenv(HASH_SEED)
        if sys.flags.interactive:
            self._forget_editor()
        self._booted_with = dict(posix.environ)
        self._leave_changes_of_site()
        # The interpreter itself sets this one when it replaces the locale C (PEP 538). settings.py renews it.
        text = posix.environ.get(LOCALE)
        self.coerced = text if text and LOCALE + b"=" + text not in process.started_with()[1] else None
        # Whether the program has read all of it while it booted.
        self.was_read = False
        self.python_path = None  # of the start, before the program's own changes
        self.explained = None  # the file to which this start writes its timings: see explained.py

    def _leave_changes_of_site(self):
        """Takes what start-up files of `site` have changed before this module was there for the program's own changes."""
        started = {name: value for name, _, value in (entry.partition(b"=") for entry in reversed(process.started_with()[1]))}
        try:
            entries = read_file(self.own[b"SNAPBOOT_FREEZE_DIR"] + b"/site").split(b"\0")
        except FileNotFoundError:
            return  # in tests without the command
        for key, _, value in (entry.partition(b"=") for entry in entries):
            if key == b"site_variable":
                self._booted_with.pop(value, None)
                if value in started:
                    self._booted_with[value] = started[value]
            elif key == b"event":
                # A variable that was removed has been looked up, and this boot began with it for that reason.
                _, _, name, *_ = fields(value)
                if name in started and name not in posix.environ:
                    self._booted_with[name] = started[name]

    def _forget_editor(self):
        """Removes the entry that kept an interactive interpreter from loading its line editor (see boot.rs of the command)."""
        value = self.own.get(b"SNAPBOOT_PYTHONPATH")
        for names in (posix.environ, sys.modules["os"].environ._data if "os" in sys.modules else {}):
            names.pop(b"PYTHONPATH", None)
            if value is not None:
                names[b"PYTHONPATH"] = value
        posix.unsetenv(b"PYTHONPATH") if value is None else posix.putenv(b"PYTHONPATH", value)
        folder = self.own[b"SNAPBOOT_FREEZE_DIR"].decode(errors="surrogateescape") + "/editor"
        sys.path[:] = [entry for entry in sys.path if entry != folder]
        sys.path_importer_cache.pop(folder, None)
        sys.modules.pop("rlcompleter", None)

    def show(self, name, value):
        """Sets a variable that the program has looked up, as if the boot had started with it."""
        self._booted_with[name] = value

    def settle(self):
        """Records what the program has changed. Call right before the freeze."""
        before = self._booted_with
        self._data = now = current()
        self._settle_library(now)
        self._set = {name: value for name, value in now.items() if before.get(name) != value}
        self._removed = [name for name in before if name not in now]
        self._zone = now.get(b"TZ")
        own = (now, posix.environ, self._set, self.own)
        self._copies = Copies(before, own) if self.was_read else None

    def _settle_library(self, known):
        """Records how the C library's environment differs from Python's: by `os.putenv`, or by libraries written in C."""
        folder = self.own[b"SNAPBOOT_FREEZE_DIR"]
        path = folder + b"/c_environment"
        call(ENVIRONMENT, path)  # the freezer's code writes it
        self._library_set, self._library_removed = {}, []
        try:
            entries = read_file(path).split(b"\0")[:-1]
        except FileNotFoundError:
            return  # in tests without the freezer
        library = {name: value if equals else None for name, equals, value in (entry.partition(b"=") for entry in entries)}
        for name, value in library.items():
            # Variables of the start that somebody has looked up have no value here.
            if value is not None and known.get(name) != value and not name.startswith(OWN_PREFIX):
                self._library_set[name] = value
        self._library_removed = [name for name in known if name not in library]

    def own_objects(self):
        """Returns the ids of objects renewed here, and the values that the program has set, by name, in which texts are exchanged."""
        own = {id(self._data), id(posix.environ), id(self._booted_with)}
        return own, {"os.environ (set)": self._set, "putenv (set)": self._library_set}

    def renew(self, entries, settings=None):
        """Takes over the new process' environment. Returns the signals that must stay ignored. Raises Fallback.

        entries: a list of `NAME=VALUE` bytes. settings: the Settings to renew as well, if any.
        """
        names = posix.environ
        names.clear()
        for entry in entries:
            # If a name occurs twice, the first one counts. An entry without `=` is no variable.
            name, equals, value = entry.partition(b"=")
            if equals and name not in names:
                names[name] = value
        coerced = self.coerced if settings is None else settings.renew(names)
        if coerced is not None:
            names[LOCALE] = coerced
            posix.putenv(LOCALE, coerced)
        self.python_path = names.get(b"PYTHONPATH") or None
        ignored = names.pop(IGNORED, None)
        # Child processes must not inherit this.
        self.explained = names.pop(EXPLAIN, None)
        if self.explained is not None:
            posix.unsetenv(EXPLAIN)
        if self._copies is not None:
            self._copies.renew(names)
        data = self._data
        if data is not names:
            data.clear()
            data.update(names)
        for name, value in self._set.items():
            data[name] = value
            posix.putenv(name, value)
        for name in self._removed:
            if data.pop(name, None) is not None:
                posix.unsetenv(name)
        for name, value in self._library_set.items():
            posix.putenv(name, value)
        for name in self._library_removed:
            posix.unsetenv(name)
        if data.get(b"TZ") != self._zone:
            sys.modules["time"].tzset()
        self.data = data
        if ignored is None:
            return ()
        posix.unsetenv(IGNORED)
        return [int(number) for number in ignored.split(b",") if number]
