"""Everything that a process holds, as pairs of a path and a value: `app.settings.COLORS[2]`, and the value there.

The walk goes down from the modules, by name, so that two boots of a program give the same paths if they hold the same. It runs in a process
that is not frozen, since it leaves many objects behind.
"""

import gc
import sys

from . import object_states, process_roots
from .holders_of_texts import TEXTS, front_end_objects, path_kinds
from .modules import MODULE, NAMES, is_module
from .object_names import LARGE, content_of_text, digest, id_free_name, is_address

FunctionType = type(lambda: None)
CodeType = type((lambda: None).__code__)
CellType = type((lambda value: lambda: value)(0).__closure__[0])


class Walk:
    """One walk through the objects that exist when it is created. It can run once.

    own: ids of objects that a thaw renews anyway; what only they hold is left out. roots: more starting points, by name. translation: the
    Translation of texts into those of the boot that this one is compared with; None where they are the same. fingerprint: a function that
    returns a number for a text or bytes, the same in all boots.
    """

    def __init__(self, own, roots, translation, fingerprint):
        # The flags follow from options and variables that count or that a thaw renews; settings_reads.py records who reads them.
        self.own = (own | front_end_objects() | {id(sys.path_importer_cache), id(sys.flags)}) - set(map(id, roots.values()))
        self.roots = roots
        self.translation = translation
        self.fingerprint = fingerprint
        self.before = gc.get_objects()
        self.alive = []  # objects created on the way: no other object may reuse their ids
        self.seen = {}  # id: path
        self.entered = set()  # ids of modules that were entered
        self.stack = []
        self.rows = []
        self.sorts = {}  # by the id of a class: see _sort_of
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
                parts = gc.get_referents(thing)  # they follow from its text
            else:
                continue
            self.own.update(id(part) for part in parts if type(part) in CONTAINERS)

    def run(self):
        """Returns pairs of an object and its content by path. Content is the value of a leaf, as text in the other boot's terms."""
        modules = [(name, module) for name, module in sys.modules.items() if type(name) is str and name.partition(".")[0] != "snapboot"]
        # The main module comes last: it leads to all others, which have names of their own.
        modules.sort(key=lambda pair: (pair[0] == "__main__", pair[0]))
        for name, module in modules:
            self.seen[id(module)] = name
            if is_module(module):
                self.seen[id(NAMES(module))] = name
        self.stack += [(thing, path) for path, thing in [*modules, *self.roots.items()][::-1]]
        self.stack += self._outside_modules()
        own = (self, self.__dict__, self.before, self.stack, self.seen, self.alive, self.rows, self.sorts, modules, sys.modules)
        self.own.update(map(id, own))
        self._drain()
        # Objects that only C code, or a collection of its own, holds.
        for thing in self.before:
            if id(thing) not in self.seen and id(thing) not in self.own:
                self._nameless(thing)
        self._translate()
        found, more = {}, {}
        for path, thing, content in self.rows:
            if path not in found:
                if not path.startswith(CODECS):
                    found[path] = thing, content
            elif not path.startswith(NAMELESS):  # how many there are is not part of the result
                more.setdefault(path, [found[path]]).append((thing, content))
        for path, alike in more.items():
            # Items of a set with the same name have the order of their addresses.
            found[path], *others = sorted(alike, key=lambda row: row[1])
            found.update(("%s #%d" % (path, number), row) for number, row in enumerate(others, 2))
        return found

    def _translate(self):
        """Translates texts into the other boot's terms, where the walk has not done so."""
        if self.translation is None:
            return
        for at in range(0, len(self.rows), BATCH):
            if self.translation.finds_value_in("\0".join([content for _, _, content in self.rows[at : at + BATCH]])):
                for number, (path, thing, content) in enumerate(self.rows[at : at + BATCH], at):
                    if content is thing:
                        self.rows[number] = path, thing, self._there(thing)

    def _outside_modules(self):
        """Yields what the interpreter itself holds for the program."""
        found = [*process_roots.of_interpreter(), *process_roots.of_process()]
        if "_contextvars" in sys.modules:
            context = sys.modules["_contextvars"].copy_context()
            self.alive.append(context)
            found += [(value, "a context variable, " + variable.name) for variable, value in context.items()]
        if "_signal" in sys.modules:
            handlers = [(number, sys.modules["_signal"].getsignal(number)) for number in range(1, 65)]
            found += [(handler, "the handler of signal %d" % number) for number, handler in handlers]
        return found

    def _drain(self):
        add, stack, seen, own = self.rows.append, self.stack, self.seen, self.own
        while stack:
            thing, path = stack.pop()
            kind = type(thing)
            sort = self.sorts.get(id(kind)) or self._sort_of(kind)
            number = id(thing)
            if sort is LEAF:
                add((path, thing, self.content(thing, kind)))
                below = self._beside(thing, kind, path)
            elif number in own:
                continue
            elif sort is NAMED:
                # They have names of their own, whichever path reaches them first.
                name = seen.get(number)
                if name is not None:
                    add((path, thing, "is " + name))
                    continue
                seen[number] = name = ("<%s>" if kind is FunctionType else "%s") % id_free_name(thing)
                add((path, thing, "is " + name))
                if kind is not FunctionType and not thing.__flags__ & HEAP_TYPE:
                    continue  # its C code reports its contents
                below = self._below(thing, kind, name)
            else:
                known = seen.get(number)
                if known is not None and known != path:
                    add((path, thing, "is " + known))
                    continue
                if known is not None:
                    if number in self.entered:
                        continue
                    self.entered.add(number)
                seen[number] = path
                add((path, thing, sort))
                below = self._below(thing, kind, path)
            others = []
            for pair in below:
                kind = type(pair[0])
                if kind is str:
                    add((pair[1], pair[0], pair[0]))
                elif kind in NUMBERS:
                    add((pair[1], pair[0], repr(pair[0])))
                else:
                    others.append(pair)
            others.reverse()
            stack += others

    def _sort_of(self, kind):
        """Returns how the walk treats objects of a class: leaves, objects with a name, and otherwise a row that describes their parts."""
        if issubclass(kind, type) or kind is FunctionType:
            sort = NAMED
        elif (
            kind in LEAVES
            or kind in NUMBERS
            or issubclass(kind, str)
            or issubclass(kind, self.path_kinds)
            or (kind.__name__ == "Pattern" and kind.__module__ == "re")
        ):
            sort = LEAF
        else:
            sort = "a " + id_free_name(kind)
        self.alive.append(kind)
        self.sorts[id(kind)] = sort
        return sort

    def _beside(self, thing, kind, path):
        """Yields what a leaf holds besides its value: attributes of subclasses of texts, and the object of a method."""
        if kind is str or kind is bytes or kind in NUMBERS:
            return ()
        if kind is BUILT_IN or kind is METHOD_WRAPPER:
            owner = thing.__self__
            return () if owner is None or is_module(owner) else ((owner, path + ".__self__"),)
        if isinstance(thing, TEXTS):
            return [(value, "%s.%s" % (path, name)) for name, value in self._attribute_pairs(thing, kind)]
        return ()

    def _nameless(self, thing):
        """Yields texts in objects that no module leads to, named by their contents, in no order."""
        kind = type(thing)
        if kind.__name__ in LEFT_OUT:
            return
        if kind in CONTAINERS or kind.__module__ != "builtins" and not issubclass(kind, (MODULE, type)):
            name = id_free_name(kind)
            for below in gc.get_referents(thing):
                if type(below) in self.is_text or issubclass(type(below), self.path_kinds):
                    content = self.content(below, type(below))
                    if content.startswith("snapboot."):
                        continue  # the name of a module of ours
                    self.rows.append((nameless_path(name, content), below, content))

    def _there(self, text):
        """Returns a text or bytes in the other boot's terms."""
        other = None if self.translation is None else self.translation.translate(text)
        return text if other is None else other

    def content(self, thing, kind, there=None):
        """Returns the value of a leaf as text; None for an object that holds others. there: what it holds in the other boot's terms, a
        text or bytes; None for what the translation says."""
        if kind is str:
            return self._there(thing) if there is None else there
        if kind is bytes or kind is bytearray:
            return content_of_text(self._there(thing) if there is None else there)
        if kind in NUMBERS or thing is Ellipsis or thing is NotImplemented:
            return repr(thing)
        if issubclass(kind, str):
            return "%s %s" % (id_free_name(kind), self._there(str.__str__(thing)) if there is None else there)
        if issubclass(kind, self.path_kinds):
            return "%s %s" % (id_free_name(kind), self._there(str(thing)) if there is None else there)
        if kind in TOLD_BY_NAME:
            return "built in " + str(getattr(thing, "__qualname__", ""))
        if kind.__name__ == "Pattern" and kind.__module__ == "re":
            return "pattern %s %d" % (content_of_text(thing.pattern), thing.flags)
        return None

    def _below(self, thing, kind, path):
        """Yields pairs of an object's part and the path of that part."""
        if len(path) > LONGEST:
            path = "(%s)" % digest(path)
        if kind is FunctionType:
            return self._function(thing, path)
        if kind is dict:
            return self._mapping(thing, path)
        if issubclass(kind, MODULE):
            pairs = [(value, "%s.%s" % (path, name)) for name, value in self._dict_of(thing).items() if (path, name) not in self.left_out]
            return pairs
        if issubclass(kind, type):
            return self._class(thing, path)
        if kind is CodeType:
            return (thing.co_filename, path + ".co_filename"), (self._code(thing), path + " (code)")
        if kind is CellType:
            try:
                return ((thing.cell_contents, path),)
            except ValueError:
                return ()
        if not issubclass(kind, (dict, list, tuple, set, frozenset)):
            return self._instance(thing, kind, path)
        return self._container(thing, kind, path)

    def _container(self, thing, kind, path):
        if issubclass(kind, dict):
            yield from self._mapping(thing, path)
        elif issubclass(kind, (list, tuple)):
            base = list if issubclass(kind, list) else tuple
            plain = kind in CONTAINERS
            if plain and all([type(value) in NUMBERS and not (type(value) is int and abs(value) >= LARGE) for value in thing]):
                yield digest(repr(thing)), path + " (numbers)"
                return
            if plain and len(thing) > 1 and all([issubclass(type(value), type) or type(value) is FunctionType for value in thing]):
                # Made from a set, their order is that of their addresses.
                names = [id_free_name(value) for value in thing]
                yield digest("\0".join(names)), path + " (order)"
                for name, value in sorted(zip(names, thing), key=lambda pair: pair[0]):
                    yield value, "%s{%s}" % (path, name)
                return
            is_search_path = path == "sys.path"
            for number, value in enumerate(base.__iter__(thing)):
                if not (is_search_path and id(value) in self.own):
                    yield value, "%s[%d]" % (path, number)
        else:
            yield from self._set(thing, path)
        if kind not in CONTAINERS:
            yield from self._attributes(thing, kind, path)
            yield from self._in_c(thing, kind, path)

    def _in_c(self, thing, kind, path):
        """Yields what a subclass in C holds besides the items of its base, such as the factory of a defaultdict."""
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
        """Returns a text that identifies what the code does, without its file names and line numbers."""
        parts = ["%x %d" % (self.fingerprint(thing.co_code), thing.co_flags)]
        for names in (thing.co_names, thing.co_varnames, thing.co_freevars):
            parts.append("%d" % len(names))
            parts += names
        for item in thing.co_consts:
            kind = type(item)
            if kind is CodeType:
                parts.append(self._code(item))
            elif kind in NUMBERS or kind is str or kind is bytes:
                parts.append(self.content(item, kind))
            elif kind is tuple or kind is frozenset:
                parts.append("%d" % len(item))
        return "line %d %x" % (thing.co_firstlineno, self.fingerprint("\0".join(parts)))

    def _mapping(self, thing, path):
        order, pairs = [], []
        for name, value in list(dict.items(thing)):
            kind = type(name)
            if kind is str:
                text = self._there(name)
                order.append(text)
                place = "%s[%s]" % (path, text)
                self.rows.append((place + " (key)", name, text))
                pairs.append((value, place))
                continue
            content = None if issubclass(kind, tuple) else self.content(name, kind)
            if content is None:
                place = "%s[%s]" % (path, self._step(name))
                pairs.append((name, place + " (key)"))
                pairs.append((value, place))
                continue
            if is_address(name, kind):
                pairs.append((name, path + "[address] (key)"))
                pairs.append((value, path + "[address]"))
                continue
            order.append(content)
            place = "%s[%s]" % (path, content)
            if kind not in NUMBERS:
                pairs.append((name, place + " (key)"))
            pairs.append((value, place))
        if len(order) > 1 and path not in self.roots:
            pairs.append((digest("\0".join(order)), path + " (order)"))
        return pairs

    def _set(self, thing, path):
        for step, value in self._in_order(set.__iter__(thing) if isinstance(thing, set) else frozenset.__iter__(thing)):
            yield value, "%s{%s}" % (path, step)
        yield len(thing), path + " (size)"

    def _in_order(self, things):
        """Returns pairs of a name and an object for objects without an order, sorted: each boot must reach shared objects by the same path.
        """
        return sorted([(digest(self._item(thing)), thing) for thing in things], key=lambda pair: pair[0])

    def _step(self, thing):
        """Returns the path step for a key, or an item of a set, that is no leaf."""
        if issubclass(type(thing), tuple):
            return digest("\0".join(map(self._item, tuple.__iter__(thing))))
        kind = type(thing)
        if issubclass(kind, WEAK):
            thing = thing()
            kind = type(thing)
        if issubclass(kind, type) or kind is FunctionType:
            return id_free_name(thing)
        if kind is CodeType:
            return "%s %s:%d" % (thing.co_name, digest(self.content(thing.co_filename, str)), thing.co_firstlineno)
        # Other objects without an order are identified by their texts.
        below = gc.get_referents(thing)
        names = self._dict_of(thing)
        if type(names) is dict:
            below += names.values()
        contents = sorted({self.content(value, type(value)) for value in below if type(value) in self.is_text})
        return "%s %s" % (kind.__qualname__, digest("\0".join(contents)))

    def _item(self, thing):
        """Returns the item of a tuple as it enters the digest."""
        kind = type(thing)
        if is_address(thing, kind):
            return "address"
        return self.content(thing, kind) or self._step(thing)

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
        # Objects that are hardly ever more than a part of the source are handled at once.
        names = self.seen.get(id(thing.__globals__))
        parts = [thing.__name__, thing.__qualname__, self._code(code), doc if type(doc) is str else "", names or ""]
        yield "%x" % self.fingerprint("\0".join(parts)), path + " (function)"
        if type(doc) is not str and doc is not None:
            yield doc, path + ".__doc__"
        # From CPython 3.14 on, the first access to annotations runs code of the program.
        annotate = getattr(thing, "__annotate__", None)
        if annotate is not None:
            yield annotate, path + ".__annotate__"
        for name in PARTS_OF_FUNCTION if annotate is None else PARTS_OF_FUNCTION[:-1]:
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
        state = object_states.state(thing, kind)
        if state is None and not others and not known - {id(kind), id(names)}:
            state = object_states.opaque(thing, kind)
        if state is not None:
            yield state, path + " (state)"

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
        """Returns the attributes of an object directly, without its own `__getattribute__`."""
        try:
            names = object.__getattribute__(thing, "__dict__")
        except Exception:
            return None
        self.alive.append(names)
        return names


