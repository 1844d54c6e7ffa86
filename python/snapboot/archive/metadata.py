"""Entry points of installed distributions: the archive holds the parsed content of each `entry_points.txt`.

Python's own finders list the distributions, at each start. The archive answers only for distributions in folders, and only while nobody has
replaced the code that reads and parses their files.
"""

import io
import marshal
import pathlib
import posix
import sys
import types

FILE = "/entry_points.txt"
# The names that take part besides the distribution's class: of the module, and, with CPython 3.8 and 3.9, of the one with its parser.
OF_MODULE = ("EntryPoint", "EntryPoints", "_EntryPointMatch", "Pair", "Sectioned")
OF_PARSER = ("ConfigParser", "BasicInterpolation", "SectionProxy")
# Methods with which a distribution reads its file.
OF_PATHS = ("__fspath__", "__str__", "joinpath", "open", "read_text")
# The modules of the types in those classes.
KINDS = ("_abc", "_collections", "abc", "builtins", "collections", "configparser", "functools", "re")
INSTALLED = ("/site-packages/", "/dist-packages/")


class EntryPoints:
    """The property `entry_points` of distributions: answers it, and stores new values."""

    def __init__(self, native, module, context):
        """module: importlib.metadata. context: what else the result depends on. Raises ValueError if something has been replaced."""
        self._at = native.entry_points_at
        self._distribution = module.PathDistribution
        self._path = pathlib.PosixPath
        self._names = vars(module)
        parser = sys.modules["configparser"] if "ConfigParser" in self._names else None
        found = [self._names.get(name) for name in OF_MODULE] + [vars(parser)[name] for name in OF_PARSER if parser is not None]
        self._classes = {part: None for one in (self._distribution, *found) if one is not None for part in one.__mro__}
        self._classes = [one for one in self._classes if one.__module__ != "builtins"]
        self._usual = self._state()
        self._usual[0] = [dict(contents) for contents in self._usual[0]]
        if not self._is_original():
            raise ValueError("something takes part that is not Python's own")
        # An edited module has another time.
        about = posix.stat(module.__file__)
        self._context = "%s entry points 2 %d %d" % (context, about.st_size, about.st_mtime)
        self._point, self._points = module.EntryPoint, getattr(module, "EntryPoints", None)
        # From CPython 3.15 on each has the parts of its value from the start.
        self._match = getattr(module, "_EntryPointMatch", None)

    def answer(self, distribution):
        """Returns the property's value, and None; None and its file if the value is unknown; None if the archive must not answer."""
        if type(distribution) is not self._distribution or self._state() != self._usual:
            return None
        folder = distribution._path
        if type(folder) is not self._path:
            return None
        path = str(folder)
        if path[0] != "/":
            return None
        known = self._at(path + FILE, self._context)
        if known is False:
            known = []
        elif type(known) is not list:
            return known and (None, known)
        return self._made(known, distribution), None

    def keep(self, file, points):
        """file: from `answer`. points: the property's value."""
        file.keep(marshal.dumps([(point.name, point.value, point.group, self._parts(point)) for point in points]))

    def _parts(self, point):
        return None if self._match is None else tuple(vars(point._match).items())

    def _made(self, known, distribution):
        kind = self._point
        if issubclass(kind, tuple):  # before CPython 3.11
            points = [tuple.__new__(kind, one[:3]) for one in known]
            if self._points is None:
                return points
            for point in points:
                point.dist = distribution
        else:
            points = []
            for name, value, group, parts in known:
                point = object.__new__(kind)
                point.__dict__.update(name=name, value=value, group=group)
                if parts is not None:
                    point.__dict__["_match"] = self._match(**dict(parts))
                point.__dict__["dist"] = distribution
                points.append(point)
        return self._points(points)

    def _state(self):
        """Returns the code that takes part, in its current state."""
        names, path = self._names, self._path
        return [
            [vars(one) for one in self._classes],
            [names.get(name) for name in ("ConfigParser", "suppress", *OF_MODULE)],
            [getattr(path, name) for name in OF_PATHS],
            io.open,
        ]

    def _is_original(self):
        """Returns whether all of it is Python's own."""
        library = sys.modules["os"].__file__.rpartition("/")[0] + "/"

        def is_own(value):
            function = getattr(value, "__func__", getattr(value, "fget", value))
            if type(function) is not types.FunctionType:
                # Programs do not create objects of these types.
                return type(value).__module__ in KINDS
            path = function.__code__.co_filename
            if function.__module__.startswith("namedtuple_"):
                return True
            return path.startswith(library) and not any(part in path for part in INSTALLED)

        contents, _, methods, opener = self._usual
        return opener is sys.modules["_io"].open and all(map(is_own, [value for one in contents for value in one.values()] + methods))


def functions(native, module, context):
    """Returns the functions that the native part's `serve_entry_points` needs."""
    points = EntryPoints(native, module, context)
    return points.answer, points.keep
