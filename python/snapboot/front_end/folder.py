"""The current directory, for programs that read it while they boot and keep the answer: a thaw puts the new one in its place.

A reader may also decide something by the answer, and nobody can see that. So an answer is taken for one that is only kept where it is
found in a module that was running when it was read (in one of its classes or their instances, too), by itself or as the beginning of
a path, and nowhere else in memory: not as another part of a text, in a set, or as a key. The command then boots the program once more in
an empty folder whose names are unlike all others: so whatever is made of them is found, and what is kept for another reason (where
something lies, what a variable says) is not. It compares what is kept, and what was looked for there.
"""

import gc
import posix
import sys

from .request import decode, encode

ModuleType = type(sys)


class Folder:
    """What was read, and where the answers are kept."""

    def __init__(self, is_elsewhere):
        # Whether this is the boot in a folder with names of its own.
        self.is_elsewhere = is_elsewhere
        self._start = current()
        self.reading = []  # for each read: the names of the modules that were running
        self.places = []  # that hold the answer: callables that take another one
        self.kept = []  # what they hold, as far as it goes on behind the answer

    def read(self, frame):
        """The directory is read. frame: by whom."""
        self.reading.append(running(frame))

    def find(self):
        """Looks for what is kept of the answer. Returns whether a thaw can put another in its place."""
        # Elsewhere in the meantime, the program may have been told of either directory.
        if not self.reading or current() != self._start:
            return False
        try:
            found = Search(posix.getcwd(), self.is_elsewhere).run()
        except Exception:
            found = None  # the directory is gone, or there is an object that nobody may look into
        if found is None:
            return False
        self.kept, places, modules = found
        packages = packages_of(modules)
        if not all(packages_of(names) & packages for names in self.reading):
            return False
        self.places = places
        return True

    def renew(self):
        """Puts the directory of this process in its place. Raises OSError where there is none."""
        if self.places:
            folder = posix.getcwd()
            for put in self.places:
                put(folder)


def current():
    """The current directory, or None where it is gone."""
    try:
        return posix.getcwd()
    except OSError:
        return None


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


def kept_by_name(module):
    """What the module of that name keeps under a name of its own: that name, and what it keeps of a folder that is gone; or None."""
    if type(module) is str:
        for name, kept in KEPT.items():
            if module == name or module.endswith("." + name):
                return kept
    return None


def packages_of(modules):
    return {name.partition(".")[0] for name in modules}


def holds_temporary_files():
    """Whether the module `tempfile` has chosen the current directory, for want of any other that can be written."""
    chosen = getattr(sys.modules.get("tempfile"), "tempdir", None)
    return chosen is not None and chosen == posix.getcwd()


