"""Random state: no two thaws of one image may share it, not even if they have the same pid.

All generators are found before the freeze; a thaw only gives each of them fresh entropy.
"""

import gc
import posix
import sys

from .holder_paths import paths_to
from .seeding import standard_random


class Randomness:
    """The state that a thaw must renew. Created right before the freeze, when it is known which modules the program has loaded."""

    def __init__(self, seeding, recipes):
        """seeding: what was seen while the program booted. recipes: the Recipes, for generators of libraries."""
        self._steps = steps = []
        self._stuck = []
        modules = sys.modules
        seeding.end()
        tempfile = modules.get("tempfile")
        if tempfile is not None:
            tempfile._name_sequence = None  # made again when it is needed
        kinds = [kind for recipe in recipes.all for kind in recipe.random_kinds()]
        random = standard_random()
        if random is not None:
            kinds.append(random.Random)
        self._found = instances(kinds)
        ssl = modules.get("_ssl")
        if ssl is not None:
            # OpenSSL detects a fork by the pid, which two thaws may share. It sets up its generators on first use, which takes longer than
            # a thaw, so that is done now.
            ssl.RAND_bytes(1)
            ssl.RAND_add(posix.urandom(32), 32.0)
            ssl.RAND_bytes(1)
            steps.append(lambda: ssl.RAND_add(posix.urandom(32), 32.0))
            self._forget_ticket_keys(ssl)
        process = modules.get("multiprocessing.process")
        if process is not None:
            config = process.current_process()._config
            key = config["authkey"]
            if seeding.authkey is None or key is seeding.authkey:
                steps.append(lambda: config.__setitem__("authkey", type(key)(posix.urandom(32))))
        uuid = modules.get("uuid")
        if uuid is not None:
            # The node may be a random number, or belong to another machine.
            uuid._node = None
            uuid._last_timestamp = None
            if seeding.made_time_uuid:
                # libuuid keeps its clock sequence for good; Python's own code draws one each time.
                uuid._generate_time_safe = None
        self._stuck += [(generator, "it does not show whether its seed was chosen") for generator in _plain_generators(modules)]
        if random is not None:
            self._add_random(random, seeding)
        for recipe in recipes.all:
            recipe.renew_random(self, self._found)
        del self._found

    def warnings(self):
        """Returns what the user should know, as a list of sentences."""
        if not self._stuck:
            return []
        # Dropped, so that only the program holds them.
        stuck, self._stuck = self._stuck, []
        paths = paths_to([generator for generator, _ in stuck])
        return [WARNING % (path, reason) for path, (_, reason) in zip(paths, stuck)]

    def renew(self):
        """Mixes in fresh entropy."""
        for step in self._steps:
            step()

    def _forget_ticket_keys(self, ssl):
        """Makes servers keep sessions themselves, since their clients can resume them in this process alone anyway: a context draws the
        keys of session tickets when it is created, and no function of Python's draws them again."""
        option, kind = ssl.OP_NO_TICKET, ssl._SSLContext
        options, protocol = kind.__dict__["options"], kind.__dict__["protocol"]
        kinds = _kinds(kind)
        gc.unfreeze()
        for one in gc.get_objects():
            if id(type(one)) in kinds and protocol.__get__(one) != ssl.PROTOCOL_TLS_CLIENT:
                options.__set__(one, options.__get__(one) | option)

    def _add_random(self, random, seeding):
        main = getattr(random, "_inst", None)
        if main is not None and seeding.was_given(main):
            # Its fork hook draws a new seed.
            state = main.getstate()
            self._steps.append(lambda: main.setstate(state))
        for generator in self._found:
            if not isinstance(generator, random.Random) or isinstance(generator, random.SystemRandom) or generator is main:
                continue
            given = seeding.was_given(generator)
            if given is None and type(generator).seed is not random.Random.seed:
                self._stuck.append((generator, "its class has a seed() of its own"))
            elif not given:
                self.add(generator, generator.seed)

    def add_step(self, step):
        """Has each thaw call that."""
        self._steps.append(step)

    def add(self, generator, step):
        """Has each thaw call that to renew a generator; where it fails now, a warning names what holds the generator."""
        try:
            step()
        except Exception as error:
            self._stuck.append((generator, "%s: %s" % (type(error).__name__, error)))
        else:
            self._steps.append(step)


def _kinds(*bases, without=None):
    """Returns these classes and their subclasses, by id, since a metaclass may forbid hashing. without: a class to leave out with its
    subclasses."""
    kinds, bases = {}, list(bases)
    while bases:
        kind = bases.pop()
        if kind is not without:
            kinds[id(kind)] = kind
            bases.extend(type.__subclasses__(kind))
    return kinds


def _plain_generators(modules):
    """Returns generators of the C module below `random`, and of its subclasses without references: the collector does not list these."""
    base = getattr(modules.get("_random"), "Random", None)
    if base is None:
        return []
    kinds = _kinds(base, without=getattr(modules.get("random"), "Random", None))
    gc.unfreeze()
    found, seen, holders = [], set(), gc.get_objects()
    while holders:
        held, holders = gc.get_referents(*holders), []
        for one in held:
            kind = type(one)
            if (kind is dict or kind is tuple) and not gc.is_tracked(one):
                # The collector does not list these, either.
                if id(one) not in seen:
                    seen.add(id(one))
                    holders.append(one)
            elif id(kind) in kinds and id(one) not in seen:
                seen.add(id(one))
                found.append(one)
    return found


def instances(bases):
    """Returns all instances of these classes, wherever they are held: in modules, classes, instances, closures."""
    kinds = _kinds(*bases)
    if not kinds:
        return []
    gc.unfreeze()  # objects that the program froze are not listed
    return [one for one in gc.get_objects() if id(type(one)) in kinds]


WARNING = (
    "%s holds random state that cannot be renewed (%s): all thaws of the image may repeat its numbers; seed it in an after_thaw "
    "hook, or make it with snapboot.defer"
)
