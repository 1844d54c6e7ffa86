"""Per-start facts that the program reads while it boots: arguments, the main module, terminals, standard streams, the umask, the parent.

Each stays what it was for whoever only keeps it, or a part of it (`ARGV = sys.argv`, `def main(args=sys.argv[1:])`: a thaw changes the
lists in place), and notes when its content is read. All of this is undone before the freeze.
"""

import posix
import sys

from . import dropped_reads, modules, references

ModuleType = type(sys)


class Early:
    """Notes from its making on, until `stop`.

    reads: the Reads that it tells. request: the Request. recipes: the Recipes that are asked of looks at terminals.
    """

    def __init__(self, reads, request, recipes):
        self.reads = reads
        # Whether a thaw has the same arguments and the same main module, or falls back.
        self.is_bound = bool(request.at)
        # Of these a thaw has the same first argument and the same main module, or falls back.
        self.is_fixed = request.main in ("script", "code")
        # Whether the program knows by which name the main part was called.
        self.knows_name = False
        # Whether it has looked into the main module, so that no other may take its place.
        self.knows_main = False
        self.umask = umask()
        self.recipes = recipes
        # Parts of the lists that the program has made: each with the name of the list and the slices that lead there.
        self.parts = []
        lists = () if self.is_bound else ("argv", "orig_argv")
        self._lists = {name: self._watch_list(name) for name in lists if hasattr(sys, name)}
        self._streams = [(stream, self._watch_stream(stream, of)) for of, stream in _streams()]
        names = sys.modules["os"].__dict__ if "os" in sys.modules else {}
        for name, note in (
            ("isatty", self._reads_terminal),
            ("get_terminal_size", self._reads_size),
            ("umask", self._reads_umask),
            ("getppid", self._reads_parent),
            ("fstat", self._reads_status),
        ):
            if name in names:
                reads.watch(names, name, note)

    def watch_main(self):
        """From here on the `__main__` of the moment is watched, if it counts."""
        if self.is_bound:
            return
        main = sys.modules["__main__"]
        main.__class__ = type("module", (ModuleType,), {"__getattribute__": self._watched_attribute()})

    def stop(self, report):
        """Leaves no trace, but for a list that somebody holds where it cannot be exchanged: that stays in use."""
        main = sys.modules.get("__main__")
        if isinstance(main, ModuleType):
            main.__class__ = ModuleType
        for stream, function in self._streams:
            if stream.__dict__.get("isatty") is function:
                del stream.isatty
        self._streams = ()
        for name in list(self._lists):
            self._put_back(name)
        self.parts = [(self._finished(part), part.name, part.way) for part in self.parts if sys.getrefcount(part) > PASSING]

    def read_umask(self):
        """Whether the umask may have been kept: it was read by setting it, and is as it was."""
        return umask() == self.umask

    def read(self, what, frame):
        """Something is read that no image can be bound to."""
        self.reads.early(what, frame)

    def _watch_list(self, name):
        plain = getattr(sys, name)
        watched = Arguments(plain).watched_by(self, name)
        setattr(sys, name, watched)
        return [plain, watched]

    def _put_back(self, name):
        plain, watched = self._lists.pop(name)
        watched.early = None
        if sys.__dict__.get(name) is not watched:
            self.reads.early("sys.%s, and replaces it," % name, None)
            return
        _exchange(watched, plain, references.VARIABLE_OF_CALLER)

    def _finished(self, part):
        part.early = None
        return _exchange(part, list(part), references.LISTED_TWO_CALLS_AWAY)

    def _watch_stream(self, stream, of):
        ordinary = stream.isatty

        def isatty():
            frame = sys._getframe(1)
            if not self.recipes.renew_look(frame, of):
                self.reads.fact("terminal", frame, of)
            return ordinary()

        stream.isatty = isatty
        return isatty

    def _reads_terminal(self, frame, arguments):
        if arguments and arguments[0] in (0, 1, 2):
            self.reads.fact("terminal", frame, arguments[0])

    def _reads_status(self, frame, arguments):
        if arguments and type(arguments[0]) is int and arguments[0] in (0, 1, 2):
            self.read("what %s is" % STREAMS[arguments[0]], frame)

    def _reads_size(self, frame, arguments):
        of = arguments[0] if arguments else 1
        if dropped_reads.is_for_nothing(frame):
            return True
        if of in (0, 1, 2):
            self.reads.fact("window", frame, of)
        return False

    def _reads_umask(self, frame, _):
        self.reads.fact("umask", frame)

    def _reads_parent(self, frame, _):
        self.read("the pid of its parent process", frame)

    def _watched_attribute(self):
        is_fixed = self.is_fixed
        ordinary = ModuleType.__getattribute__

        def attribute(module, name):
            if name == "__file__":
                if not is_fixed:
                    self.read("__main__.__file__", sys._getframe(1))
                self.knows_name = True
            elif name == "__dict__":
                self.knows_main = True
            elif name == "__requires__" or name[:2] != "__":
                self.read("__main__." + name, sys._getframe(1))
            return ordinary(module, name)

        return attribute


