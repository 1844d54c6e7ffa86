"""The current directory, for programs that ask for it while they boot and keep the answer: a thaw puts the new one in its place.

Who asks may also decide something by the answer, and nobody can see that. So an answer is taken for one that is only kept where it is
found in a module that was running when it was asked for (in one of its classes or their instances, too), and nowhere else in memory: not
as a part of another text, in a tuple or set, or as a key. Files that were looked for below the directory the command knows of.
"""

import gc
import posix
import sys

from . import _modules, _plan

ModuleType = type(sys)


class Folder:
    """What was asked, and where the answers are kept."""

    def __init__(self):
        self.asking = []  # for each time that somebody asked: the names of the modules that were running
        self.places = []  # that hold the answer: callables that take another one

    def ask(self, frame):
        """The directory is asked for. frame: by whom."""
        self.asking.append(running(frame))

    def find(self):
        """Looks for what is kept of the answer. Returns whether a thaw can put another in its place."""
        if not self.asking:
            return False
        try:
            found = Search(posix.getcwd()).run()
        except Exception:
            found = None  # the directory is gone, or there is an object that nobody may look into
        if found is None:
            return False
        places, modules = found
        if all(names & modules for names in self.asking) and modules <= set().union(*self.asking):
            self.places = places
            return True
        return False

    def renew(self):
        """Puts the directory of this process in its place. Raises OSError where there is none."""
        if self.places:
            folder = posix.getcwd()
            for put in self.places:
                put(folder)


def running(frame):
    """The names of the modules whose code a frame was called from, and of those that are being imported."""
    names = set()
    while frame is not None:
        names.add(frame.f_globals.get("__name__"))
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            # Code in C has no frames; the import of its module has.
            for variable in ("spec", "module"):
                thing = frame.f_locals.get(variable)
                names.add(getattr(thing, "name", getattr(thing, "__name__", None)))
        frame = frame.f_back
    return {name for name in names if isinstance(name, str) and name.partition(".")[0] != "snapboot"} - LIBRARY


def holds_temporary_files():
    """Whether the module `tempfile` has chosen the current directory, for want of any other that can be written."""
    chosen = getattr(sys.modules.get("tempfile"), "tempdir", None)
    return chosen is not None and chosen == posix.getcwd()


