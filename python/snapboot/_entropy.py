"""Random state: no two thaws of one image may share it, not even when they run under the same pid."""

import posix
import sys


class Entropy:
    """What has to be made anew after a thaw. Made right before the freeze, when it is known what the program has loaded."""

    def __init__(self):
        self._steps = steps = []
        modules = sys.modules
        ssl = modules.get("_ssl")
        if ssl is not None:
            # OpenSSL notices a fork by the pid, which two thaws may share. It sets its generators up when they are used
            # first, which takes longer than a thaw: that is done now.
            ssl.RAND_bytes(1)
            ssl.RAND_add(posix.urandom(32), 32.0)
            ssl.RAND_bytes(1)
            steps.append(lambda: ssl.RAND_add(posix.urandom(32), 32.0))
        tempfile = modules.get("tempfile")
        if tempfile is not None:
            # Its sequence of names is made anew for another pid only.
            steps.append(lambda: setattr(tempfile, "_name_sequence", None))
        process = modules.get("multiprocessing.process")
        if process is not None:
            config = process.current_process()._config
            key = type(config["authkey"])
            steps.append(lambda: config.__setitem__("authkey", key(posix.urandom(32))))
        uuid = modules.get("uuid")
        if uuid is not None:
            steps.append(lambda: setattr(uuid, "_last_timestamp", None))
        numpy_random = modules.get("numpy.random")
        if numpy_random is not None and not _seeded_by_hand(numpy_random):
            steps.append(numpy_random.seed)
        # The module `random` has a fork hook of its own.

    def renew(self):
        """Mixes in fresh entropy."""
        for step in self._steps:
            step()


def _seeded_by_hand(numpy_random):
    """Whether numpy's global generator is in a state that a plain `numpy.random.seed(NUMBER)` leads to."""
    try:
        kind, key, position = numpy_random.get_state()[:3]
        if kind != "MT19937":
            return True
        # The first word of a freshly seeded state is the seed itself.
        again = numpy_random.RandomState(int(key[0])).get_state()
        return bool((again[1] == key).all())
    except Exception:
        return False
