"""Names whose imports are lazy: what a module has in their place, and how they are loaded when they are used.

While a module has such names it is of a class of its own, so that others that read them from it load them, too. It is given its
ordinary class again when the last one is loaded. The semantics are those of PEP 810, but for what docs/reference.md tells.
"""

import _thread
import sys

module_type = type(sys)
names_of = module_type.__dict__["__dict__"].__get__
get_attribute = module_type.__getattribute__
set_attribute = module_type.__setattr__
getframe = sys._getframe
thread = _thread.get_ident


class Unloaded:
    """What stands in the place of a name that was imported lazily and not used yet. There is one only."""

    __slots__ = ()

    def __repr__(self):
        return "<imported when it is used>"


UNLOADED = Unloaded()


class Place(ImportError):
    """Where the lazy import stands that an error comes from."""


Place.__name__ = Place.__qualname__ = "ImportError"
Place.__module__ = "builtins"


class Step:
    """A lazy import statement."""

    __slots__ = ("name", "member", "level", "full", "line")

    def __init__(self, name, member, level, full, line):
        self.name = name
        # None: `import a.b`, "": `import a.b as c`, else `from a.b import MEMBER`.
        self.member = member
        self.level = level
        self.full = full
        self.line = line

    def bound(self):
        """The full name of what it binds, should that be a module."""
        if self.member is None:
            return self.full.partition(".")[0]
        return "%s.%s" % (self.full, self.member) if self.member else self.full

    def run(self, names):
        """Imports it, for the module with those names. Returns what the statement binds."""
        import_ = sys.modules["builtins"].__import__
        if self.member:
            return member_of(import_(self.name, names, None, (self.member,), self.level), self.member)
        module = import_(self.name, names, None, None, 0)
        if self.member is not None:
            for part in self.name.split(".")[1:]:
                module = member_of(module, part)
        return module


def member_of(module, name):
    """What `from MODULE import NAME` gives."""
    try:
        return getattr(module, name)
    except AttributeError:
        pass
    package = getattr(module, "__name__", "<unknown module name>")
    try:
        return sys.modules["%s.%s" % (package, name)]
    except KeyError:
        pass
    path = getattr(module, "__file__", None)
    raise ImportError(
        "cannot import name %r from %r (%s)" % (name, package, path or "unknown location"), name=package, path=path
    )


class Waiting:
    """The lazy imports of a module."""

    __slots__ = ("names", "steps", "module")

    def __init__(self, names, module):
        self.names = names
        # By the name that they bind.
        self.steps = {}
        self.module = module


