"""Records who seeded which generator: a generator that the program seeded itself continues; one that drew its seed from the kernel must
not.

A generator's state does not show where its seed came from. So a few functions of the standard library and of libraries with a recipe are
watched while the program boots, from the execution of their module on, and are restored before the image is written. The function objects
stay the same all the time, since bound methods hold them (`from random import seed`): only their code is exchanged. Where the methods of
`random.Random` are not as in CPython's module, nobody knows who seeded what, and the program is not frozen.
"""

import _weakref
import sys


class Seeding:
    """The recorded seeding. Create this before the program can import anything."""

    def __init__(self, recipes):
        """recipes: the Recipes, or None."""
        # All by id, with a weak reference that shows whether it is still the same object.
        self._seeded = {}  # random.Random -> whether its seed was given
        self._states = {}  # hash of a state that was read -> the same
        self.authkey = None  # the key that multiprocessing made
        self.is_blind = False  # whether a generator may have been seeded unseen
        self.made_time_uuid = False  # whether libuuid has chosen a clock sequence
        self._undo = []
        self._watches = {
            "random": self._watch_random,
            "multiprocessing.process": self._watch_multiprocessing,
            "uuid": self._watch_uuid,
        }
        for recipe in recipes.all if recipes is not None else ():
            self._watches.update((name, self._with_replace(watch)) for name, watch in recipe.watches().items())
        self._finder = Finder(self._watches)
        sys.meta_path.insert(0, self._finder)
        for name in [name for name in self._watches if name in sys.modules]:
            self._watches.pop(name)(sys.modules[name])

    def end(self):
        """Restores all functions. Call before the image is written."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        self._watches.clear()
        while self._undo:
            self._undo.pop()()

    def was_given(self, generator):
        """Returns whether the program gave this random.Random its seed; None if no seeding was seen."""
        reference, given = self._seeded.get(id(generator), (None, None))
        return given if reference is not None and reference() is generator else None

    def _record(self, generator, given):
        self._seeded[id(generator)] = _weakref.ref(generator), given

    def _watch_random(self, module):
        if standard_random() is None:
            return

        def seed(original, generator, value, version):
            original(generator, value, version)
            self._record(generator, value is not None)

        def getstate(original, generator):
            state = original(generator)
            self._states[_key(state)] = self.was_given(generator)
            return state

        def setstate(original, generator, state):
            original(generator, state)
            # A state that some generator had comes from that generator's seed; any other was supplied by the program.
            self._record(generator, self._states.get(_key(state), True))

        for watch in (seed, getstate, setstate):
            self._exchange(getattr(module.Random, watch.__name__), watch)
        if hasattr(module, "_inst"):
            self._record(module._inst, False)

    def _exchange(self, function, watch):
        """Redirects calls of `function` to `watch`, which gets the original as its first argument."""
        code, keywords = function.__code__, function.__kwdefaults__
        if code.co_freevars != ("__class__",):
            self.is_blind = True
            return
        original = type(function)(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        function.__code__ = TEMPLATES[watch.__name__].__code__
        function.__kwdefaults__ = {"watch": lambda _, *arguments: watch(original, *arguments)}

        def undo():
            function.__code__, function.__kwdefaults__ = code, keywords

        self._undo.append(undo)

    def _replace(self, module, name, value):
        original = module.__dict__[name]
        module.__dict__[name] = value
        self._undo.append(lambda: module.__dict__.__setitem__(name, original))

    def _with_replace(self, watch):
        return lambda module: watch(module, self._replace)

    def _watch_multiprocessing(self, module):
        self.authkey = module.current_process()._config.get("authkey")

    def _watch_uuid(self, module):
        generate = module.__dict__.get("_generate_time_safe")
        if generate is None:
            return

        def generate_time_safe():
            self.made_time_uuid = True
            return generate()

        self._replace(module, "_generate_time_safe", generate_time_safe)


class Finder:
    """Finds no module, but passes each watched module to its watch as soon as the module was executed."""

    def __init__(self, watches):
        self._watches = watches

    def find_spec(self, name, path=None, target=None):
        """importlib's interface: returns None, unless a watch waits for the module; then the result of the other finders."""
        if name not in self._watches:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                self._watch_execution(name, spec.loader)
                return spec
        return None

    def _watch_execution(self, name, loader):
        if isinstance(loader, type):
            return  # a loader shared by all built-in modules: no watched module is built in
        execute = loader.exec_module

        def exec_module(module):
            del loader.exec_module
            execute(module)
            # Other code may have looked up the module without executing it.
            self._watches.pop(name, lambda _: None)(module)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass  # a loader without attributes: its module is not watched


def standard_random():
    """Returns the module `random` if it is loaded, and Python's own; the program may have one of that name."""
    random = sys.modules.get("random")
    kind, base = (getattr(module, "Random", None) for module in (random, sys.modules.get("_random")))
    return random if isinstance(kind, type) and isinstance(base, type) and issubclass(kind, base) else None


def _key(state):
    try:
        return hash(state)
    except TypeError:
        return None  # not a state of a random.Random


def _templates(__class__):
    # These use the cell of methods that call super(): code can only be exchanged for code with the same cells.
    def seed(self, a=None, version=2, *, watch):
        return watch(__class__, self, a, version)

    def getstate(self, *, watch):
        return watch(__class__, self)

    def setstate(self, state, *, watch):
        return watch(__class__, self, state)

    return {function.__name__: function for function in (seed, getstate, setstate)}


TEMPLATES = _templates(None)
