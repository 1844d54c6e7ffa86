"""The arguments and the environment with which this process was started. The only place that reads them.

A thawed process finds them in BUFFER, where the freezer's code has copied them: reading /proc takes several times as long. The freezer gets
the address of the content of that object, which follows from the layout of `bytes`. `buffer` compares that with another object first. Where
it is another one, nothing is written, and each thaw reads /proc.
"""

import posix

# Most environments fit; larger ones are read from /proc.
BUFFER = bytes(16384)
# From the start of a bytes object to its content: the header counts the final NUL.
CONTENT = bytes.__basicsize__ - 1
WITNESS = b"laid out like BUFFER"


def buffer():
    """Returns where the freezer copies them: address and size in bytes, as `ADDRESS,SIZE`; 0 for both where that is unknown."""
    return b"%d,%d" % ((id(BUFFER) + CONTENT, len(BUFFER)) if _is_known() else (0, 0))


def _is_known():
    """Returns whether the content of bytes, and a NUL, lie where this module expects them."""
    try:
        memory = posix.open("/proc/self/mem", posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return False
    try:
        return posix.pread(memory, len(WITNESS) + 1, id(WITNESS) + CONTENT) == WITNESS + b"\0"
    except (OSError, OverflowError):
        return False
    finally:
        posix.close(memory)


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
