"""Copies of the environment that the program has made while it booted. A thaw gives each the contents that an ordinary start would have
given it."""

import gc

from .request import decode

# A dictionary with at least this share of the environment is a copy of it.
ALIKE = 0.8


class Copies:
    """The copies, and how each differs from the environment: values that were set, and names that were removed."""

    def __init__(self, before, own):
        """before: the environment of the boot, names and values as bytes. own: dictionaries that are no copies."""
        self.found = []
        texts = texts_of(before)
        seen = {id(names) for names in (before, texts, *own)}
        for holder in gc.get_objects():
            # The collector does not track dictionaries that hold only texts, but it tracks their holders.
            for thing in (holder, *gc.get_referents(holder)):
                if type(thing) is dict and id(thing) not in seen:
                    seen.add(id(thing))
                    for names in (texts, before):
                        self._look(thing, names)

    def _look(self, thing, names):
        enough = max(1, len(names) * ALIKE)
        if len(thing) >= enough and sum(thing.get(name) == value for name, value in names.items()) >= enough:
            changed = {name: value for name, value in thing.items() if names.get(name) != value}
            removed = [name for name in names if name not in thing]
            self.found.append((thing, type(next(iter(names))), changed, removed))

    def renew(self, names):
        """names: the environment of this process, as bytes."""
        texts = texts_of(names)
        for copy, kind, changed, removed in self.found:
            copy.clear()
            copy.update(names if kind is bytes else texts)
            for name in removed:
                copy.pop(name, None)
            copy.update(changed)


def texts_of(names):
    return {decode(name): decode(value) for name, value in names.items()}
