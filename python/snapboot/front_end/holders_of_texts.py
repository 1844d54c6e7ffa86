"""Texts that are or contain a secret: who holds them, and how a thaw replaces them.

Python's texts are immutable, so each holder is given another object. That requires knowing all holders: the number found is compared with
the interpreter's reference count. If a holder is unknown because it is C code, or cannot be given another object, such as the compiled code
of a function, the freeze is refused.
"""

import gc
import sys

from .modules import NAMES, is_module
from .request import decode, encode

FUNCTION = type(encode)
FRAME = type(sys._getframe())


class Kept:
    """An object that a thaw makes anew: a text, or an immutable object that holds one."""

    __slots__ = ("old", "pieces", "count", "puts", "is_held_by_c")

    def __init__(self, old, pieces=None):
        self.old = old
        self.pieces = pieces  # of a text: see Patterns.split
        self.count = 0  # of references that are known
        self.puts = []  # functions that take the new object, and the old one
        self.is_held_by_c = False  # a path changed in place, since some of its holders cannot be given another


class Search:
    """A search through all objects that the garbage collector tracks and all that they refer to."""

    def __init__(self, patterns, own, kept_by_front_end, more_kinds=()):
        """patterns: has `split` and `name`, as secret_values.Patterns. own: ids of objects whose texts are not exchanged.
        kept_by_front_end: objects of the front end whose texts are exchanged anyway. more_kinds: classes whose objects count as texts."""
        self.kinds = (*TEXTS, *more_kinds)
        self.patterns = patterns
        self.own = own
        self.wanted = kept_by_front_end
        self.kept = []
        self.problems = []
        self.held = []  # pairs of a variable and the holder of a text with its value that cannot be exchanged
        self._by_id = {}
        self._classes = {}  # id of the dictionary of a class: that class
        self._names = {}  # id of the dictionary of a module: its name

    def run(self):
        """Fills `kept` and `problems`."""
        self.own = self.own | {id(self), id(self.__dict__), id(self._by_id), id(self.kept)} | front_end_objects(self.wanted)
        for holder in gc.get_objects():
            kind = type(holder)
            if issubclass(kind, type):
                for thing in gc.get_referents(holder):
                    if type(thing) is dict:
                        self._classes[id(thing)] = holder
            elif is_module(holder) and (names := NAMES(holder)) is not None:
                self._names[id(names)] = names.get("__name__")
        new = self._take_all(getattr(self.patterns, "ids", None), self._text)
        while new:
            # An immutable holder is replaced as well, so its own holders are searched next.
            found = set(map(id, new))
            new = self._take_all(found, lambda thing, found=found: id(thing) in found)
        del new
        self._count()

    def _take_all(self, ids, is_wanted):
        """Collects all references to wanted objects. ids: of all candidates that are known so far. Returns holders that must be made anew.
        """
        holders, olds, new = [], [], []
        self._find(ids, is_wanted, holders, olds)
        for holder, old in zip(holders, olds):
            self._take(holder, old, new)
        return new

    def _text(self, thing):
        """Returns whether the object is a text with a secret in it."""
        if id(thing) in self._by_id:
            return True
        if not issubclass(type(thing), self.kinds):
            return False
        pieces = self.patterns.split(thing)
        if pieces is None:
            return False
        self._by_id[id(thing)] = kept = Kept(thing, pieces)
        self.kept.append(kept)
        return True

    def _find(self, ids, is_wanted, holders, olds):
        """Fills two lists: holders, and the wanted object that each holds; one entry for each reference."""
        seen = set()
        stack = gc.get_objects()
        # The interned texts do not count their references, so their table is no holder.
        this = {id(holders), id(olds), id(stack), id(seen), id(ids)} | own_frames() | interned_texts()
        for at in range(0, len(stack), BATCH):
            some = [holder for holder in stack[at : at + BATCH] if id(holder) not in this and type(holder) is not Kept]
            while some:
                # Looks at many objects together; few batches need a closer look.
                things = gc.get_referents(*some)
                for holder in some:
                    if issubclass(type(holder), dict):
                        things += dict.keys(holder)
                if ids is None or not ids.isdisjoint(map(id, things)):
                    found = [(holder, thing) for holder in some for thing in referents(holder) if is_wanted(thing)]
                    for holder, thing in found:
                        holders.append(holder)
                        olds.append(thing)
                below = {id(thing): thing for thing in things if type(thing) in UNTRACKED and not gc.is_tracked(thing)}
                some = [thing for number, thing in below.items() if number not in seen]
                seen.update(below)

    def _take(self, holder, old, new):
        """Records one reference. new: receives immutable holders, which must be made anew."""
        kept = self._by_id[id(old)]
        kept.count += 1
        if id(holder) in self.own or id(holder) in self._by_id and type(holder) not in (tuple, frozenset):
            return
        kind = type(holder)
        try:
            if issubclass(type(old), bytearray):
                return  # changed in place
            if issubclass(kind, (tuple, frozenset)):
                if id(holder) not in self._by_id:
                    self._by_id[id(holder)] = made = Kept(holder)
                    self.kept.append(made)
                    new.append(holder)
                return
            puts = list(self._puts(holder, kind, old))
        except Exception:
            puts = []
        if puts:
            kept.puts += puts
        else:
            self._problem(kept, self._describe(holder, old))

    def _puts(self, holder, kind, old):
        """Returns functions that replace the old object in this holder; none where it cannot be replaced."""
        if is_module(holder) or kind is FRAME:
            return
        if id(holder) in self._classes:
            owner = self._classes[id(holder)]
            for name in [name for name, value in holder.items() if value is old]:
                yield lambda value, old, name=name: type.__setattr__(owner, name, value)
        elif issubclass(kind, dict):
            for name in [name for name, value in dict.items(holder) if value is old]:
                yield lambda value, old, name=name: dict.__setitem__(holder, name, value)
            if kind is dict and any(name is old for name in holder):
                yield lambda value, old: _rekey(holder, old, value)
        elif issubclass(kind, list):
            for at in [at for at, value in enumerate(list.__iter__(holder)) if value is old]:
                yield lambda value, old, at=at: list.__setitem__(holder, at, value)
        elif kind is set:
            yield lambda value, old: _put_into_set(holder, old, value)
        elif kind is FUNCTION:
            if holder.__defaults__ is old:
                yield lambda value, old: setattr(holder, "__defaults__", value)
        elif kind.__name__ == "cell":
            yield lambda value, old: setattr(holder, "cell_contents", value)
        elif kind.__name__ == "_lru_cache_wrapper":
            yield lambda value, old: holder.cache_clear()
        elif kind.__name__ == "deque":
            for at in [at for at, value in enumerate(holder) if value is old]:
                yield lambda value, old, at=at: holder.__setitem__(at, value)
        elif kind.__module__ == "functools" and kind.__name__ == "partial":
            yield lambda value, old: holder.__setstate__((holder.func, value, holder.keywords, holder.__dict__))
        else:
            names = getattr(holder, "__dict__", None)
            if type(names) is dict:
                # The instance dictionary, which the collector does not show until somebody asks for it.
                for name in [name for name, value in names.items() if value is old]:
                    yield lambda value, old, name=name: dict.__setitem__(holder.__dict__, name, value)
            # The slots of classes in C may be read-only.
            for owner in [owner for owner in kind.__mro__ if "__slots__" in vars(owner)]:
                for member in vars(owner).values():
                    if type(member).__name__ == "member_descriptor" and _value(member, holder) is old:
                        yield lambda value, old, member=member: member.__set__(holder, value)

    def _count(self):
        """Checks whether a text has holders that were not found."""
        known = Kept(object())
        base = sys.getrefcount(known.old)
        for kept in self.kept:
            count = sys.getrefcount(kept.old) - base
            if not IMMORTAL > count > kept.count or isinstance(kept.old, bytearray):
                continue
            kept.is_held_by_c = type(kept.old).__module__.partition(".")[0] == "pathlib"
            if not kept.is_held_by_c:
                self._problem(kept, "C code of the program, or a part of it that nobody can look into, keeps")

    def _problem(self, kept, what):
        names = sorted(self._variables(kept))
        text = "%s the value of %s" % (what, ", ".join(names))
        if text not in self.problems:
            self.problems.append(text)
            self.held += [(name, text) for name in names]

    def _variables(self, kept):
        """Returns the names of the variables whose values the text, or the tuple's items, contain."""
        if kept.pieces is not None:
            return {self.patterns.name(piece) for piece in kept.pieces if type(piece) is int}
        return {name for item in kept.old if id(item) in self._by_id for name in self._variables(self._by_id[id(item)])}

    def _describe(self, holder, old):
        """Describes in words who holds the object."""
        if isinstance(holder, dict):
            for name, value in dict.items(holder):
                if value is old or name is old:
                    where = self._names.get(id(holder)) or getattr(self._classes.get(id(holder)), "__qualname__", None)
                    if where is not None and value is old:
                        return "%s.%s keeps" % (where, name)
        return "an object of %s.%s keeps" % (type(holder).__module__, type(holder).__qualname__)


