"""Learns what importing a module changes outside the module: such a module is not imported lazily.

Found, not listed: while a module's body runs, the process is compared with what it was before. What a module changes that is imported
meanwhile is that module's own. Costs a few tenths of a second in a large program, once.
"""

import _thread
import sys

EXACTLY_OUR_OWN = "changes the garbage collector"  # it is held back while modules are imported
module_type = type(sys)
names_of = module_type.__dict__["__dict__"].__get__


CONTAINERS = (dict, list, set)
# What is registered there is seen otherwise, or of no effect.
SPECIAL = ("sys", "builtins", "copyreg", "warnings")


def length_of(container):
    """The length of one, whatever a derived class does."""
    kind = type(container)
    if kind in CONTAINERS:
        return len(container)
    return next(base.__len__(container) for base in CONTAINERS if issubclass(kind, base))


def holds(container, known, name):
    """Whether there is something of the module of that name among what was added to a container."""
    if isinstance(container, dict):
        added = [one for item in list(dict.items(container))[known:] for one in item]
    else:
        added = (
            list.__getitem__(container, slice(known, None))
            if isinstance(container, list)
            else list(set.__iter__(container))
        )
    for one in added:
        for inner in one if type(one) in (list, tuple, set) else (one,):
            if name in (
                getattr(type(inner), "__module__", None),
                getattr(inner, "__module__", None) if callable(inner) else None,
            ):
                return True
    return False


class Effects:
    """Watches modules being run. To be ended."""

    def __init__(self, make_state):
        """make_state: makes the State of process_state.py, given what counts the variables that were written."""
        self._state = make_state(environment)
        self._running = []  # names of modules, and what each has changed so far
        self._noted = []
        self._sizes = {}
        self._containers = {}  # of modules, by their names
        self._lengths = {}
        self._pickled = set(getattr(sys.modules.get("copyreg"), "dispatch_table", ()))
        self._modules = frozenset(sys.modules)
        self._look()
        self._last = counts()
        self._undo = []
        self._watch_calls()

    def begin(self, name):
        """A module is about to be run."""
        self._credit()
        self._running.append((name, []))

    def end(self):
        """It has been run. Returns what it has changed, in words."""
        self._credit()
        return self._running.pop()[1]

    def is_running(self):
        """Whether a module is watched."""
        return bool(self._running)

    def stop(self):
        """Takes away what notices calls."""
        while self._undo:
            self._undo.pop()()

    def _credit(self):
        """Whoever runs now has made the changes since the last look."""
        found = [change for change in self._state.changes() if change != EXACTLY_OUR_OWN]
        found += self._look()
        now = counts()
        found += ["changes " + what for what, number in now.items() if number != self._last.get(what, number)]
        self._last = now
        found += self._pickling()
        found += self._noted
        self._noted = []
        if self._running:
            self._running[-1][1].extend(one for one in found if one not in self._running[-1][1])

    def _look(self):
        """What was added to modules that had been run, and to sys.modules."""
        found = []
        running = {name for name, _ in self._running}
        innermost = self._running[-1][0] if self._running else None
        sizes = {}
        for name, module in list(sys.modules.items()):
            if innermost is not None and name not in self._modules and not name.startswith(innermost + "."):
                # What is imported is there by its own name.
                if getattr(module, "__name__", None) != name and name != innermost:
                    found.append("adds %s to sys.modules" % name)
            if not isinstance(module, module_type):
                continue
            names = names_of(module)
            if names.get("__name__") != name or is_initialising(names):
                continue
            size, before = len(names), self._sizes.get(name)
            sizes[name] = size
            if before is None or size != before:
                self._containers[name] = [
                    one for one in names.items() if issubclass(type(one[1]), CONTAINERS) and one[0][:2] != "__"
                ]
            if name not in running and name not in SPECIAL:
                for key, container in self._containers[name]:
                    length = length_of(container)
                    known = self._lengths.get(id(container))
                    if length == known:
                        continue
                    self._lengths[id(container)] = length
                    if (
                        known is not None
                        and known < length
                        and innermost is not None
                        and holds(container, known, innermost)
                    ):
                        found.append("is registered in %s.%s" % (name, key))
            if before is not None and size > before and name not in running:
                for key in list(names)[before:]:
                    if type(key) is str and not key.startswith("__") and "%s.%s" % (name, key) not in sys.modules:
                        found.append("adds %s to %s" % (key, name))
        self._sizes = sizes
        self._modules = frozenset(sys.modules)
        return found

    def forget(self):
        """What has changed since the last look is nobody's."""
        running, self._running = self._running, []
        self._credit()
        self._running = running

    def _pickling(self):
        """Whether the way was changed in which objects of others are copied."""
        table = getattr(sys.modules.get("copyreg"), "dispatch_table", {})
        innermost = self._running[-1][0] if self._running else ""
        new = [kind for kind in list(table) if kind not in self._pickled]
        self._pickled.update(new)
        return ["changes how %s is copied" % kind for kind in new if not kind.__module__.startswith(innermost)]

    def _note(self, what):
        if self._running and what not in self._noted:
            self._noted.append(what)

    def _watch_calls(self):
        """Of some changes there is nothing to be seen but the call."""
        codecs = sys.modules.get("codecs")
        for name in ("register", "register_error"):
            self._watch(codecs, name, "registers a codec")
        for name in ("stdout", "stderr"):
            # Whoever prints asks for this method each time.
            self._watch(getattr(sys, name, None), "write", "writes to sys." + name)
        abc = sys.modules.get("abc")
        if abc is not None:
            register = abc.ABCMeta.register

            def watched(cls, subclass):
                own = (self._running[-1][0] if self._running else None, None)
                homes = [getattr(kind, "__module__", None) for kind in (cls, subclass)]
                # A module that came meanwhile would not be there.
                if not any(home in own or home not in self._modules for home in homes):
                    self._note("registers %s with %s" % (subclass, cls))
                return register(cls, subclass)

            abc.ABCMeta.register = watched
            self._undo.append(lambda: setattr(abc.ABCMeta, "register", register))

    def _watch(self, owner, name, what):
        own = getattr(owner, "__dict__", None)
        original = getattr(owner, name, None)
        if own is None or original is None:
            return
        was_own = name in own

        def watched(*arguments, **options):
            self._note(what)
            return original(*arguments, **options)

        def undo():
            if own.get(name) is watched:
                setattr(owner, name, original) if was_own else delattr(owner, name)

        try:
            setattr(owner, name, watched)
        except (AttributeError, TypeError):
            return
        self._undo.append(undo)


def environment():
    """The variables of the environment."""
    data = getattr(getattr(sys.modules.get("os"), "environ", None), "_data", {})
    return hash(frozenset(data.items()))


def counts():
    """What there is of things that are registered, by name."""
    modules = sys.modules
    found = {"the threads": _thread._count()}
    for what, module, read in (
        ("what is called at exit", "atexit", lambda module: module._ncallbacks()),
        ("the levels of logging", "logging", lambda module: len(module._levelToName)),
        ("the class of loggers", "logging", lambda module: id(module._loggerClass)),
        ("sys.meta_path", "sys", lambda module: len(module.meta_path)),
    ):
        module = modules.get(module)
        if module is not None:
            try:
                found[what] = read(module)
            except AttributeError:
                pass  # it is still being run
    return found


def is_initialising(names):
    """Whether a module is being run."""
    return getattr(names.get("__spec__"), "_initializing", False)
