"""Tells at the end of a thawed process what it has loaded that its image has not, so that the next image has it.

For images of the store alone. What is told is appended to the file that the request names `profile`, entries as in training.py; then
`on_news` is started, and nobody waits for it. Where anything is in the way, nothing is told: the program ends as it would without this.
"""

import _signal
import posix
import sys

from . import modules, process
from .environment import IGNORED, changed
from .process_state import SIGNALS, Patches
from .report import to_bytes
from .request import encode, read_all


class Telling:
    """What is known when the image is made, and what became of that."""

    def __init__(self, request):
        self._profile = encode(request.profile)
        self._script = [("script", script) for script in request.told_of]
        self._on_news = [encode(word) for word in request.on_news]
        # What was left out of the image on purpose is no news.
        self._known = {*request.learnt, *request.known}
        self._process = None

    def settle(self):
        """Notes what is loaded. To be called right before the freeze."""
        self._known.update(sys.modules)
        self._last = next(reversed(sys.modules))
        self._patches = Patches()

    def begin(self, variables):
        """Notes what this process is, before the program can change it. variables: its environment."""
        self._process = posix.getpid()
        self._variables = dict(variables)
        try:
            self._folder = posix.getcwd()
        except OSError:
            self._folder = None

    def news(self):
        """Returns what there is to tell, as entries; most starts have nothing. To be called while the modules are still there."""
        new = []
        for name in reversed(sys.modules):
            if name is self._last:
                break
            if type(name) is str and name not in self._known:
                new.append(name)
        # A child that the program has left to itself tells nothing, nor does a process that nobody may know of.
        if not new or posix.getpid() != self._process or posix.getuid() != posix.geteuid() or self._folder is None:
            return ()
        new.reverse()
        entries = modules.loaded_from_files([(name, sys.modules[name]) for name in new])
        # Modules that are loaded after the program has put its own functions into others may have got hold of those. Looked at only where
        # there is something to tell, since it takes a millisecond: each function lies on a page of its own.
        if not entries or any(not name.endswith(HARMLESS) for name in self._patches.found()):
            return ()
        return self._script + entries + changed(self._variables)

    def tell(self, entries):
        """Tells it. To be called last of all: the process is of no use to the program any more."""
        try:
            # A file that is as large as files may be is no reason to be killed.
            _signal.signal(_signal.SIGXFSZ, _signal.SIG_IGN)
            if self._append(entries):
                self._start()
        except BaseException:
            pass

    def _append(self, entries):
        """Adds to the file what is not told there. Returns whether it is the user's own. Raises OSError."""
        user = posix.geteuid()
        if posix.stat(self._profile.rpartition(b"/")[0]).st_uid != user:
            return False
        descriptor = posix.open(self._profile, OPENING, 0o600)
        status = posix.fstat(descriptor)
        if status.st_uid != user or status.st_mode & TYPE != REGULAR or status.st_size > MAX_SIZE:
            return False
        told = read_all(descriptor)
        data = to_bytes(entries)
        if data in told:
            posix.utime(descriptor)  # that the image has it not is news all the same
        else:
            # What was cut off at the end ends there.
            posix.write(descriptor, data if told[-1:] in (b"", b"\0") else b"\0" + data)
        posix.close(descriptor)
        return True

    def _start(self):
        """Starts `on_news` as this process was started. Raises OSError."""
        environment = {}
        for entry in process.started_with()[1]:
            name, equals, value = entry.partition(b"=")
            if name and equals and name != IGNORED:
                environment.setdefault(name, value)
        posix.chdir(self._folder)
        posix.posix_spawn(
            self._on_news[0],
            self._on_news,
            environment,
            file_actions=[
                (posix.POSIX_SPAWN_OPEN, 0, b"/dev/null", posix.O_RDWR, 0),
                (posix.POSIX_SPAWN_DUP2, 0, 1),
                (posix.POSIX_SPAWN_DUP2, 0, 2),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=SIGNALS,
        )


# Replacing these changes what is said, and nobody's import keeps them.
HARMLESS = ("hook", "warning")
# Where there is a FIFO, nobody waits for its other end.
OPENING = posix.O_RDWR | posix.O_APPEND | posix.O_CREAT | posix.O_NOFOLLOW | posix.O_CLOEXEC | posix.O_NONBLOCK | posix.O_NOCTTY
MAX_SIZE = 1 << 20
# S_IFMT and S_IFREG of stat.h.
TYPE = 0o170000
REGULAR = 0o100000
