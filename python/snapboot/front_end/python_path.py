"""The directories of PYTHONPATH in `sys.path`: a start with another value than the boot had gets its own there, as its interpreter does.

In a boot as another start (evidence.py) two made-up directories stand there. It shows whether anything else follows from them, and where
they are when the program has booted. The launcher compares what was looked up along them (crates/inputs facts/searched.rs).
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
        self._place = None  # where the first of them stands; None where that is not known
        # Whether they are all there as they are named. Interactive, the front end has changed the path already.
        ignores = sys.flags.ignore_environment or sys.flags.no_site or sys.flags.interactive
        self.is_known = not ignores and list(self._own) == names and len(set(names)) == len(names)

    def settle(self, importers, folder):
        """Notes where they stand, and what was looked up there. To be called right before the freeze.

        importers: the Importers that have seen the program boot. folder: the control directory, in which a boot that has such directories
        tells the place to those that have none.
        """
        path, place = sys.path, folder + b"/place"
        # Who leaves entries out may do so with some that no other start has had.
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

    def tell(self, report):
        """Reports what the image depends on in the place of the variable."""
        if not self.is_known:
            report.add_record("held", NAME, b"sys.path")
        for name in sorted(self._searched):
            report.add("searched", name)
        self._searched = frozenset()

    def take_out(self):
        """Makes the path what it is without them: in a process that is compared with others, and not frozen."""
        if not self.is_known or self._place is None:
            return
        del sys.path[self._place : self._place + len(self._own)]
        for names in modules.all_names():
            parts = names.get("__path__")
            if type(parts).__name__ == "_NamespacePath" and "." not in parts._name:
                parts._last_parent_path = tuple(sys.path)  # by which it notices that another one is to be searched

    def renew(self, value, folder):
        """Puts those of this start in place. value: of the variable, or None. folder: the current directory (bytes), if the program
        has read that. Raises Fallback."""
        if self._place is None:
            raise Fallback("stale: PYTHONPATH is another one")
        path, cache = sys.path, sys.path_importer_cache
        entries = decode(value).split(":") if value else []
        del path[self._place : self._place + len(self._own)]
        for entry in self._own:
            cache.pop(entry, None)
        others = [entry for entry in path if entry is not self._path_entry]
        # The interpreter leaves each directory in its first place only.
        if len(set(entries)) < len(entries) or any(entry in others for entry in entries):
            raise Fallback("stale: a directory of PYTHONPATH is in sys.path already")
        if folder is not None and any(is_related(entry, decode(folder)) for entry in entries):
            raise Fallback("stale: a directory of PYTHONPATH leads to the current directory, which the program has read")
        path[self._place : self._place] = entries
        for entry in entries:
            importer_of(entry)  # as the interpreter has it from its first import on


def is_related(one, other):
    """Whether two absolute paths are the same, or one lies below the other."""
    one, other = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return one.startswith(other) or other.startswith(one)
