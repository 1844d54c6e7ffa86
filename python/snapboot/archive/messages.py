"""Messages of the boot archive, on request: SNAPBOOT_LOG and SNAPBOOT_STATS."""

import posix
import sys

# The parts that can be switched off, each by a variable of its own.
PARTS = ("code", "lookups", "patterns", "data", "metadata", "collector", "exit")
SWITCH = ("", "0", "1", "off", "on")


def name_unknown_switches(variable):
    """Reports variables that are neither on nor off. variable: returns the value of one as text."""
    for name in ["SNAPBOOT_ARCHIVE_" + part.upper() for part in PARTS]:
        if variable(name) not in SWITCH:
            text = "snapboot: %s was expected to be on or off, not %s: it is ignored\n"
            sys.stderr.write(text % (name, variable(name)))


def print_counts(native):
    """Prints the line for SNAPBOOT_STATS=1 at the end of the process."""
    native.flush()
    place = native.place()
    try:
        size = "%d KB" % (posix.stat(place).st_size // 1024)
    except OSError:
        size = "not made"
    text = "snapboot: %d hit, %d miss, %d stale, %d revalidated; %s %s\n" % (*native.counters(), place, size)
    try:
        sys.stderr.write(text)
    except (AttributeError, OSError, ValueError):
        pass  # closed or missing