def _exchange(watched, plain, own):
    """Puts a list in the place of another, if only modules hold that. own: references of its callers. Returns the one in use then."""
    holders = [(names, key) for names in modules.all_names() for key, value in names.items() if value is watched]
    if sys.getrefcount(watched) > len(holders) + own:
        return watched
    for names, key in holders:
        names[key] = plain
    return plain


class Arguments(list):
    """A list, or a part of one, that notes when its content is read."""

    __slots__ = ("name", "early", "way")

    def watched_by(self, early, name, way=()):
        """Has it told to `early`. name: of the list in `sys`. way: the slices of it that lead here. Returns itself."""
        self.early, self.name, self.way = early, name, way
        return self

    def __getitem__(self, index):
        early = self.early
        if early is not None:
            if type(index) is slice:
                part = Arguments(list.__getitem__(self, index)).watched_by(early, self.name, (*self.way, index))
                early.parts.append(part)
                return part
            if index == 0 and early.is_fixed and self.name == "argv" and not self.way:
                early.knows_name = True
            else:
                self._is_read(sys._getframe(1))
        return list.__getitem__(self, index)

    def __bool__(self):
        """The whole lists are never empty."""
        if self.early is not None and self.way:
            self._is_read(sys._getframe(1))
        return list.__len__(self) > 0

    def copy(self):
        """A part that is all."""
        return list.copy(self) if self.early is None else self[:]

    def _is_read(self, frame):
        self.early.read("sys." + self.name, frame)

    def __radd__(self, other):
        if self.early is not None:
            self._is_read(sys._getframe(1))
        return other + list.copy(self)

    def __reduce_ex__(self, _):
        return list, (list.copy(self),)  # copies are ordinary


def _recording_reads(name):
    ordinary = getattr(list, name)

    def method(self, *arguments, **keywords):
        if self.early is not None:
            self._is_read(sys._getframe(1))
        return ordinary(self, *arguments, **keywords)

    method.__name__ = name
    return method


def _streams():
    """The standard streams with their numbers, each with all that is below the text."""
    for of, name in enumerate(("__stdin__", "__stdout__", "__stderr__")):
        stream = getattr(sys, name)
        while stream is not None and hasattr(stream, "__dict__"):
            yield of, stream
            stream = getattr(stream, "buffer", None) or getattr(stream, "raw", None)


def umask():
    mask = posix.umask(0o77)
    posix.umask(mask)
    return mask


STREAMS = ("standard input", "standard output", "standard error")
METHODS = "iter len contains reversed eq ne lt le gt ge add mul rmul iadd imul repr setitem delitem".split()
for method in ["__%s__" % name for name in METHODS] + [name for name in dir(list) if name[0] != "_" and name != "copy"]:
    setattr(Arguments, method, _recording_reads(method))
# What getrefcount counts of a part that nobody has kept but the list of parts.
PASSING = references.OWN_VARIABLE + 1