def _value(member, holder):
    try:
        return member.__get__(holder)
    except AttributeError:
        return None


def _rekey(names, old, new):
    """Replaces one key of a dictionary."""
    items = [(new if name is old else name, value) for name, value in names.items()]
    names.clear()
    names.update(items)


def _put_into_set(things, old, new):
    """Replaces one item of a set, whose hash may have changed."""
    items = [new if thing is old else thing for thing in things]
    things.clear()
    things.update(items)


def exchange(all_kept, real):
    """Replaces the kept texts. real: the value for each pattern, as bytes."""
    texts = list(map(decode, real))
    known = {id(kept.old): kept for kept in all_kept}
    made = {}

    def new(old):
        if id(old) not in made:
            kept = known.get(id(old))
            made[id(old)] = old if kept is None else _made(kept, real if isinstance(old, (bytes, bytearray)) else texts, new)
        return made[id(old)]

    for kept in all_kept:
        value = new(kept.old)
        for put in kept.puts:
            put(value, kept.old)


def _made(kept, real, new):
    """Returns the object that replaces a kept one."""
    old = kept.old
    kind = type(old)
    if kept.pieces is None:
        base = tuple if isinstance(old, tuple) else frozenset
        made = base.__new__(kind, [new(item) for item in old])
    else:
        text = real[0][:0].join([real[piece] if type(piece) is int else piece for piece in kept.pieces])
        if isinstance(old, bytearray):
            old[:] = text
            return old
        if kind in (str, bytes):
            return text
        if kept.is_held_by_c:
            _copy_members(kind(text), old)
            return old
        if not issubclass(kind, TEXTS):
            return kind(text)
        made = (str if isinstance(old, str) else bytes).__new__(kind, text)
    attributes = getattr(old, "__dict__", None)
    if attributes:
        made.__dict__.update(attributes)
    return made


