"""The boot archive of a thawed process: what its image lacks is imported from there, as in an ordinary start by `snapboot run`.

For images of the store alone, whose request names the file `archive` that switches one on. Its finder is frozen with the image, so that a
thaw has nothing to do for it: as in an ordinary start it opens the archive when the program imports something.
"""

import sys

from .command_line import parse
from .request import encode, read_file
from .search_path import absolute


class BootArchive:
    """A finder that opens the archive of this program after the thaw."""

    def __init__(self, request, context):
        """request: of the image. context: knows the arguments of a thawed process. Loads the finder. Raises OSError."""
        path = request.archive
        names = {"__builtins__": vars(sys.modules["builtins"]), "__name__": "snapboot.archive.run", "__file__": path}
        exec(compile(read_file(encode(path)), path, "exec", 0, True, 2), names)
        self._script = request.script
        self._main_index = request.main_index
        self._context = context
        self._finder = names["Finder"](path.rpartition("/run/")[0])
        self._finder.thawed_program = self._program
        self._has_room = names["has_room"]

    def settle(self):
        """Has imports served, from the thaw on. To be called right before the freeze, when no module is imported any more."""
        if self._has_room():
            sys.meta_path.insert(sys.meta_path.index(PathFinder), self._finder)

    def end(self):
        """Writes what the archive is to have besides. To be called when the program has ended."""
        if self._finder.flush is not None:
            self._finder.flush()

    def _program(self):
        """What tells the program from others: as `program` of archive/imports.py has it in an ordinary start."""
        main = parse(self._context.arguments[self._main_index :])
        if main.kind == "script":
            return self._script or absolute(main.value)
        return sys.prefix + "/" + (main.value if main.kind == "module" else "python")


PathFinder = sys.modules["_frozen_importlib_external"].PathFinder
