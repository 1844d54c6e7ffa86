"""What SNAPBOOT_STATS=1 asks for. Other starts do not read this file."""

import posix
import sys


def print_counts(native):
    """The line that SNAPBOOT_STATS=1 asks for, when the process ends."""
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
        pass  # closed, or not there
