"""The kernel's attributes of this process (limits, directory, rights, ...): what the boot has changed, and doing it again after a thaw.

The freezer, in this same process, reads and sets them (crates/freezer sys/attributes.rs); Python has no call for most.
"""

from .channel import ATTRIBUTES, call


class ProcessAttributes:
    """By their names, with `+` in front those that a thaw sets again, with `-` those that forbid a freeze."""

    def __init__(self):
        # Whether a thaw has something to set again.
        self.repeats = False

    def look(self):
        """The names of those that have changed since the last look, as far as that is cheap to tell, with their sign."""
        return _all(b"look")

    def changed(self):
        """The names of those that are not as they were when the process started, with their sign."""
        return _all(b"changed")

    def refused(self):
        """Whether one has changed for which a freeze is refused."""
        return any(name[0] == "-" for name in self.changed())

    def repeat(self):
        """Sets again what the boot has set. Returns the name of the first that cannot be set in this process, and then none is; or None."""
        return _ask(b"repeat")[1:] or None


def _all(word):
    return list(iter(lambda: _ask(word), ""))


def _ask(word):
    """The next one; empty where there is none."""
    return (call(ATTRIBUTES, word) or b"").decode()
