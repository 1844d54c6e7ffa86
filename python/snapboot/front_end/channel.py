"""The front end's end of the channel: its requests to the freezer, in this same process, and its reports to `snapboot freeze`.

crates/channel defines it. The freezer intercepts the C library's `readlink` and answers for a name that no file has. Without a freezer, as
in some tests, no request is answered.
"""

import posix

NAME = b"snapboot:"
# The requests.
PHASE, ENVIRONMENT, UNFREEZE, RESTARTS = b"phase", b"environment", b"unfreeze", b"restarts"
ARM, DISARM, IS_ARMED = b"arm", b"disarm", b"is_armed"
ATTRIBUTES, RENEW, END = b"attributes", b"renew", b"end"
TRIAL, ASIDE, LOOK_UP, LOOKED_UP, KIND_ONLY = b"trial", b"aside", b"look_up", b"looked_up", b"kind_only"
# The phases: who reads.
OF_RUNTIME, OF_FRONT_END, OF_PROGRAM, OF_TRIAL = b"runtime", b"front end", b"program", b"trial"
# The kinds of events: what was read.
VARIABLE, ALL_VARIABLES, EXECUTED, FACT, EARLY, FOREIGN = b"variable", b"variables", b"executed", b"fact", b"early", b"foreign"
# The fields of an event.
EVENT = ("kind", "phase", "subject", "reader", "place", "detail", "renewed")
# Bits of an answer about the locale.
IS_C, IS_TARGET, IS_UTF8, HAS_OTHERS, IS_CHOSEN, COERCED = 1, 2, 4, 8, 16, 32

_readlink = posix.readlink


def call(request, argument=b""):
    """Returns the answer as bytes, or None if there is none."""
    try:
        return _readlink(NAME + request + b"=" + argument)
    except OSError:
        return None


def record(*fields):
    """Encodes several fields (bytes) as the value of one entry."""
    return b"".join([b"%d:%b" % (len(field), field) for field in fields])


def fields(record):
    """Decodes the fields of such a value. Drops a truncated field."""
    found = []
    while record:
        size, _, rest = record.partition(b":")
        if not size.isdigit() or len(rest) < int(size):
            break
        found.append(rest[: int(size)])
        record = rest[int(size) :]
    return found