class Names:
    """The lazy imports of this process."""

    def __init__(self, is_lazy):
        """is_lazy: says whether an import of a module may be, by its full name and what is imported from it."""
        self._is_lazy = is_lazy
        self._waiting = {}  # by the ids of the names of modules, which are kept as long
        # Modules that were imported lazily, by the package that they are in: it has them once something uses them.
        self._submodules = {}
        # Threads and the names that they load. To the import itself a name is not there yet.
        self._loading = set()
        # How many names were loaded when they were used.
        self.loaded = 0
        self.unloaded = UNLOADED
        self._kind = self._make_kind()

    def is_waiting(self, module):
        """Whether a module has names that are not loaded."""
        return id(names_of(module)) in self._waiting

    # What the code of modules calls, straight.

    def eager(self, bound, name, member, level, line):
        """Whether an import statement is to be done now. If not, it is noted."""
        names = getframe(1).f_globals
        full = name
        if level:
            full = full_name(name, names, level)
            if full is None:
                return True
        waiting = self._waiting.get(id(names))
        if self._is_there(full, member) or not self._is_lazy(full, member):
            if waiting is not None and bound in waiting.steps:
                self.load_in(names, bound)
            return True
        if waiting is None:
            waiting = self._begin(names)
            if waiting is None:
                return True
        waiting.steps.setdefault(bound, []).append(Step(name, member, level, full, line))
        names[bound] = UNLOADED
        self._note_submodules(full, member)
        return False

    def load(self, name):
        """The value of a name that was not loaded a moment ago."""
        return self.load_in(getframe(1).f_globals, name)

    def reveal(self, *wanted):
        """Loads those names of the module that calls it, or all. Returns no arguments."""
        self._load_all(getframe(1).f_globals, wanted)
        return ()

    def arguments(self, source, names=None, *others):
        """The arguments of `eval` or `exec`, once the names are loaded that their code may read."""
        used = names if type(names) is dict else getframe(1).f_globals
        waiting = self._waiting.get(id(used))
        if waiting is not None:
            self._load_all(used, [name for name in list(waiting.steps) if mentions(source, name)])
        if names is None and not others:
            return (source,)
        return (source, names, *others)

    def evaluate(self, source, names, *others):
        """`eval`, for code that does not call `arguments`."""
        return eval(*self.arguments(source, names, *others))

    # Underneath.

    def load_in(self, names, name):
        """Loads that name of a module, given the names that it has."""
        waiting = self._waiting.get(id(names))
        if waiting is None and names.get(name) is UNLOADED:
            # A copy of what a module has.
            module = sys.modules.get(names.get("__name__"))
            if isinstance(module, module_type) and names_of(module) is not names:
                value = names[name] = self.load_in(names_of(module), name)
                return value
        steps = waiting.steps.get(name) if waiting is not None else None
        if steps is None or names.get(name) is not UNLOADED:
            # Another thread was faster, or the program has put something else in its place.
            if name in names and names[name] is not UNLOADED:
                return names[name]
            raise NameError("name %r is not defined" % name)
        loading = (thread(), id(names), name)
        is_first = loading not in self._loading
        self._loading.add(loading)
        try:
            for step in list(steps):
                try:
                    value = step.run(names)
                except Exception as error:
                    tell_place(error, step, names)
                    raise
        finally:
            if is_first:
                self._loading.discard(loading)
        self.loaded += 1
        if names.get(name) is UNLOADED:
            names[name] = value
        waiting.steps.pop(name, None)
        if not waiting.steps:
            self._waiting.pop(id(names), None)
            self._settle(waiting.module)
        return names.get(name, value)

    def _load_all(self, names, wanted=()):
        waiting = self._waiting.get(id(names))
        if waiting is not None:
            for name in list(waiting.steps):
                if not wanted or name in wanted:
                    if names.get(name) is UNLOADED:
                        self.load_in(names, name)

    def reveal_module(self, module):
        """Loads all names of a module."""
        self._load_all(names_of(module))

    def _is_there(self, full, member):
        """Whether nothing is left to be loaded by an import of it."""
        module = sys.modules.get(full)
        if module is None:
            return full in sys.modules
        if not member:
            return True
        if not isinstance(module, module_type):
            return hasattr(module, member)
        return names_of(module).get(member, UNLOADED) is not UNLOADED

    def _begin(self, names):
        module = sys.modules.get(names.get("__name__"))
        if type(module) not in (module_type, self._kind) or names_of(module) is not names:
            return None
        waiting = self._waiting[id(names)] = Waiting(names, module)
        module.__class__ = self._kind
        return waiting

    def _settle(self, module):
        """Gives a module its ordinary class when nothing is left to be loaded."""
        if type(module) is self._kind and not self._waiting.get(id(names_of(module))):
            own = names_of(module)
            if all(child in own for child in self._submodules.get(own.get("__name__"), ())):
                module.__class__ = module_type

    def _note_submodules(self, full, member):
        while True:
            package, _, child = full.rpartition(".")
            if not package:
                return
            self._submodules.setdefault(package, set()).add(child)
            self.has_been_run(package)
            full = package

    def has_been_run(self, name):
        """To be called when a module was run."""
        module = sys.modules.get(name)
        if name in self._submodules and type(module) is module_type:
            module.__class__ = self._kind
            self._settle(module)
        elif module is not None and type(module) is not self._kind and isinstance(module, module_type):
            # It has given itself another class, behind which nobody would see what is not loaded.
            if self.is_waiting(module):
                self.reveal_module(module)

    def _submodule(self, module, name):
        """A module that another one, which may not have been run, has imported into this package. None: it has not."""
        package = names_of(module).get("__name__")
        if name not in self._submodules.get(package, ()):
            return None
        full = "%s.%s" % (package, name)
        if full in sys.modules:
            return None
        sys.modules["builtins"].__import__(full)
        self._settle(module)
        return sys.modules.get(full)

    def _is_kept(self, module, name, value):
        """Whether an attribute may be set. Python gives packages the modules that were imported from them: before the package's own
        import statement, where that binds the same name to something else."""
        names = names_of(module)
        waiting = self._waiting.get(id(names))
        steps = waiting.steps.get(name) if waiting is not None else None
        if steps is None or names.get(name) is not UNLOADED:
            return True
        full = "%s.%s" % (names.get("__name__"), name)
        if value is sys.modules.get(full) and steps[-1].bound() != full:
            return False
        del waiting.steps[name]
        if not waiting.steps:
            self._waiting.pop(id(names), None)
        return True

    def _make_kind(self):
        own = self

        class module(module_type):
            __slots__ = ()
            __module__ = "builtins"

            def __getattribute__(self, name):
                value = get_attribute(self, name)
                if value is UNLOADED:
                    names = names_of(self)
                    if (thread(), id(names), name) in own._loading:
                        raise missing(names, name)
                    return own.load_in(names, name)
                if name == "__dict__":
                    own.reveal_module(self)
                return value

            def __getattr__(self, name):
                if names_of(self).get(name) is UNLOADED:
                    raise missing(names_of(self), name)
                found = own._submodule(self, name)
                return get_attribute(self, name) if found is None else found

            def __setattr__(self, name, value):
                if own._is_kept(self, name, value):
                    set_attribute(self, name, value)

            def __dir__(self):
                names = names_of(self)
                listed = names.get("__dir__")
                return listed() if callable(listed) else list(names)

        module.__qualname__ = "module"
        return module


def full_name(name, names, level):
    """The full name of a module that is imported relatively. None: Python has to say it."""
    package = names.get("__package__")
    if not isinstance(package, str) or not package:
        return None
    parts = package.rsplit(".", level - 1)
    if len(parts) < level:
        return None
    return "%s.%s" % (parts[0], name) if name else parts[0]


def missing(names, name):
    """The error for an attribute that a module does not have."""
    return AttributeError("module %r has no attribute %r" % (names.get("__name__"), name))


def mentions(source, name):
    """Whether text or code may read a global of that name."""
    kind = type(source)
    if kind is str:
        return name in source
    if kind is bytes:
        return name.encode() in source
    code = getattr(source, "co_names", None)
    return code is None or name in code or any(mentions(one, name) for one in source.co_consts if type(one) is kind)


def tell_place(error, step, names):
    """Has an error say which import statement it comes from, and how that is done where it stands."""
    what = "%s.%s" % (step.full, step.member) if step.member else step.full
    place = Place(
        "%s, line %d, imports %s lazily, which failed when it was used; --lazy='!%s' has it imported where it stands"
        % (names.get("__file__", "<string>"), step.line, what, step.full),
        name=step.full,
    )
    while error.__cause__ is not None:
        error = error.__cause__
        if type(error) is Place:
            return
    error.__cause__ = place