class Search:
    """A search through all that the garbage collector knows."""

    def __init__(self, folder):
        self.folder = folder
        self.places = []
        self.modules = set()
        self.is_fixed = False
        self.seen = set()
        pathlib = sys.modules.get("pathlib")
        self.path_kind = getattr(pathlib, "PurePath", ())

    def run(self):
        """Returns where the answer is kept and the names of these modules; None where it cannot be exchanged everywhere."""
        # Who keeps such a path might mean where something lies, or what a variable says, and not where it was started.
        if any(map(self.is_inside, known_paths())) or any(map(self.is_in_variable, posix.environ.items())):
            return None
        self.leave_out()
        for holder in gc.get_objects():
            self.look(holder)
            if self.is_fixed:
                return None
        return self.places, self.modules

    def is_inside(self, path):
        return (path + "/").startswith(self.folder.rstrip("/") + "/")

    def is_in_variable(self, variable):
        name, value = variable
        return name not in (b"PWD", b"OLDPWD") and _plan.encode(self.folder) in value

    def leave_out(self):
        """What is renewed anyway, what is ours, and what is part of something that is looked at as a whole."""
        lists = [sys.argv, getattr(sys, "orig_argv", None), sys.path_importer_cache, posix.environ]
        os = sys.modules.get("os")
        lists += [getattr(getattr(os, name, None), "_data", None) for name in ("environ", "environb")]
        self.seen.update(map(id, lists), (id(self), id(self.__dict__)))
        # They follow the search path, which is renewed.
        for finder in sys.path_importer_cache.values():
            self.seen.update((id(finder), id(getattr(finder, "__dict__", None))))
        for holder in gc.get_objects():
            kind = type(holder)
            if issubclass(kind, type):
                # Its dictionary may only be changed through the class.
                self.seen.update(id(thing) for thing in gc.get_referents(holder) if type(thing) is dict)
            elif issubclass(kind, ModuleType):
                self.seen.add(id(holder.__dict__))
            elif isinstance(holder, self.path_kind):
                self.seen.add(id(holder))
                self.seen.update(map(id, gc.get_referents(holder)))
            elif kind.__module__.partition(".")[0] == "snapboot":
                self.leave_out_below(holder)

    def leave_out_below(self, holder, depth=3):
        self.seen.add(id(holder))
        if depth:
            for thing in gc.get_referents(holder):
                if type(thing) in (dict, list, tuple, set):
                    self.leave_out_below(thing, depth - 1)

    def look(self, holder):
        """Looks into one object, and into those below it that the collector does not know."""
        kind = type(holder)
        if issubclass(kind, ModuleType):
            if holder.__name__.partition(".")[0] != "snapboot":
                self.look_into_names(holder.__dict__, holder.__name__, lambda name: putter_into_names(holder.__dict__, name))
            return
        if issubclass(kind, type):
            self.look_into_names(vars(holder), holder.__module__, lambda name: lambda value: setattr(holder, name, value))
            return
        if id(holder) in self.seen:
            return
        self.seen.add(id(holder))
        if kind is dict:
            if any(self.is_it(key) or self.is_part(key) for key in holder):
                self.is_fixed = True
            self.look_into_names(holder, None, lambda name: putter_into_names(holder, name))
        elif kind is list:
            self.look_into_names(dict(enumerate(holder)), None, lambda index: putter_into_names(holder, index))
        elif kind is FRAME:
            return
        else:
            self.look_into_other(holder, kind)

    def look_into_names(self, names, module, putter):
        for name, value in list(names.items()):
            if self.is_it(value):
                if value is not self.folder:
                    self.places.append(converted(putter(name), value))
                    if module is not None:
                        self.modules.add(module)
            elif self.is_part(value):
                self.is_fixed = True
            elif not gc.is_tracked(value):
                self.look_deeper(value)

    def look_into_other(self, holder, kind):
        """An instance or anything else."""
        hit = False
        for value in gc.get_referents(holder):
            if self.is_it(value) or self.is_part(value):
                hit = True
            elif type(value) is dict and value is getattr(holder, "__dict__", None):
                # The attributes of an instance: found by name.
                self.seen.add(id(value))
                self.look_into_names(value, kind.__module__, lambda name, of=value: putter_into_names(of, name))
            elif not gc.is_tracked(value):
                self.look_deeper(value)
        if hit:
            names = attributes(holder)
            before = len(self.places)
            self.look_into_names(names, kind.__module__, lambda name: lambda value: object.__setattr__(holder, name, value))
            if len(self.places) == before:
                self.is_fixed = True

    def look_deeper(self, value):
        """Into a container that the collector does not know, since it holds only texts and numbers."""
        kind = type(value)
        if kind in (dict, list):
            self.look(value)
        elif kind in (tuple, set, frozenset) and any(self.is_it(item) or self.is_part(item) for item in value):
            self.is_fixed = True

    def is_it(self, value):
        """Whether that is the answer: a text, bytes or a path."""
        kind = type(value)
        if kind is str:
            return value == self.folder
        if kind is bytes:
            return value == _plan.encode(self.folder)
        return isinstance(value, self.path_kind) and str(value) == self.folder

    def is_part(self, value):
        """Whether the answer is a part of that text."""
        kind = type(value)
        if kind is bytes:
            value = _plan.decode(value)
        elif kind is not str:
            if not isinstance(value, self.path_kind):
                return False
            value = str(value)
        return self.folder in value and value != self.folder


def attributes(holder):
    """The attributes of an instance, with those that have places of their own."""
    found = dict(getattr(holder, "__dict__", ()))
    for kind in type(holder).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(holder, name):
                found[name] = getattr(holder, name)
    return found


def putter_into_names(names, name):
    """A function that puts a value there."""

    def put(value):
        names[name] = value

    return put


def converted(put, old):
    """A function that puts the directory there as what stands there now is: text, bytes or path."""
    kind = type(old)
    if kind is str:
        return put
    make = _plan.encode if kind is bytes else kind
    return lambda folder: put(make(folder))


def known_paths():
    """Where modules are looked for and were loaded from, and where the interpreter is."""
    yield from (entry for entry in sys.path if isinstance(entry, str))
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, sys.executable or "")
    for names in _modules.all_names():
        file = names.get("__file__")
        if isinstance(file, str):
            yield file.rpartition("/")[0]


FRAME = type(sys._getframe())
# Through these everybody asks.
LIBRARY = {"os", "posixpath", "pathlib", "genericpath", "__main__", "importlib._bootstrap", "importlib._bootstrap_external"}
