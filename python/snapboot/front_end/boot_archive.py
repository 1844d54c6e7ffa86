"""The boot archive of a thawed process: what its image lacks is imported from there, as in an ordinary start by `snapboot run`.

For images of the store alone, whose request names the file `archive` that switches one on. Nothing is opened, nor looked at, before the
program imports something after the thaw: until then there is the finder that waits for that, as in an ordinary start.
"""

import sys

from .request import encode, read_file
from .search_path import absolute


class BootArchive:
    """A finder that opens the archive of this program."""

    def __init__(self, request):
        """request: of the image. Loads what waits. Raises OSError."""
        path = request.archive
        names = {"__builtins__": vars(sys.modules["builtins"]), "__name__": "snapboot.archive.run", "__file__": path}
        exec(compile(read_file(encode(path)), path, "exec", 0, True, 2), names)
        self._script = request.script
        self._finder = names["Finder"](path.rpartition("/run/")[0], None)
        self._has_room = names["has_room"]

    def begin(self, main):
        """Has imports served from now on. main: the Main of this start."""
        if not self._has_room():
            return
        self._finder.thawed_program = self._program(main)
        sys.meta_path.insert(sys.meta_path.index(PathFinder), self._finder)

    def end(self):
        """Writes what the archive is to have besides. To be called when the program has ended."""
        if self._finder.flush is not None:
            self._finder.flush()

    def _program(self, main):
        """What tells the program from others: as `program` of archive/imports.py has it in an ordinary start."""
        if main.kind == "script":
            return self._script or absolute(main.value)
        return sys.prefix + "/" + (main.value if main.kind == "module" else "python")


PathFinder = sys.modules["_frozen_importlib_external"].PathFinder
