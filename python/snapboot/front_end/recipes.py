"""What is done for single libraries: the code of recipes (recipes/NAME/python.py, and the user's own), which comes with the request.

Such code is loaded like a module of the front end, so it may import from there and see what these see; it defines a class `Recipe`,
derived from Defaults, of which one object is made before the program boots.
"""

import sys

from .randomness import instances


class Broken(Exception):
    """The code of a recipe cannot be loaded. Says why."""


class Refused(Exception):
    """What a recipe has found cannot be frozen. Says what it is and what to do."""


class Defaults:
    """What a recipe says that has nothing to say."""

    # What training runs do once in a process, and find done when they do it again: functions, by the names in `warm_up` of the rules.
    warm_ups = {}
    # Functions and classes that modules replace in the standard library, such as "typing._check_generic", without any other module being
    # able to tell when: these modules may be loaded early.
    harmless_patches = ()
    # Names of functions by which programs register what `before_freeze` returns.
    hooks_before = ()
    # Classes of connection pools and clients, such as "acme.pool:Pool".
    pools = ()

    def watches(self):
        """Functions by names of modules: each gets its module as soon as that was executed, and replace(module, name, value), which gives
        an attribute another value up to the freeze."""
        return {}

    def begin(self, reads):
        """The program is about to boot. reads: the Reads that note what it reads."""

    def renews_look(self, frame, of):
        """Whether a look at a standard stream (its number is `of`), made by this frame, leaves nothing but what `renew` finds out again."""
        return False

    def end(self, report):
        """The program has booted: takes everything back, and adds events to the report. Returns whether thaws are to call `renew`."""
        return False

    def random_kinds(self):
        """Classes of which `renew_random` gets all instances."""
        return ()

    def renew_random(self, randomness, found):
        """Adds to the Randomness what renews random state after a thaw. found: those instances, among others."""

    def before_freeze(self):
        """Hooks that the program has registered with the library, in the order of their calls: the name of what registers them, a function,
        its arguments and its keywords."""
        return []

    def close_idle(self, pools):
        """Called last before the freeze, if there are such objects: closes their idle connections, which they open again when they need
        one. It leaves a connection that somebody uses: the freeze refuses that by its descriptor. It raises Refused for what no
        descriptor shows. pools: the instances of `pools`, with those of subclasses."""

    def after_thaw(self):
        """The same as `before_freeze`, for those that come after a thaw."""
        return []

    def renew(self):
        """Called after each thaw. Whatever it raises makes the start an ordinary one."""


class Recipes:
    """All recipes of a request. load: loads a module of the front end from a text."""

    def __init__(self, request, load):
        self.all = []
        for name, place, text in request.recipe_code:
            try:
                recipe = load("recipe_" + name, text).Recipe()
            except Exception as error:
                raise Broken(BROKEN % (place, type(error).__name__, error, place)) from None
            recipe.name = name
            self.all.append(recipe)
        request.recipe_code = []  # not to be in the image
        self.renewing = []

    def begin(self, reads):
        """The program is about to boot."""
        for recipe in self.all:
            recipe.begin(reads)

    def renew_look(self, frame, of):
        """See Defaults.renews_look."""
        return any([recipe.renews_look(frame, of) for recipe in self.all])

    def end(self, report):
        """The program has booted."""
        self.renewing = [recipe for recipe in self.all if recipe.end(report)]

    def warm_up(self, name):
        """Does what a recipe has by this name."""
        return next(recipe.warm_ups[name] for recipe in self.all if name in recipe.warm_ups)()

    def hooks_before(self):
        """Names of functions that register hooks."""
        return [name for recipe in self.all for name in recipe.hooks_before]

    def close_idle(self):
        """Closes idle connections of all pools and clients. Raises Refused."""
        for recipe in self.all:
            pools = _instances_of(recipe.pools)
            if pools:
                recipe.close_idle(pools)


def _instances_of(names):
    places = [name.partition(":") for name in names]
    # Not getattr: some modules load others then.
    kinds = [getattr(sys.modules.get(module), "__dict__", {}).get(name) for module, _, name in places]
    return instances([kind for kind in kinds if isinstance(kind, type)])


BROKEN = "%s/python.py cannot be loaded (%s: %s). Correct it, or remove %s"
