"""The directories of PYTHONPATH in `sys.path`: a start with another value than the boot had gets its own directories there, as from its
interpreter.

A boot as another start (evidence.py) has two made-up directories there. It shows whether anything else follows from them, and where they
stand after the boot. The launcher compares the look-ups along them (crates/inputs facts/searched.rs).
"""

import posix
import sys

from . import modules
from .main_part import Fallback
from .report import write_file
from .request import decode, read_file
from .search_path import importer_of

NAME = b"PYTHONPATH"


class PythonPath:
    """To be made before the program can change anything.

    path_entry: the entry of `sys.path` for the main part, which comes first, or None.
    """

    def __init__(self, path_entry):
        self.value = posix.environ.get(NAME) or None
        names = decode(self.value).split(":") if self.value else []
        first = 0 if path_entry is None else 1
        self._path_entry = path_entry
        self._own = tuple(sys.path[first : first + len(names)])
        self._others = tuple(sys.path[first + len(names) :])
        self._list = id(sys.path)
        self._searched = frozenset()
        self._place = None  # the index of the first of them; None where that is not known
        # Whether all of them are in the path as they are named. In an interactive start, the front end has already changed the path.
        ignores = sys.flags.ignore_environment or sys.flags.no_site or sys.flags.interactive
        self.is_known = not ignores and list(self._own) == names and len(set(names)) == len(names)

    def settle(self, importers, folder):
        """Records where they stand, and which look-ups used them. Call right before the freeze.

        importers: the Importers that watched the boot. folder: the control directory, through which a boot with such directories passes
        their place to the boots without any.
        """
        path, place = sys.path, folder + b"/place"
        # Code that removes entries may have removed some that only this start had.
        has_all = {*map(id, self._others)} <= {*map(id, path)}
        self.is_known &= has_all and id(path) == self._list
        self._others = ()
        if self._own:
            places = [index for index, entry in enumerate(path) if any(entry is own for own in self._own)]
            self.is_known &= places == list(range(places[0], places[0] + len(self._own))) if places else False
            if self.is_known:
                self._place = places[0]
                write_file(place, b"%d" % self._place)
        elif self.is_known:
            try:
                self._place = int(read_file(place))
            except OSError:
                return
        if self._place is None or not importers.are_all_in(path[self._place :]):
            self.is_known = False
        else:
            self._searched = importers.looked_up_in_any(path[self._place :])

    def report_to(self, report):
        """Reports what the image depends on instead of the variable."""
        if not self.is_known:
            report.add_record("held", NAME, b"sys.path")
        for name in sorted(self._searched):
            report.add("searched", name)
        self._searched = frozenset()

    def take_out(self):
        """Removes them from the path, in a process that is compared with others and not frozen."""
        if not self.is_known or self._place is None:
            return
        del sys.path[self._place : self._place + len(self._own)]
        for names in modules.all_names():
            parts = names.get("__path__")
            if type(parts).__name__ == "_NamespacePath" and "." not in parts._name:
                parts._last_parent_path = tuple(sys.path)  # the search is repeated when this differs

    def renew(self, value, folder):
        """Inserts those of this start. value: of the variable, or None. folder: the current directory (bytes), if the program has read
        that. Raises Fallback."""
        if self._place is None:
            raise Fallback("stale: PYTHONPATH has another value")
        path, cache = sys.path, sys.path_importer_cache
        entries = decode(value).split(":") if value else []
        del path[self._place : self._place + len(self._own)]
        for entry in self._own:
            cache.pop(entry, None)
        others = [entry for entry in path if entry is not self._path_entry]
        # The interpreter keeps only the first occurrence of each directory.
        if len(set(entries)) < len(entries) or any(entry in others for entry in entries):
            raise Fallback("stale: a directory of PYTHONPATH is in sys.path already")
        if folder is not None and any(is_related(entry, decode(folder)) for entry in entries):
            raise Fallback("stale: a directory of PYTHONPATH leads to the current directory, which the program has read")
        path[self._place : self._place] = entries
        for entry in entries:
            importer_of(entry)  # the interpreter has it from its first import on


def is_related(one, other):
    """Returns whether two absolute paths are the same, or one lies below the other."""
    one, other = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return one.startswith(other) or other.startswith(one)
