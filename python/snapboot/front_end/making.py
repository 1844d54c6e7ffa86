"""Records what an import creates outside the process, what it looks for that others create there, and what it reads of the current
directory. Used in a child that only tries imports and then ends for good."""

import posix
import sys

from .fork import fork
from .request import decode


class Making:
    """Records from construction on. The audit hook cannot be removed, so this is never created in a process that becomes an image.

    events: phrases are added to this list.
    """

    def __init__(self, events):
        self.events = events
        self._temporary = []
        self._seen = 0
        self._unnamed = False
        sys.addaudithook(self._on_event)

    def look(self):
        """Adds an event for each temporary file or folder created since the last look that still exists, or whose name is still held. The
        others have left nothing."""
        new = self._temporary[self._seen :]
        self._seen = len(self._temporary)
        unnamed, self._unnamed = self._unnamed, False
        is_left = any(one.exists() for one in new) or (new or unnamed) and _has_open_what_is_removed()
        if is_left or new and _holds_any([one.name for one in new]):
            self.events.append(TEMPORARY)

    def clean_up(self):
        """Removes temporary files and folders, as their creator would have done at its end."""
        for one in self._temporary:
            try:
                one.remove(one.path())
            except (OSError, TypeError, ValueError):
                pass

    def _on_event(self, event, arguments):
        if event in REMOVERS:
            self._temporary.append(Temporary(REMOVERS[event], arguments[0], sys._getframe(1)))
        elif event in MAKERS and any(one.has(arguments[0]) for one in self._temporary):
            pass  # `look` checks it later
        elif event == "open" and _is_folder(arguments[0]):
            # A folder cannot be opened for writing: this creates a nameless file in it (O_TMPFILE), or a custom opener creates one.
            self._unnamed = True
        elif event == "os.mkdir":
            self._add("makes the directory %s", arguments[0])
        elif event in LISTS and _is_shared(arguments[0]) and not _finds_modules(sys._getframe(1)):
            self.events.append("lists %s" % arguments[0])
        elif event in STARTERS:
            if _caller(sys._getframe(1)) not in ASK_THE_MACHINE | {fork.__module__}:
                self.events.append("starts another process")
        elif event == "open" and type(arguments[0]) is not int and type(arguments[2]) is int and arguments[2] & WRITING:
            if not _tries_folders(sys._getframe(1)):
                self._add("opens %s for writing", arguments[0])
        elif event == "open" and _is_found_from_here(arguments[0]) and not _is_of_this_folder(sys._getframe(1)):
            self._add("reads %s of the current directory", _text(arguments[0]))

    def _add(self, phrase, path):
        path = str(path)
        # The importer's own files come and go, and only the importer reads them.
        if "__pycache__" not in path and not path.startswith("/dev/"):
            self.events.append(phrase % path)


class Temporary:
    """A temporary file or folder. Its name is stored backwards, so that a search of this process does not find it here."""

    def __init__(self, remove, path, frame):
        text = _text(path)
        # `tempfile` chooses the random part of the name itself.
        name = frame.f_locals.get("name") if frame.f_globals.get("__name__") == "tempfile" else None
        self.remove = remove
        self.backwards = text[::-1]
        self.name = (_text(name) if name else text.rpartition("/")[2])[::-1]

    def path(self):
        return self.backwards[::-1]

    def exists(self):
        try:
            posix.lstat(self.path())
            return True
        except (OSError, ValueError):
            return False

    def has(self, path):
        """Returns whether the path is this one, or lies in it."""
        try:
            return (_text(path) + "/").startswith(self.path() + "/")
        except (TypeError, ValueError):
            return False


def _is_folder(path):
    try:
        return posix.stat(_text(path)).st_mode & FORMAT == FOLDER
    except (OSError, TypeError, ValueError):
        return False


def _has_open_what_is_removed():
    for number in posix.listdir("/proc/self/fd"):
        try:
            if posix.readlink("/proc/self/fd/" + number).endswith(" (deleted)"):
                return True
        except OSError:
            pass  # the descriptor of the listing itself
    return False


def _holds_any(backwards):
    """Returns whether any object holds a text with one of these names."""
    import gc

    gc.collect()
    for holder in gc.get_objects():
        # The frames of this search hold the names themselves.
        if type(holder) is not FRAME and _has_any(holder, backwards, gc):
            return True
    return False


def _has_any(holder, backwards, gc):
    for part in gc.get_referents(holder):
        kind = type(part)
        if issubclass(kind, str):
            if any(str.__contains__(part, name[::-1]) for name in backwards):
                return True
        elif issubclass(kind, (bytes, bytearray)):
            if any(kind.__contains__(part, name[::-1].encode()) for name in backwards):
                return True
        # The collector does not track containers that hold only texts and numbers.
        elif issubclass(kind, (dict, tuple)) and not gc.is_tracked(part) and _has_any(part, backwards, gc):
            return True
    return False


def _is_shared(path):
    """Returns whether the path is a directory such as /tmp, where anybody creates files at any time."""
    try:
        return posix.stat("." if path is None else path).st_mode & SHARED == SHARED
    except (OSError, TypeError, ValueError):
        return False


def _finds_modules(frame):
    """Returns whether an importer lists a directory of the search path."""
    return frame.f_code.co_filename.startswith("<frozen importlib")


def _tries_folders(frame):
    """Returns whether `tempfile` looks for a folder for temporary files: it creates a file in each, and removes it."""
    while frame is not None and frame.f_globals.get("__name__") == "tempfile":
        if frame.f_code.co_name == "_get_default_tempdir":
            return True
        frame = frame.f_back
    return False


def _is_found_from_here(path):
    """Returns whether the path is a file named relative to the current directory: a start elsewhere finds another file, or none."""
    try:
        text = _text(path)
        return not text.startswith("/") and posix.stat(text).st_mode & FORMAT == REGULAR
    except (OSError, TypeError, ValueError):
        return False


def _is_of_this_folder(frame):
    """Returns whether the module that is being loaded lies in or below the current directory. A program of this folder is started there,
    and its image may depend on the folder's contents; a tool is started anywhere."""
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame is None:
        return False
    path = frame.f_code.co_filename
    here = posix.getcwd().rstrip("/")
    return not path.startswith("/") or path.startswith(here + "/")


def _text(path):
    """Returns the text of a path in any of its forms."""
    path = posix.fspath(path)
    return decode(path) if isinstance(path, bytes) else path


def _caller(frame):
    """Returns the name of the module that starts a process."""
    while frame is not None and frame.f_globals.get("__name__") in ("os", "subprocess"):
        frame = frame.f_back
    return frame and frame.f_globals.get("__name__")


# The calls that start a process, by the audit event raised before it.
STARTERS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
# These ask where a library is or what the machine is: the files that their child processes read are inputs.
ASK_THE_MACHINE = {"ctypes.util", "platform"}
LISTS = {"os.listdir", "os.scandir"}
# S_ISVTX and S_IWOTH of stat.h.
SHARED = 0o1002
# S_IFMT, S_IFREG and S_IFDIR.
FORMAT = 0o170000
REGULAR = 0o100000
FOLDER = 0o040000
# The audit events raised when a file or folder is created.
MAKERS = {"open", "os.mkdir"}
FRAME = type(sys._getframe())
TEMPORARY = "makes a temporary file or directory"
REMOVERS = {"tempfile.mkdtemp": posix.rmdir, "tempfile.mkstemp": posix.unlink}
WRITING = posix.O_CREAT | posix.O_WRONLY | posix.O_RDWR
