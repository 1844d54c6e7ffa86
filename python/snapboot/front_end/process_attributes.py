"""The kernel's attributes of this process (limits, directory, rights, ...): what the boot has changed, and doing it again after a thaw.

The freezer, in this same process, reads and sets them (crates/freezer sys/attributes.rs); Python has no call for most. It is asked by
setting a variable, which is not set by that: the call fails, and its error number tells which attribute it is.
"""

import posix


class ProcessAttributes:
    """names: what they are called, by their number; with `+` in front those that a thaw sets again, with `-` those that forbid a freeze."""

    def __init__(self, names):
        self._names = names
        # Whether a thaw has something to set again.
        self.repeats = False

    def look(self):
        """The names of those that have changed since the last look, as far as that is cheap to tell, with their sign."""
        return self._all(b"look")

    def changed(self):
        """The names of those that are not as they were when the process started, with their sign."""
        return self._all(b"changed")

    def refused(self):
        """Whether one has changed for which a freeze is refused."""
        return any(name[0] == "-" for name in self.changed())

    def repeat(self):
        """Sets again what the boot has set. Returns the name of the first that cannot be set in this process, and then none is; or None."""
        number = _ask(b"repeat")
        return self._names[number - FIRST][1:] if number else None

    def _all(self, word):
        found = []
        number = _ask(word) if self._names else 0
        while FIRST <= number < FIRST + len(self._names):
            found.append(self._names[number - FIRST])
            number = _ask(word)
        return found


def _ask(word):
    """Returns the error number; 0 where there is nothing to tell."""
    try:
        posix.putenv(b"SNAPBOOT_ATTRIBUTES", word)
    except OSError as error:
        return error.errno
    return 0


# See crates/freezer sys/attributes.rs.
FIRST = 60