def _copy_members(source, target):
    """Copies the slots of an object to another one of the same class."""
    for owner in type(target).__mro__:
        for member in vars(owner).values():
            if type(member).__name__ == "member_descriptor":
                try:
                    member.__set__(target, member.__get__(source))
                except AttributeError:
                    _empty(member, target)


def _empty(member, thing):
    try:
        member.__delete__(thing)
    except AttributeError:
        pass  # the slot is empty


def referents(holder):
    """Returns what an object refers to, with the keys of a dictionary, which `gc.get_referents` leaves out."""
    if type(holder) is dict:
        return [*holder, *holder.values()]
    found = gc.get_referents(holder)
    if issubclass(type(holder), dict):
        known = set(map(id, found))
        found += [name for name in dict.keys(holder) if id(name) not in known]
    return found


def path_kinds():
    """Returns a tuple with the class of paths, if pathlib is loaded."""
    kind = getattr(sys.modules.get("pathlib"), "PurePath", None)
    return () if kind is None else (kind,)


def own_frames():
    """Returns the ids of the frames in which the front end runs."""
    found = set()
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith(FOLDER):
            found.add(id(frame))
        frame = frame.f_back
    return found


def interned_texts():
    """Returns the id of the interpreter's table of interned texts, which the collector shows from CPython 3.14 on. It owns no references.
    """
    text = sys.intern("a text that Snapboot has interned")
    return {id(table) for table in gc.get_objects() if type(table) is dict and table.get(text) is text}


def front_end_objects(wanted=()):
    """Returns the ids of objects that belong to the front end or to the interpreter alone, except those in `wanted`."""
    found = interned_texts()
    stack = []
    for holder in gc.get_objects():
        kind = type(holder)
        if is_module(holder):
            names = NAMES(holder) or {}
            if str(names.get("__name__")).partition(".")[0] == "snapboot":
                stack.append(names)
        elif type(kind.__module__) is str and kind.__module__.startswith("snapboot.front_end"):
            stack.append(holder)
    while stack:
        holder = stack.pop()
        if id(holder) in found or id(holder) in wanted:
            continue
        found.add(id(holder))
        stack += [thing for thing in gc.get_referents(holder) if id(type(thing)) in CONTAINERS and not _is_modules(thing)]
    return found


def _is_modules(thing):
    # An environment may also have an entry of this name.
    return thing is sys.modules or type(thing) is dict and type(thing.get("__builtins__", "")) is not str


FOLDER = __file__.rpartition("/")[0] + "/"
# Compared by exact type, since a class may claim to be one of these.
TEXTS = (str, bytes, bytearray)
# By id: a class may define what it is equal to.
CONTAINERS = frozenset(map(id, (dict, list, tuple, set)))
# Containers that the collector does not track while they hold only texts and numbers.
UNTRACKED = (dict, list, tuple, set, frozenset)
# The number of objects that are looked at together.
BATCH = 100
# An object with at least this reference count is never freed.
IMMORTAL = 1 << 28
