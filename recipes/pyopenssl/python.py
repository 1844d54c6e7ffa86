"""A context draws the keys of session tickets when it is made, and nothing draws them again. So its servers keep sessions by themselves,
as their clients can resume them in this process alone anyway."""

import sys

from .recipes import Defaults


class Recipe(Defaults):
    """See Defaults."""

    def random_kinds(self):
        """See Defaults."""
        kind = getattr(sys.modules.get("OpenSSL.SSL"), "Context", None)
        return [] if kind is None else [kind]

    def renew_random(self, randomness, found):
        """See Defaults."""
        for kind in self.random_kinds():
            for context in found:
                if isinstance(context, kind):
                    context.set_options(sys.modules["OpenSSL.SSL"].OP_NO_TICKET)
