"""Everything that a process holds, as pairs of a path and a value: `app.settings.COLORS[2]`, and what stands there.

The walk goes from the modules down, by name, so that two boots of a program give the same paths where they hold the same. It is made in a
process that is not frozen, since it leaves much behind.
"""

import gc
import sys
from _blake2 import blake2b

from . import process_roots
from .holders_of_texts import TEXTS, front_end_objects, path_kinds

ModuleType = type(sys)
FunctionType = type(lambda: None)
CodeType = type((lambda: None).__code__)
GENERATOR = type((value for value in ()))
CellType = type((lambda value: lambda: value)(0).__closure__[0])


class Walk:
    """One walk, through what is there when it is made. It can be made once.

    own: ids of objects that a thaw renews anyway; what only they hold is left out. roots: more to go down from, by name. translate: takes a
    text or bytes, and returns it as it
    would be in the boot that this one is compared with; None where it is the same.
    """

    def __init__(self, own, roots, translate):
        # The flags follow from options and variables that count, or that a thaw obeys; settings_reads.py sees who reads them.
        self.own = (own | front_end_objects() | {id(sys.path_importer_cache), id(sys.flags)}) - set(map(id, roots.values()))
        self.roots = roots
        self.translate = translate
        self.before = gc.get_objects()
        self.alive = []  # what is made on the way: another object must not get its id
        self.seen = {}  # id: path
        self.entered = set()  # ids of modules that were gone into
        self.stack = []
        self.path_kinds = path_kinds()
        self.left_out = {("site", "USER_BASE"), ("site", "USER_SITE")}  # see context.py: renewed by name
        self.is_text = {str, bytes, bytearray}
        for thing in self.before:
            if type(thing).__name__ in LEFT_OUT:
                parts = gc.get_referents(thing)
                for part in parts[:]:
                    if type(part) is dict:
                        parts += part.values()
            elif issubclass(type(thing), self.path_kinds):
                parts = gc.get_referents(thing)  # which follow from its text
            else:
                continue
            self.own.update(id(part) for part in parts if type(part) in CONTAINERS)

    def run(self):
        """Yields (path, thing, content): content is that of a leaf, as bytes in the other boot's terms; thing the object itself."""
        modules = [(name, module) for name, module in sys.modules.items() if type(name) is str and name.partition(".")[0] != "snapboot"]
        # The main module leads to all others, which have names of their own.
        modules.sort(key=lambda pair: (pair[0] == "__main__", pair[0]))
        for name, module in modules:
            self.seen[id(module)] = name
            if issubclass(type(module), ModuleType):
                self.seen[id(module.__dict__)] = name
        self.stack += [(thing, path) for path, thing in [*modules, *self.roots.items()][::-1]]
        self.stack += self._outside_modules()
        own = (self, self.__dict__, self.before, self.stack, self.seen, self.alive, modules, sys.modules)
        self.own.update(map(id, own))
        counts = {}
        for path, thing, content in self._all():
            number = counts[path] = counts.get(path, 0) + 1
            if (number > 1 and path.startswith(NAMELESS)) or path.startswith(CODECS):
                continue  # it has no place
            yield path if number == 1 else "%s #%d" % (path, number), thing, content

    def _outside_modules(self):
        """What the interpreter itself holds for the program."""
        found = [*process_roots.of_interpreter(), *process_roots.of_process()]
        if "_contextvars" in sys.modules:
            context = sys.modules["_contextvars"].copy_context()
            self.alive.append(context)
            found += [(value, "a context variable, " + variable.name) for variable, value in context.items()]
        if "_signal" in sys.modules:
            handlers = [(number, sys.modules["_signal"].getsignal(number)) for number in range(1, 65)]
            found += [(handler, "the handler of signal %d" % number) for number, handler in handlers]
        return found

    def _all(self):
        yield from self._drain()
        # What only C code holds, or a collection of its own.
        for thing in self.before:
            if id(thing) not in self.seen and id(thing) not in self.own:
                yield from self._nameless(thing)

    def _drain(self):
        while self.stack:
            thing, path = self.stack.pop()
            kind = type(thing)
            if kind in NUMBERS:
                yield path, thing, repr(thing).encode()
                continue
            content = self.content(thing, kind)
            if content is not None:
                if id(thing) in self.own and path.startswith("sys.path["):
                    continue
                yield path, thing, content
                if kind is not str:
                    self.stack += self._beside(thing, kind, path)
                continue
            number = id(thing)
            if number in self.own:
                continue
            if issubclass(kind, type) or kind is FunctionType:
                # They have names of their own, whoever leads there first.
                name = ("<%s>" if kind is FunctionType else "%s") % id_free_name(thing)
                yield path, thing, b"is " + name.encode("utf-8", "surrogatepass")
                if number not in self.seen:
                    self.seen[number] = name
                    if kind is not FunctionType and not thing.__flags__ & HEAP_TYPE:
                        continue  # C code says what is in it
                    below = list(self._below(thing, kind, name))
                    below.reverse()
                    self.stack += below
                continue
            known = self.seen.get(number)
            if known is not None and known != path:
                yield path, thing, b"is " + known.encode("utf-8", "surrogatepass")
                continue
            if known is not None:
                if number in self.entered:
                    continue
                self.entered.add(number)
            self.seen[number] = path
            yield path, thing, b"a " + self._name_of(kind)
            below = list(self._below(thing, kind, path))
            below.reverse()
            self.stack += below

    def _beside(self, thing, kind, path):
        """What a leaf holds besides its value: attributes of subclasses of texts, and the object of a method."""
        if kind is str or kind is bytes or kind in NUMBERS:
            return ()
        if kind is BUILT_IN or kind is METHOD_WRAPPER:
            owner = thing.__self__
            return () if owner is None or issubclass(type(owner), ModuleType) else ((owner, path + ".__self__"),)
        if isinstance(thing, TEXTS):
            return [(value, "%s.%s" % (path, name)) for name, value in self._attribute_pairs(thing, kind)]
        return ()

    def _nameless(self, thing):
        """Texts in what no module leads to: named by what they are, in no order."""
        kind = type(thing)
        if kind.__name__ in LEFT_OUT:
            return
        if kind in CONTAINERS or kind.__module__ != "builtins" and not issubclass(kind, (ModuleType, type)):
            name = self._name_of(kind).decode(errors="replace")
            for below in gc.get_referents(thing):
                if type(below) in self.is_text or isinstance(below, self.path_kinds):
                    content = self.content(below, type(below))
                    if content.startswith(b"snapboot."):
                        continue  # the name of a module of ours
                    path = NAMELESS + "%s{%s %s}" % (name, content[:40].decode(errors="replace"), digest(content))
                    yield path, below, content

    def content(self, thing, kind):
        """The value of a leaf, as bytes; None for what holds others."""
        if kind is str:
            text = self.translate(thing)
            return (thing if text is None else text).encode("utf-8", "surrogatepass")
        if kind is bytes or kind is bytearray:
            text = self.translate(thing)
            return content_of_text(thing if text is None else text)
        if kind in NUMBERS or thing is Ellipsis or thing is NotImplemented:
            return repr(thing).encode()
        if issubclass(kind, str):
            text = self.translate(str.__str__(thing))
            return self._name_of(kind) + b" " + content_of_text(str.__str__(thing) if text is None else text)
        if isinstance(thing, self.path_kinds):
            text = self.translate(str(thing))
            return self._name_of(kind) + b" " + content_of_text(str(thing) if text is None else text)
        if kind in (BUILT_IN, METHOD_WRAPPER, SLOT_WRAPPER, METHOD_DESCRIPTOR):
            return b"built in " + str(getattr(thing, "__qualname__", "")).encode()
        if kind.__name__ == "Pattern" and kind.__module__ == "re":
            return b"pattern " + content_of_text(thing.pattern) + b" %d" % thing.flags
        return None

    def _name_of(self, kind):
        return id_free_name(kind).encode("utf-8", "surrogatepass")

    def _below(self, thing, kind, path):
        """Pairs of what an object holds, and the path of that."""
        if len(path) > LONGEST:
            path = "(%s)" % digest(path.encode("utf-8", "surrogatepass"))
        if issubclass(kind, ModuleType):
            names = self._dict_of(thing)
            for name, value in list(names.items()):
                if (path, name) not in self.left_out:
                    yield value, "%s.%s" % (path, name)
            return
        if issubclass(kind, type):
            yield from self._class(thing, path)
            return
        if issubclass(kind, dict):
            yield from self._mapping(thing, path)
        elif issubclass(kind, (list, tuple)):
            base = list if issubclass(kind, list) else tuple
            if kind in CONTAINERS and all(type(value) in NUMBERS and not (type(value) is int and abs(value) >= LARGE) for value in thing):
                yield digest(repr(thing).encode()), path + " (numbers)"
                return
            for number, value in enumerate(base.__iter__(thing)):
                yield value, "%s[%d]" % (path, number)
        elif issubclass(kind, (set, frozenset)):
            yield from self._set(thing, path)
        elif kind is FunctionType:
            yield from self._function(thing, path)
            return
        elif kind is CodeType:
            yield thing.co_filename, path + ".co_filename"
            yield self._code(thing), path + " (code)"
            return
        elif kind is CellType:
            try:
                yield thing.cell_contents, path
            except ValueError:
                pass
            return
        else:
            yield from self._instance(thing, kind, path)
            return
        if kind not in CONTAINERS:
            yield from self._attributes(thing, kind, path)
            yield from self._in_c(thing, kind, path)

    def _in_c(self, thing, kind, path):
        """What a subclass in C holds besides the items of its base, such as a factory of defaults."""
        known = {id(kind), id(self._dict_of(thing))}
        known.update(id(value) for _, value in self._attribute_pairs(thing, kind))
        if issubclass(kind, dict):
            known.update(map(id, dict.keys(thing)))
            known.update(map(id, dict.values(thing)))
        else:
            base = next(base for base in (list, tuple, set, frozenset) if issubclass(kind, base))
            known.update(map(id, base.__iter__(thing)))
        others = [value for value in gc.get_referents(thing) if id(value) not in known and not isinstance(value, dict)]
        for number, value in enumerate(others):
            yield value, "%s<%d>" % (path, number)

    def _code(self, thing):
        """A text that stands for what code does, without its names of files and lines of its own."""
        parts = [thing.co_code, repr((thing.co_names, thing.co_varnames, thing.co_freevars, thing.co_flags)).encode()]
        for item in thing.co_consts:
            kind = type(item)
            if kind is CodeType:
                parts.append(self._code(item).encode())
            elif kind in NUMBERS or kind is str or kind is bytes:
                parts.append(self.content(item, kind))
            elif kind is tuple or kind is frozenset:
                parts.append(b"%d" % len(item))
        return "line %d %s" % (thing.co_firstlineno, digest(b"\0".join(parts)))

    def _mapping(self, thing, path):
        order = []
        for name, value in list(dict.items(thing)):
            kind = type(name)
            content = None if issubclass(kind, tuple) else self.content(name, kind)
            if content is None:
                step = "[%s]" % self._step(name)
                yield name, path + step + " (key)"
                yield value, path + step
                continue
            if kind is int and not -LARGE < name < LARGE:
                yield name, path + "[address] (key)"
                yield value, path + "[address]"
                continue
            order.append(content)
            step = repr(name) if kind in NUMBERS else content.decode("utf-8", "surrogateescape")
            if kind in self.is_text or kind not in NUMBERS:
                yield name, "%s[%s] (key)" % (path, step)
            yield value, "%s[%s]" % (path, step)
        if len(order) > 1 and path not in self.roots:
            yield digest(b"\0".join(order)), path + " (order)"

    def _set(self, thing, path):
        for step, value in self._in_order(set.__iter__(thing) if isinstance(thing, set) else frozenset.__iter__(thing)):
            yield value, "%s{%s}" % (path, step)
        yield len(thing), path + " (size)"

    def _in_order(self, things):
        """Pairs of a name and a thing, for what has no order: who leads first to what others hold, too, has to be the same in each boot."""
        return sorted([(digest(self._item(thing)), thing) for thing in things], key=lambda pair: pair[0])

    def _step(self, thing):
        """What stands in a path for a key, or an item of a set, that is no leaf."""
        if issubclass(type(thing), tuple):
            return digest(b"\0".join(map(self._item, tuple.__iter__(thing))))
        kind = type(thing)
        if issubclass(kind, WEAK):
            thing = thing()
            kind = type(thing)
        if issubclass(kind, type) or kind is FunctionType:
            return id_free_name(thing)
        if kind is CodeType:
            return "%s %s:%d" % (thing.co_name, digest(self.content(thing.co_filename, str)), thing.co_firstlineno)
        # Others in no order are told by the texts in them.
        below = gc.get_referents(thing)
        names = self._dict_of(thing)
        if type(names) is dict:
            below += names.values()
        contents = sorted({self.content(value, type(value)) for value in below if type(value) in self.is_text})
        return "%s %s" % (kind.__qualname__, digest(b"\0".join(contents)))

    def _item(self, thing):
        """An item of a tuple, for the digest of that."""
        kind = type(thing)
        if kind is int and not -LARGE < thing < LARGE:
            return b"address"
        return self.content(thing, kind) or self._step(thing).encode("utf-8", "surrogatepass")

    def _class(self, thing, path):
        yield ", ".join(map(id_free_name, thing.__mro__)), path + ".__mro__"
        for name, value in list(type.__dict__["__dict__"].__get__(thing).items()):
            if name not in ("__dict__", "__weakref__", "__mro__"):
                yield value, "%s.%s" % (path, name)
        self.seen.update((id(inner), path) for inner in gc.get_referents(thing) if type(inner) is dict)

    def _function(self, thing, path):
        code, doc = thing.__code__, thing.__doc__
        file = code.co_filename
        if id(file) not in self.seen:
            # Most functions of a module share it.
            self.seen[id(file)] = path
            yield file, path + ".__code__.co_filename"
        # What hardly ever is anything but a part of the source is told at once.
        names = self.seen.get(id(thing.__globals__))
        parts = [thing.__name__, thing.__qualname__, self._code(code), doc if type(doc) is str else "", names or ""]
        yield digest("\0".join(parts).encode("utf-8", "surrogatepass")), path + " (function)"
        if type(doc) is not str and doc is not None:
            yield doc, path + ".__doc__"
        for name in ("__defaults__", "__kwdefaults__", "__closure__", "__annotations__"):
            value = getattr(thing, name)
            if value is not None and value != {}:
                yield value, "%s.%s" % (path, name)
        if thing.__dict__:
            yield thing.__dict__, path + ".__dict__"
        if names is None:
            yield thing.__globals__, path + ".__globals__"

    def _instance(self, thing, kind, path):
        if kind.__name__ in LEFT_OUT:
            return
        if issubclass(kind, (int, float, complex)):
            yield (int if issubclass(kind, int) else float if issubclass(kind, float) else complex).__repr__(thing), path + " (value)"
        known = set()
        for name, value in self._attribute_pairs(thing, kind):
            known.add(id(value))
            yield value, "%s.%s" % (path, name)
        names = self._dict_of(thing)
        known.add(id(names))
        known.add(id(kind))
        if issubclass(kind, WEAK):
            try:
                target = thing()
            except Exception:
                target = None
            yield target, path + "()"
            if thing.__callback__ is not None:
                yield thing.__callback__, path + ".__callback__"
            return
        others = [value for value in gc.get_referents(thing) if id(value) not in known and not (type(value) is dict and value is names)]
        for step, value in self._in_order(others) if kind.__name__ == CACHE else enumerate(others):
            yield value, "%s<%s>" % (path, step)
        state = self._state(thing, kind)
        if state is None and not others and not known - {id(kind), id(names)}:
            state = self._opaque(thing, kind)
        if state is not None:
            yield state, path + " (state)"

    def _opaque(self, thing, kind):
        """What can be seen of an object in C that leads nowhere."""
        try:
            with memoryview(thing) as view:
                return digest(bytes(view))
        except Exception:
            pass
        if kind.__module__ in PLAIN:
            try:
                return repr(thing)
            except Exception:
                return None
        return None

    def _state(self, thing, kind):
        """The state of objects in C that their referents do not tell: counters, positions, and what is in buffers. Nothing but methods of
        the interpreter's own types is called."""
        name = (kind.__module__, kind.__name__)
        try:
            if name in TOLD_BY_REPR:
                return repr(thing)
            if name in TOLD_BY_METHODS:
                return repr([getattr(kind, method)(thing) for method in TOLD_BY_METHODS[name]])
            if kind.__name__.endswith("iterator") and kind.__module__ == "builtins":
                return repr(kind.__reduce__(thing)[2:])
            if kind.__module__ in HASHES and "hexdigest" in kind.__dict__:
                return kind.hexdigest(thing)
            if name == ("collections", "deque"):
                return repr(thing.maxlen)
            if name in COMPRESSORS:
                return repr(kind.flush(kind.copy(thing)))
            if kind is GENERATOR and thing.gi_frame is not None:
                return repr((thing.gi_frame.f_lasti, thing.gi_frame.f_lineno))
        except Exception:
            pass
        return None

    def _attributes(self, thing, kind, path):
        for name, value in self._attribute_pairs(thing, kind):
            yield value, "%s.%s" % (path, name)

    def _attribute_pairs(self, thing, kind):
        names = self._dict_of(thing)
        if type(names) is dict:
            self.seen[id(names)] = ""
            for name, value in list(names.items()):
                yield name, value
        for owner in kind.__mro__:
            own = type.__dict__["__dict__"].__get__(owner)
            if "__slots__" in own:
                for name, member in list(own.items()):
                    if type(member) is MEMBER:
                        try:
                            yield name, member.__get__(thing)
                        except AttributeError:
                            pass

    def _dict_of(self, thing):
        """The attributes of an object, as they lie there: nobody's own `__getattribute__` is asked."""
        try:
            names = object.__getattribute__(thing, "__dict__")
        except Exception:
            return None
        self.alive.append(names)
        return names


