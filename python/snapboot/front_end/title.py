"""The title and the name of the process, as `ps` shows them, which a program may change while it boots.

The title occupies the memory in which the kernel has put the arguments, and continues into that of the environment if a library has moved
the environment elsewhere. A thaw puts the arguments of the new process there, and the front end reads them before it writes the title
again.
"""

import posix

from .request import read_file

NAME = "/proc/self/comm"
# What may change: the arguments, the name, the initial environment.
SHOWN = ("/proc/self/cmdline", NAME, "/proc/self/environ")
# Fields of /proc/self/stat after the name: the beginning and the end of the arguments, and the end of the environment.
ARGUMENTS, ARGUMENTS_END, ENVIRONMENT_END = 45, 46, 48


class Title:
    """The title and the name that the program sets."""

    def __init__(self):
        """To be made before the program can change anything."""
        self._began = list(map(read_file, SHOWN))
        self._title = self._name = None

    def shows_arguments(self):
        """Returns whether a library was asked for the title, and so has joined all arguments of this start into one text."""
        words = self._began[0][:-1].split(b"\0")
        return len(words) > 1 and read_file(SHOWN[0]).startswith(b" ".join(words) + b"\0")

    def settle(self):
        """Records what the program has set. Call right before the freeze."""
        line, name, environment = map(read_file, SHOWN)
        if line != self._began[0]:
            self._title = line.partition(b"\0")[0]
        if name != self._began[1]:
            self._name = name.rstrip(b"\n")
        # Then nothing else is stored there.
        self._over_environment = environment != self._began[2]
        self._began = None

    def renew(self):
        """Sets both again. Raises OSError."""
        if self._name is not None:
            _write(NAME, posix.write, self._name)
        if self._title is not None:
            fields = read_file("/proc/self/stat").rpartition(b") ")[2].split()
            start = int(fields[ARGUMENTS])
            size = int(fields[ENVIRONMENT_END if self._over_environment else ARGUMENTS_END]) - start
            if size > 0:
                _write("/proc/self/mem", posix.pwrite, self._title[: size - 1].ljust(size, b"\0"), start)


def _write(path, write, *data):
    descriptor = posix.open(path, posix.O_WRONLY | posix.O_CLOEXEC)
    try:
        write(descriptor, *data)
    finally:
        posix.close(descriptor)
