"""What the kernel says of this process: its arguments and its environment. The one place where they are read."""

import posix


def arguments():
    """The arguments that this process was started with, as a list of bytes. Raises OSError without /proc."""
    return _strings("/proc/self/cmdline")


def environment():
    """The environment that this process was started with, as a list of `NAME=VALUE` bytes. Raises OSError without /proc."""
    return _strings("/proc/self/environ")


def _strings(path):
    descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    size = 16384
    data = part = posix.read(descriptor, size)
    # The kernel gives all that there is, or all that was asked for: a shorter answer is the end.
    while len(part) == size:
        part = posix.read(descriptor, size)
        data += part
    posix.close(descriptor)
    strings = data.split(b"\0")
    del strings[-1:]
    return strings
