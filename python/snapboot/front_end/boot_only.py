"""Variables that `snapboot freeze` sets for the boot alone, and what libraries say about them."""

import _warnings


class Mute:
    """Hides warnings that name one of the variables, such as one of words that a library's version does not know. The user has not set
    them; and what writes something while it is imported is left to the start of each program.

    names: names of the variables.
    """

    def __init__(self, names):
        self.names = names
        self.filter = ("ignore", self, Warning, None, 0)

    def begin(self):
        """From here on. Works before the module `warnings` is loaded, and does not load it."""
        if self.names:
            _warnings.filters.insert(0, self.filter)

    def end(self):
        """Up to here. The filters are the program's again."""
        _warnings.filters[:] = [one for one in _warnings.filters if one is not self.filter]

    def match(self, text):
        """Whether this is such a warning: what `warnings` needs of a filter's regular expression."""
        return any(name in text for name in self.names)