def nameless_path(kind, content):
    """Returns the path of a text in an object that no module leads to. kind: the name of its class."""
    return NAMELESS + "%s{%s %s}" % (kind, content[:40], digest(content))


NUMBERS = frozenset((int, float, bool, complex, type(None)))
CONTAINERS = frozenset((dict, list, tuple, set, frozenset))
BUILT_IN = type(len)
METHOD_WRAPPER = type((0).__add__)
TOLD_BY_NAME = (BUILT_IN, METHOD_WRAPPER, type(int.__add__), type(str.lower))
LEAVES = frozenset((str, bytes, bytearray, type(Ellipsis), type(NotImplemented), *TOLD_BY_NAME))
# Py_TPFLAGS_HEAPTYPE: a class created at run time.
HEAP_TYPE = 1 << 9
MEMBER = type(FunctionType.__globals__)
WEAK = (type(sys.modules["_weakref"].ref(CONTAINERS.__class__)),) if "_weakref" in sys.modules else ()
# The beginning of paths of objects that no module leads to.
NAMELESS = "an object of "
# Which of them are loaded is no state of the program: each is loaded on demand.
CODECS = ("encodings.", "<encodings.")
# The result of functools.lru_cache keeps answers in the order of the calls, which often depends on addresses.
CACHE = "_lru_cache_wrapper"
# These follow the search path, which is renewed, and the classes that were asked about.
LEFT_OUT = frozenset(("FileFinder", "_abc_data"))
# Kinds of objects: see Walk._sort_of.
LEAF, NAMED = "a leaf", "is named"
PARTS_OF_FUNCTION = ("__defaults__", "__kwdefaults__", "__closure__", "__annotations__")
# The number of rows that are searched together.
BATCH = 500
# A longer path is replaced by its digest.
LONGEST = 400
