"""The hooks that the program registered, and the state that it sees. The module `snapboot` exposes this to the program."""

import _codecs


class HookError(Exception):
    """An exception in a hook. Its cause is the exception that the hook raised; its text names the hook."""


class FrontEnd:
    """The object that `import snapboot` finds in a frozen program."""

    def __init__(self, freeze_here, recipes):
        """freeze_here: called without arguments to freeze at the caller; returns in the thawed process. recipes: the Recipes, for
        hooks that programs have registered elsewhere."""
        self.state = "freezing"
        self._freeze_here = freeze_here
        self._before = []
        self._after = []
        self._recipes = recipes
        self._after_of_recipes = []

    def __call__(self, error):
        """Present only because the registry of error handlers accepts nothing but callables."""
        raise error

    def before_freeze(self, function):
        """Registers a hook."""
        self._before.append(function)

    def after_thaw(self, function):
        """Registers a hook."""
        self._after.append(function)

    def freeze_point(self):
        """Freezes at the place of the call. Raises RuntimeError outside the main thread."""
        self._freeze_here()

    def run_before(self):
        """Runs the hooks before the freeze, last registered first. Raises HookError, and Refused of a recipe."""
        while self._before:
            _call(self._before.pop(), "before_freeze")
        for recipe in self._recipes.all:
            for kind, function, args, kwargs in recipe.before_freeze():
                _call(function, kind, args, kwargs)
        self._recipes.close_idle()
        self._after_of_recipes = [hook for recipe in self._recipes.all for hook in recipe.after_thaw()]
        self._recipes = None

    def run_after(self, spans):
        """Runs the hooks after a thaw, first registered first. Raises HookError. spans: see explained.py; or None."""
        for kind, function, args, kwargs in self._after_of_recipes:
            if spans is not None:
                spans.step("hook", _describe(function))
            _call(function, kind, args, kwargs)
        for function in self._after:
            if spans is not None:
                spans.step("hook", _describe(function))
            _call(function, "after_thaw")


def install(front_end):
    """Lets a later `import snapboot` find `front_end` (see there)."""
    _codecs.register_error("snapboot.front_end", front_end)


def _call(function, kind, args=(), kwargs=None):
    try:
        function(*args, **(kwargs or {}))
    except Exception as error:
        raise HookError("in the %s hook %s" % (kind, _describe(function))) from error


def _describe(function):
    name = getattr(function, "__qualname__", None) or repr(function)
    code = getattr(function, "__code__", None)
    place = "" if code is None else " (%s:%d)" % (code.co_filename, code.co_firstlineno)
    return "%s.%s%s" % (getattr(function, "__module__", "?"), name, place)
