"""Trial imports: a child runs them first, so that the booting process stays clean of those that are not taken."""

import posix

from .channel import EARLY, OF_PROGRAM, OF_TRIAL, TRIAL, call, fields
from .fork import fork
from .request import decode, read_all


def in_child(work, folder, importers, reads):
    """Calls `work` (without arguments) in a child that ends with it, and waits for the end. Raises OSError.

    folder: the control directory (bytes). importers and reads: the Importers and the Reads that watch.
    """
    child = fork()
    if not child:
        # Its reads reach no image. The parent repeats the imports that it takes, and their reads.
        reads.tell_phase(OF_TRIAL)
        call(TRIAL)
        importers.forget_lists()
        try:
            work()
        finally:
            try:
                importers.add_to(folder + b"/importers")
            finally:
                posix._exit(0)
    posix.waitpid(child, 0)
    reads.tell_phase(OF_PROGRAM)


class Output:
    """Captures all output of the child from now on, and empties its input.

    folder: the control directory (bytes). terminal: numbers of the standard streams that become a terminal; the others become a file.
    """

    def __init__(self, folder, terminal):
        self._file = hear_output(folder)
        self._shown = 0
        self._other_end = None
        if terminal:
            self._other_end, own_end = posix.openpty()
            posix.set_blocking(self._other_end, False)
            for stream in terminal:
                posix.dup2(own_end, stream)
            posix.close(own_end)

    def size(self):
        """Returns the size of the output so far (bytes)."""
        try:
            while self._other_end is not None:
                self._shown += len(posix.read(self._other_end, 65536))
        except BlockingIOError:
            pass
        return self._shown + posix.fstat(self._file).st_size


class SeenOutside:
    """Start-specific effects of this process that the recorder and the freezer see.

    They write them into files of the control directory (`folder`, bytes) before the process gets its answer.

    importers: the Importers, whose own listings of folders do not count.
    """

    def __init__(self, folder, importers):
        self._importers = importers
        self._opened = {}  # how often each folder of the user was opened to be listed
        self._changing = _Appended(folder + b"/changing")
        self._noted = _Appended(folder + b"/noted")

    def events(self):
        """Returns the events since the last call, a list of phrases."""
        looked_up = ["looks for %s, which changes" % path for path in map(decode, self._changing.entries()) if self._counts(path)]
        read = [fields(entry.partition(b"=")[2]) for entry in self._noted.entries()]
        return looked_up + ["reads " + decode(subject) for kind, _, subject, *_ in read if kind == EARLY]

    def _counts(self, path):
        if path[-1:] != "/":
            return True
        folder = path[:-1]
        self._opened[folder] = count = self._opened.get(folder, 0) + 1
        return count > self._importers.count_lists(folder)


class _Appended:
    """The entries that are appended to a file from now on, if the file exists. path: bytes."""

    def __init__(self, path):
        try:
            self._file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
            posix.lseek(self._file, 0, 2)
        except OSError:
            self._file = None

    def entries(self):
        """Returns the entries since the last call, as bytes."""
        return [] if self._file is None else read_all(self._file).split(b"\0")[:-1]


def hear_output(folder):
    """Empties the child's input, and redirects its output to a file. Returns the file's descriptor."""
    heard = posix.open(folder + b"/rehearsal", posix.O_RDWR | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o600)
    nothing = posix.open("/dev/null", posix.O_RDONLY)
    posix.dup2(nothing, 0)
    posix.close(nothing)
    posix.dup2(heard, 1)
    posix.dup2(heard, 2)
    return heard