class Search:
    """A search through all that the garbage collector knows."""

    def __init__(self, folder, is_elsewhere):
        self.folder = folder
        self.below = folder.rstrip("/") + "/"
        # Texts with one of these are made of the answer.
        self.marks = folder.rsplit("/", 2)[1:] if is_elsewhere else [folder]
        self.kept = []
        self.places = []
        self.tuples = {}  # id: [tuple, how many places were found that hold it]
        self.modules = set()
        self.is_fixed = False
        self.seen = set()
        pathlib = sys.modules.get("pathlib")
        self.path_kind = getattr(pathlib, "PurePath", ())

    def run(self):
        """Returns what is kept of the answer, where, and the names of these modules; None where it cannot be exchanged everywhere."""
        self.leave_out()
        self.look_at_all()
        if self.is_fixed or not all(map(is_held_there_only, self.tuples.values())):
            return None
        return sorted(self.kept), self.places, self.modules

    def look_at_all(self):
        # A container belongs to the module or the class that holds it, so these come first.
        for holder in sorted(gc.get_objects(), key=lambda it: not issubclass(type(it), (ModuleType, type))):
            self.look(holder)
            if self.is_fixed:
                break

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
                if id(type(thing)) in CONTAINERS:
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
        if kind in (dict, list):
            self.look_into_container(holder, None)
        elif kind is tuple or kind is FRAME:
            return  # whoever holds a tuple gets another one
        else:
            self.look_into_other(holder, kind)

    def look_into_container(self, holder, module):
        """A dictionary or a list. module: the name of the one that it belongs to, or None where nobody knows that."""
        if type(holder) is dict and any(map(self.is_held, holder)):
            self.is_fixed = True
        names = holder if type(holder) is dict else dict(enumerate(holder))
        self.look_into_names(names, module, lambda name: putter_into_names(holder, name))

    def look_into_names(self, names, module, putter):
        for name, value in list(names.items()):
            if value is self.folder:
                continue
            if self.is_it(value) or self.is_tuple_of_it(value):
                self.places.append(self.renewed(putter(name), value))
                self.kept.append("%s %s" % (module, self.rests_of(value)))
                if module is not None:
                    self.modules.add(module)
            elif self.is_part(value):
                self.is_fixed = True
            elif module is not None and type(value) in (dict, list) and id(value) not in self.seen:
                self.seen.add(id(value))
                self.look_into_container(value, module)
            elif not gc.is_tracked(value):
                self.look_deeper(value)

    def look_into_other(self, holder, kind):
        """An instance or anything else."""
        hit = False
        for value in gc.get_referents(holder):
            if self.is_held(value):
                hit = True
            elif type(value) is dict and value is getattr(holder, "__dict__", None):
                # The attributes of an instance: found by name.
                self.seen.add(id(value))
                self.look_into_names(value, kind.__module__, lambda name, of=value: putter_into_names(of, name))
            elif not gc.is_tracked(value):
                self.look_deeper(value)
        if hit:
            names = {"__defaults__": holder.__defaults__} if kind is FUNCTION else attributes(holder)
            before = len(self.places)
            module = holder.__module__ if kind is FUNCTION else kind.__module__
            self.look_into_names(names, module, lambda name: lambda value: object.__setattr__(holder, name, value))
            if len(self.places) == before:
                self.is_fixed = True

    def look_deeper(self, value):
        """Into a container that the collector does not know, since it holds only texts and numbers."""
        kind = type(value)
        if kind in (dict, list):
            self.look(value)
        elif kind in (tuple, set, frozenset) and any(map(self.is_held, value)):
            self.is_fixed = True

    def is_held(self, value):
        """Whether it is the answer in any form; a tuple of it is noted."""
        return self.is_it(value) or self.is_part(value) or self.is_tuple_of_it(value, 0)

    def is_it(self, value):
        """Whether that is the answer, or a path below it: a text, bytes or a path."""
        text = self.text_of(value)
        return text is not None and (text == self.folder or text.startswith(self.below))

    def is_part(self, value):
        """Whether the answer is a part of that text in another way, or of one in a tuple that cannot be made anew."""
        if type(value) is tuple:
            return any(self.is_part(item) or self.is_tuple_of_it(item, 0) for item in value)
        text = self.text_of(value)
        return text is not None and any(mark in text for mark in self.marks) and not self.is_it(value)

    def is_tuple_of_it(self, value, places=1):
        """Whether that is a tuple with the answer in it, which is found in so many more places."""
        if type(value) is not tuple or not any(map(self.is_it, value)):
            return False
        self.tuples.setdefault(id(value), [value, 0])[1] += places
        return True

    def rests_of(self, value):
        """What comes after the answer in that value, which is it, is below it, or is a tuple of such values and others."""
        if type(value) is tuple:
            return [self.rests_of(item) for item in value if self.is_it(item)]
        return self.text_of(value)[len(self.folder) :]

    def text_of(self, value):
        kind = type(value)
        if kind is str:
            return value
        if kind is bytes:
            return decode(value)
        return str(value) if isinstance(value, self.path_kind) else None

    def renewed(self, put, old):
        """A function that takes another directory, and puts there what stands there now, with that in the place of this one."""
        kind = type(old)
        if kind is tuple:
            items = []
            puts = [self.renewed(items.append, item) if self.is_it(item) else lambda _, item=item: items.append(item) for item in old]

            def put_tuple(folder):
                items.clear()
                for put_item in puts:
                    put_item(folder)
                put(tuple(items))

            return put_tuple
        rest = self.rests_of(old)
        make = kind if isinstance(old, self.path_kind) else encode if kind is bytes else str
        return lambda folder: put(make((folder.rstrip("/") or ("" if rest else "/")) + rest))


def is_held_there_only(found):
    """Whether nobody holds a tuple but the places that were found: its list [tuple, number of places]."""
    return sys.getrefcount(found[0]) - 2 == found[1]


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


# By number: a class may define what it is equal to.
CONTAINERS = frozenset(map(id, (dict, list, tuple, set)))
# By module: the name under which it keeps the folder, and what it keeps of one that is gone. These are renewed by name, also where
# another package carries them along. multiprocessing and Celery's form of it tell those that they spawn, rich looks for sources.
KEPT = {"multiprocessing.process": ("ORIGINAL_DIR", None), "billiard.process": ("ORIGINAL_DIR", None), "rich": ("_IMPORT_CWD", "")}
FRAME = type(sys._getframe())
FUNCTION = type(running)
# Through these everybody reads it.
LIBRARY = {"os", "posixpath", "pathlib", "genericpath", "__main__", "importlib._bootstrap", "importlib._bootstrap_external"}
