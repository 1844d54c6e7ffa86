"""What this process was started with: its arguments and its environment. The one place where they are read.

A thawed process finds them in ROOM, where the freezer's code has put them: to ask the kernel takes several times as long.
"""

import posix

# Most environments fit; larger ones are read from /proc.
ROOM = bytes(16384)
# Right after a bytes object's head, up to the NUL behind it.
ROOM_ADDRESS = id(ROOM) + bytes.__basicsize__ - 1


def room():
    """Where the freezer is to put them, as it reads that: address and size in bytes, `ADDRESS,SIZE`."""
    return b"%d,%d" % (ROOM_ADDRESS, len(ROOM))


def started_with():
    """Returns the arguments, a list of bytes, and the environment, a list of `NAME=VALUE` bytes (an empty one of a single empty
    entry). Raises OSError without /proc where ROOM does not have them."""
    # Two sizes, the first never 0, and then both.
    room = ROOM
    arguments = 4 + room[0] + (room[1] << 8)
    if arguments == 4:
        return _read("/proc/self/cmdline"), _read("/proc/self/environ")
    environment = arguments + room[2] + (room[3] << 8)
    return room[4:arguments].split(b"\0"), room[arguments:environment].split(b"\0")


def _read(path):
    descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    size = 16384
    data = part = posix.read(descriptor, size)
    # The kernel gives all that there is, or all that was asked for: a shorter answer is the end.
    while len(part) == size:
        part = posix.read(descriptor, size)
        data += part
    posix.close(descriptor)
    return data[:-1].split(b"\0")
