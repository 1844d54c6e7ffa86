"""The boot archive of a thawed process: serves imports that the image lacks, as in an ordinary start by `snapboot run`.

Used for images of the store, whose request names the file `archive` that switches an archive on, and where a whole environment is enabled.
The finder is frozen with the image, so a thaw spends no time on it: as in an ordinary start, it opens the archive when the program imports
something.
"""

import sys

from .command_line import parse
from .request import encode, read_file
from .search_path import absolute


class BootArchive:
    """A finder that opens the archive of this program after the thaw."""

    def __init__(self, path, request, context, load_report):
        """Loads the finder. Raises OSError. path: the file that switches the archive on. request: the request of the image. context: the
        Context, which knows the arguments of a thawed process. load_report: the LoadReport, or None."""
        names = {"__builtins__": vars(sys.modules["builtins"]), "__name__": "snapboot.archive.run", "__file__": path}
        exec(compile(read_file(encode(path)), path, "exec", 0, True, 2), names)
        self._script = request.script
        self._main_index = request.main_index
        self._context = context
        self._finder = names["Finder"](path.rpartition("/run/")[0])
        self._finder.thawed_program = self._program
        if load_report is not None:
            self._finder.when_calm = load_report.report_early
        self._has_room = names["has_room"]

    def settle(self):
        """Serves imports from the thaw on. Call right before the freeze, when no more modules are imported."""
        if not self._has_room():
            return
        self._held = [place for place in PARSERS if place[0] in sys.modules]
        if self._held:
            self._held = list(_holders(self._held))
            self._finder.has_opened = self._pass_on
            # The next module may parse documents that are in the archive: an ordinary start opens it before it imports a parser.
            self._finder.few = 1
        sys.meta_path.insert(sys.meta_path.index(PathFinder), self._finder)

    def _pass_on(self):
        """Replaces references to the original parsers that were taken while the image was made."""
        for holder, name, parser, module, attribute in self._held:
            now = vars(sys.modules[module]).get(attribute) if module in sys.modules else None
            if now is None or now is parser:
                continue
            if name is None:
                holder.__setstate__((now, holder.args, holder.keywords, holder.__dict__))
            elif holder.get(name) is parser:
                holder[name] = now

    def end(self):
        """Writes what the archive should have in addition. Call after the program has ended."""
        if self._finder.flush is not None:
            self._finder.flush()

    def _program(self):
        """Returns what identifies the program: the `program` of archive/imports.py in an ordinary start."""
        main = parse(self._context.arguments[self._main_index :])
        if main.kind == "script":
            return self._script or absolute(main.value)
        return sys.prefix + "/" + (main.value if main.kind == "module" else "python")


def _holders(parsers):
    """Finds references to the parsers. Each is a module name and an attribute name, or a `functools.partial` object and None; followed by
    the parser, its module and its name there."""
    functions = [(vars(sys.modules[module]).get(name), module, name) for module, name in parsers]
    partial = getattr(sys.modules.get("functools"), "partial", None)
    for names in [vars(module) for module in sys.modules.values() if type(module) is type(sys)]:
        for name, value in names.items():
            for function, module, attribute in functions:
                if value is function and names is not vars(sys.modules[module]):
                    yield names, name, function, module, attribute
                elif type(value) is partial and value.func is function:
                    yield value, None, function, module, attribute


# Modules whose parsers the archive replaces, and the name of the parser.
PARSERS = (("yaml", "load"), ("tomllib._parser", "loads"), ("tomli._parser", "loads"))
PathFinder = sys.modules["_frozen_importlib_external"].PathFinder
