"""Reports at the end of a thawed process what it has loaded that its image lacks, so that the next image has it.

Only for images of the store. The report is appended to the file that the request names `profile`, entries as in training.py; then `on_news`
is started, without waiting for it. If anything fails, nothing is reported: the program ends as it would without this.

A process that a signal ends does nothing at its end, as most servers and the workers of many. So what was loaded is also reported once
nothing more was for a while. `on_news` would be a child of the running program then; the next start asks for the image (`snapboot run`).
"""

import _signal
import posix
import sys

from . import code_lines, modules, process
from .channel import fields
from .environment import IGNORED, changed
from .process_state import SIGNALS, Patches
from .report import to_bytes
from .request import decode, encode, read_all


class LoadReport:
    """The modules and patches known when the image is made, and what changed since."""

    def __init__(self, request):
        self._profile = encode(request.profile)
        self._script = [("script", script) for script in request.told_of]
        self._on_news = [encode(word) for word in request.on_news]
        # Modules that were left out of the image on purpose are not reported.
        self._known = {*request.learnt, *request.known}
        self._own = tuple(folder + "/" for folder in request.checkouts)
        self._process = None
        self._has_patched = False

    def settle(self):
        """Records what is loaded. Call right before the freeze."""
        self._known.update(sys.modules)
        if code_lines.PREPARED:
            self._known.add(code_lines.NAME)  # each start with `-c` puts it there
        self._last = next(reversed(sys.modules))
        self._patches = Patches()

    def begin(self, variables):
        """Records the identity of this process, before the program can change it. variables: its environment."""
        self._process = posix.getpid()
        self._variables = dict(variables)
        try:
            self._folder = posix.getcwd()
        except OSError:
            self._folder = None

    def new_entries(self):
        """Returns the entries to report; most starts have none. Call while the modules still exist."""
        new = self._new_modules()
        # A child that the program forked reports nothing, nor does a process that must stay hidden.
        if not new or posix.getpid() != self._process or posix.getuid() != posix.geteuid() or self._folder is None:
            return ()
        entries = [entry for entry in modules.loaded_from_files([(name, sys.modules[name]) for name in new]) if not self._is_own(entry)]
        # Modules that are loaded after the program has patched functions of others may hold the patched ones. Checked only if there is
        # something to report, since it takes a millisecond: each function lies on a page of its own.
        if not entries or self._has_patched:
            return ()
        self._has_patched = any([not name.endswith(HARMLESS) for name in self._patches.found()])
        if self._has_patched:
            return ()
        return self._script + entries + changed(self._variables)

    def _new_modules(self):
        """Returns the names of modules that the image lacks, in the order of their loading."""
        new = []
        for name in reversed(sys.modules):
            if name is self._last:
                break
            if type(name) is str and name not in self._known:
                new.append(name)
        new.reverse()
        return new

    def _is_own(self, entry):
        """Returns whether an entry is about a file of the user, which no image will have."""
        _, file = map(decode, fields(entry[1]))
        return file.startswith(self._own) and not any(folder in file for folder in INSTALLED)

    def report_early(self):
        """Writes the report of a process that goes on. Called in a thread, while the main thread waits."""
        if not any([modules.is_being_loaded(sys.modules[name]) for name in self._new_modules()]):
            entries = self.new_entries()
            if entries:
                self._append(entries)

    def write(self, entries):
        """Writes the report. Call last of all: the process is then useless to the program."""
        try:
            # Reaching the maximum file size must not kill the process.
            _signal.signal(_signal.SIGXFSZ, _signal.SIG_IGN)
            if self._append(entries):
                self._start()
        except BaseException:
            pass

    def _append(self, entries):
        """Appends the entries that the file lacks. Returns whether the file belongs to the user. Raises OSError."""
        user = posix.geteuid()
        if posix.stat(self._profile.rpartition(b"/")[0]).st_uid != user:
            return False
        descriptor = posix.open(self._profile, OPENING, 0o600)
        status = posix.fstat(descriptor)
        if status.st_uid != user or status.st_mode & TYPE != REGULAR or status.st_size > MAX_SIZE:
            return False
        present = read_all(descriptor)
        data = to_bytes(entries)
        if data in present:
            posix.utime(descriptor)  # reported earlier but still missing from the image: triggers `on_news` again
        else:
            # Ends an entry that was cut off.
            posix.write(descriptor, data if present[-1:] in (b"", b"\0") else b"\0" + data)
        posix.close(descriptor)
        return True

    def _start(self):
        """Starts `on_news` with the environment and directory of this process' start. Raises OSError."""
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


INSTALLED = ("/site-packages/", "/dist-packages/")
# Replacing these changes only messages, and no import keeps them.
HARMLESS = ("hook", "warning")
# Opening a FIFO must not wait for its other end.
OPENING = posix.O_RDWR | posix.O_APPEND | posix.O_CREAT | posix.O_NOFOLLOW | posix.O_CLOEXEC | posix.O_NONBLOCK | posix.O_NOCTTY
MAX_SIZE = 1 << 20
# S_IFMT and S_IFREG of stat.h.
TYPE = 0o170000
REGULAR = 0o100000
