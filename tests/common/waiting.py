"""All that tests wait for. Only this file calls time.sleep, as tests/repository/test_waits.py checks."""

import pathlib
import time

SECONDS = 600  # only what hangs takes so long, whatever else the machine does
SHORTEST, LONGEST = 0.001, 0.05  # between two looks at a condition
LOOK = 0.005  # between two looks whether a process is at rest
SETTLED = 0.05  # longer than the youngest change that Snapboot trusts file times to show


def wait_until(condition, what):
    """Wait until the function `condition` returns something true, and return that. what: what did not happen, in words or a function
    that returns them."""
    deadline, pause = time.monotonic() + SECONDS, SHORTEST
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {SECONDS} s: {what() if callable(what) else what}"
        time.sleep(pause)
        pause = min(2 * pause, LONGEST)
    return answer


def settle():
    """Wait until the files that were just written are so old that their times show a later change. No call sets a file's ctime."""
    time.sleep(SETTLED)


def random_moment(choice, most):
    """Let a random time pass, of at most that many seconds, before a fault that may come at any moment."""
    time.sleep(choice.uniform(0, most))


class Rest:
    """Whether a process has come to rest: two looks in a row find its first thread waiting, and it has not run between them."""

    def __init__(self, pid):
        self.status, self.waits = pathlib.Path(f"/proc/{pid}/status"), None

    def is_reached(self):
        """Look once more. Looks that are less than LOOK apart may find a process that is just about to go on."""
        before, self.waits = self.waits, self._waits()
        return self.waits is not None and self.waits == before

    def _waits(self):
        """How often the process has begun to wait, where it is waiting."""
        fields = dict(line.split(":\t", 1) for line in self.status.read_text().splitlines())
        return fields["voluntary_ctxt_switches"] if fields["State"].startswith("S") else None

    def forget(self):
        """It was given something to do."""
        self.waits = None