def digest(content):
    """A short text that stands for a value."""
    return blake2b(content, digest_size=8).hexdigest()


def id_free_name(kind):
    module = getattr(kind, "__module__", None)
    return "%s.%s" % (module if type(module) is str else "?", kind.__qualname__)


def content_of_text(text):
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else b"b:" + bytes(text)


NUMBERS = frozenset((int, float, bool, complex, type(None)))
CONTAINERS = frozenset((dict, list, tuple, set, frozenset))
BUILT_IN = type(len)
METHOD_WRAPPER = type((0).__add__)
SLOT_WRAPPER = type(int.__add__)
METHOD_DESCRIPTOR = type(str.lower)
# Py_TPFLAGS_HEAPTYPE: a class that was made while the program ran.
HEAP_TYPE = 1 << 9
MEMBER = type(FunctionType.__globals__)
WEAK = (type(sys.modules["_weakref"].ref(CONTAINERS.__class__)),) if "_weakref" in sys.modules else ()
# Of these a text tells the state.
PLAIN = frozenset(("datetime", "decimal", "_decimal", "uuid", "zoneinfo", "fractions"))
# So does it of these, and of these what methods tell, all of them without an effect.
TOLD_BY_REPR = frozenset((("builtins", "range"), ("itertools", "count"), ("decimal", "Context")))
TOLD_BY_METHODS = {
    ("_io", "StringIO"): ("getvalue", "tell"),
    ("_io", "BytesIO"): ("getvalue", "tell"),
    ("_thread", "lock"): ("locked",),
    ("random", "Random"): ("getstate",),
}
# What has copies that may be brought to their end.
COMPRESSORS = frozenset((("zlib", "Compress"), ("zlib", "Decompress")))
HASHES = frozenset(("_hashlib", "_md5", "_sha1", "_sha2", "_sha256", "_sha512", "_sha3", "_blake2"))
# How the paths begin of what no module leads to.
NAMELESS = "an object of "
# Which of them were loaded is no state of the program: each is when it is needed.
CODECS = ("encodings.", "<encodings.")
# What functools.lru_cache makes holds its answers in the order of the questions, which often has to do with addresses.
CACHE = "_lru_cache_wrapper"
# They follow the search path, which is renewed; and who has asked for which class.
LEFT_OUT = frozenset(("FileFinder", "_abc_data"))
# Larger numbers are addresses, which are others in each boot.
LARGE = 1 << 31
# A longer path is told by its digest.
LONGEST = 400
