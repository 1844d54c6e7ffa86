"""The title and the name of the process, as `ps` shows them, which a program may change while it boots.

A title lies where the kernel has put the arguments, and further on, in the place of the environment, where a library has moved that
elsewhere. A thaw puts the arguments of the new process there, which the front end reads before it writes the title
again.
"""

import posix

from .request import read_file

NAME = "/proc/self/comm"
# What may change: the arguments, the name, the first environment.
SHOWN = ("/proc/self/cmdline", NAME, "/proc/self/environ")
# Of the fields of /proc/self/stat behind the name: where the arguments begin and end, and where the environment ends.
ARGUMENTS, ARGUMENTS_END, ENVIRONMENT_END = 45, 46, 48


class Title:
    """What the program makes of both."""

    def __init__(self):
        """To be made before the program can change anything."""
        self._began = list(map(read_file, SHOWN))
        self._title = self._name = None

    def shows_arguments(self):
        """Whether a library has been asked for the title, and has put all arguments of this start into one text for that."""
        words = self._began[0][:-1].split(b"\0")
        return len(words) > 1 and read_file(SHOWN[0]).startswith(b" ".join(words) + b"\0")

    def settle(self):
        """Notes what the program has set. To be called right before the freeze."""
        line, name, environment = map(read_file, SHOWN)
        if line != self._began[0]:
            self._title = line.partition(b"\0")[0]
        if name != self._began[1]:
            self._name = name.rstrip(b"\n")
        # Then nothing else is kept there.
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
