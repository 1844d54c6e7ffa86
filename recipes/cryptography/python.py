"""The random state of the package's own OpenSSL, which tells a fork by the number of the process: two thaws may share that."""

import posix
import sys

from .recipes import Defaults


class Recipe(Defaults):
    """See Defaults."""

    def renew_random(self, randomness, found):
        """See Defaults."""
        binding = getattr(sys.modules.get("cryptography.hazmat.bindings._rust"), "_openssl", None)
        library = getattr(binding, "lib", None)
        if hasattr(library, "RAND_add"):
            randomness.add_step(lambda: library.RAND_add(posix.urandom(32), 32, 32.0))
