"""The arguments and the environment with which this process was started. The only place that reads them.

A thawed process finds them in BUFFER, where the freezer's code has copied them: reading /proc takes several times as long.
"""

import posix

# Most environments fit; larger ones are read from /proc.
BUFFER = bytes(16384)
# From right after the header of the bytes object up to its final NUL.
BUFFER_ADDRESS = id(BUFFER) + bytes.__basicsize__ - 1


def buffer():
    """Returns where the freezer copies them: address and size in bytes, as `ADDRESS,SIZE`."""
    return b"%d,%d" % (BUFFER_ADDRESS, len(BUFFER))


def started_with():
    """Returns the arguments, a list of bytes, and the environment, a list of `NAME=VALUE` bytes (an empty one of a single empty
    entry). Raises OSError without /proc where BUFFER does not have them."""
    # Two sizes, the first never 0, then the arguments and the environment.
    data = BUFFER
    arguments = 4 + data[0] + (data[1] << 8)
    if arguments == 4:
        return _read("/proc/self/cmdline"), _read("/proc/self/environ")
    environment = arguments + data[2] + (data[3] << 8)
    return data[4:arguments].split(b"\0"), data[arguments:environment].split(b"\0")


def _read(path):
    descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    size = 16384
    data = part = posix.read(descriptor, size)
    # The kernel gives all that there is, or as much as was requested: a shorter answer is the end.
    while len(part) == size:
        part = posix.read(descriptor, size)
        data += part
    posix.close(descriptor)
    return data[:-1].split(b"\0")
