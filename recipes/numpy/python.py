"""Generators of numpy, and the seeds that they keep: whether a seed was drawn from the kernel, and how a thaw draws another one."""

import sys

from .recipes import Defaults

# How far a generator of the old interface is followed from a seed that was drawn (steps of 624 numbers).
MAX_STEPS = 2000
WORDS = 624


class Recipe(Defaults):
    """See Defaults."""

    def __init__(self):
        self._drawn = set()  # seeds that were drawn from the kernel

    def watches(self):
        """See Defaults."""
        return {"numpy.random.bit_generator": self._watch}

    def random_kinds(self):
        """See Defaults."""
        module = sys.modules.get("numpy.random")
        names = ("SeedSequence", "BitGenerator", "RandomState")
        return [getattr(module, name) for name in names if hasattr(module, name)]

    def renew_random(self, randomness, found):
        """See Defaults."""
        if "numpy.random" in sys.modules:
            self._add(randomness, found, sys.modules["numpy.random"])
        self._drawn.clear()

    def _watch(self, module, replace):
        draw = module.__dict__.get("randbits")
        if draw is None:
            return

        def randbits(count):
            value = draw(count)
            self._drawn.add(value)
            return value

        replace(module, "randbits", randbits)

    def _add(self, randomness, found, numpy_random):
        sequences = []
        for sequence in found:
            if isinstance(sequence, numpy_random.SeedSequence) and type(sequence.entropy) is int and sequence.entropy in self._drawn:
                sequences.append(sequence)
        legacy = Legacy(numpy_random, self._drawn)
        for sequence in sequences:
            randomness.add(sequence, _new_sequence(sequence))
        drawn = {id(sequence) for sequence in sequences}
        for generator in found:
            if not isinstance(generator, numpy_random.BitGenerator):
                continue
            sequence = generator._seed_seq
            if id(sequence) in drawn or (sequence is None and legacy.has_drawn(generator)):
                randomness.add(generator, _new_state(generator))
        for generator in found:
            if isinstance(generator, numpy_random.RandomState):
                source = generator._bit_generator
                if id(source._seed_seq) in drawn or legacy.has_drawn(source):
                    # It keeps one of each two normal deviates for the next call.
                    state = generator.get_state(legacy=False)
                    if type(state) is dict and state.get("has_gauss"):
                        state["has_gauss"], state["gauss"] = 0, 0.0
                        generator.set_state(state)


class Legacy:
    """Tells of generators that the old interface has seeded whether their seed was drawn or given.

    These keep no seed. So one is made from each seed that was drawn, and both are compared, however many numbers the program
    has taken (up to a million).
    """

    def __init__(self, numpy_random, drawn):
        self._numpy_random = numpy_random
        self._drawn = drawn
        self._known = {}

    def has_drawn(self, generator):
        """generator: a BitGenerator."""
        if id(generator) not in self._known:
            self._known[id(generator)] = type(generator) is self._numpy_random.MT19937 and self._find(generator)
        return self._known[id(generator)]

    def _find(self, generator):
        if generator._seed_seq is not None:
            return False
        wanted = generator.state["state"]["key"].tobytes()
        random = self._numpy_random
        for seed in self._drawn:
            sequence = random.SeedSequence(seed)
            twins = random.MT19937(sequence), random.RandomState(sequence.generate_state(WORDS))._bit_generator
            for twin in twins:
                twin.random_raw(WORDS - twin.state["state"]["pos"], output=False)
                for _ in range(MAX_STEPS):
                    if twin.state["state"]["key"].tobytes() == wanted:
                        return True
                    twin.random_raw(WORDS, output=False)
        return False


def _new_sequence(sequence):
    kind = type(sequence)

    def renew():
        sequence.__setstate__(kind().__reduce__()[2])

    return renew


def _new_state(generator):
    kind = type(generator)

    def renew():
        sequence = generator._seed_seq
        generator.state = (kind() if sequence is None else kind(sequence)).state

    return renew
