"""Hides warnings of libraries about variables that `snapboot freeze` sets for the boot alone."""

import _warnings


class Mute:
    """Hides warnings that name one of the variables: a library may warn about values that its version does not know. The user has not set
    these variables, and a module that prints during its import would be left to each start.

    names: names of the variables.
    """

    def __init__(self, names):
        self.names = names
        self.filter = ("ignore", self, Warning, None, 0)

    def begin(self):
        """Starts hiding. Works before the module `warnings` is loaded, and does not load it."""
        if self.names:
            _warnings.filters.insert(0, self.filter)

    def end(self):
        """Stops hiding, and leaves only the program's filters."""
        _warnings.filters[:] = [one for one in _warnings.filters if one is not self.filter]

    def match(self, text):
        """Returns whether this is such a warning. `warnings` calls it as the method of a filter's regular expression."""
        return any(name in text for name in self.names)
