"""What SNAPBOOT_STATS=1 asks for: a line on standard error when the process ends, as Ruby's archive prints it."""

import os
import sys


def show(native):
    """Print it. native: the native part, with an archive."""
    hits, misses, stale, revalidated = native.counters()
    place = os.fsdecode(native.place())
    try:
        size = "%d KB" % (os.path.getsize(place) // 1024)
    except OSError:
        size = "not made"
    text = "snapboot: %d hit, %d miss, %d stale, %d revalidated; %s %s\n"
    try:
        sys.stderr.write(text % (hits, misses, stale, revalidated, place, size))
    except (AttributeError, OSError, ValueError):
        pass  # there is no standard error
