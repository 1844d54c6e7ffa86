"""The kernel's attributes of this process (limits, directory, rights, ...): finds those that the boot has changed, and repeats the changes
after a thaw.

The freezer, in this same process, reads and sets them (crates/freezer sys/attributes.rs); Python has no call for most.
"""

from .channel import ATTRIBUTES, call


class ProcessAttributes:
    """Names of attributes, prefixed with `+` if a thaw sets the attribute again, with `-` if its change forbids a freeze."""

    def __init__(self):
        # Whether a thaw must set any attribute again.
        self.repeats = False

    def look(self):
        """Returns the names, with prefix, of attributes that have changed since the last look, as far as that is cheap to find out."""
        return _all(b"look")

    def changed(self):
        """Returns the names, with prefix, of attributes that differ from those at the process' start."""
        return _all(b"changed")

    def refused(self):
        """Returns whether an attribute has changed for which a freeze is refused."""
        return any(name[0] == "-" for name in self.changed())

    def repeat(self):
        """Sets the attributes as the boot has set them. Returns None; or the name of the first that this process cannot set, and then sets
        none."""
        return _ask(b"repeat")[1:] or None


def _all(word):
    return list(iter(lambda: _ask(word), ""))


def _ask(word):
    """Returns the freezer's next answer; empty at the end."""
    return (call(ATTRIBUTES, word) or b"").decode()
