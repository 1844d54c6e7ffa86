"""What an import makes outside of the process, what it looks for that others make there, and what it reads of the current directory: in
a child that only tries imports, and ends for good."""

import posix
import sys

from .fork import fork
from .request import decode


class Making:
    """Hears of it from its making on. The ear cannot be taken off, so this is never made in a process that becomes an image.

    events: phrases are added to this list.
    """

    def __init__(self, events):
        self.events = events
        self._temporary = []
        self._seen = 0
        self._unnamed = False
        sys.addaudithook(self._hear)

    def look(self):
        """Adds an event for the temporary files and folders that have been made since the last look and are still there, or of whose name
        something is left. Of all others nothing is."""
        new = self._temporary[self._seen :]
        self._seen = len(self._temporary)
        unnamed, self._unnamed = self._unnamed, False
        is_left = any(one.exists() for one in new) or (new or unnamed) and _has_open_what_is_removed()
        if is_left or new and _holds_any([one.name for one in new]):
            self.events.append(TEMPORARY)

    def clean_up(self):
        """Removes temporary files and folders that were made, as their maker would have done at its end."""
        for one in self._temporary:
            try:
                one.remove(one.path())
            except (OSError, TypeError, ValueError):
                pass

    def _hear(self, event, arguments):
        if event in REMOVERS:
            self._temporary.append(Temporary(REMOVERS[event], arguments[0], sys._getframe(1)))
        elif event in MAKERS and any(one.has(arguments[0]) for one in self._temporary):
            pass  # what becomes of it is looked for
        elif event == "open" and _is_folder(arguments[0]):
            # Nothing can be written to one: this makes a file without a name in it (O_TMPFILE), or its opener makes one.
            self._unnamed = True
        elif event == "os.mkdir":
            self._add("makes the folder %s", arguments[0])
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
        # The importer's own files come and go, and nobody but it looks at them.
        if "__pycache__" not in path and not path.startswith("/dev/"):
            self.events.append(phrase % path)


class Temporary:
    """A temporary file or folder. Its name is kept backwards, so that a search of this process does not find it here."""

    def __init__(self, remove, path, frame):
        text = _text(path)
        # `tempfile` makes the random part of the name itself.
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
        """Whether it is this one, or lies in it."""
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
            pass  # that of the list itself
    return False


def _holds_any(backwards):
    """Whether any object holds a text with one of these names."""
    import gc

    gc.collect()
    for holder in gc.get_objects():
        # Frames of this search have the names as they are.
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
        # The collector does not know containers of texts and numbers alone.
        elif issubclass(kind, (dict, tuple)) and not gc.is_tracked(part) and _has_any(part, backwards, gc):
            return True
    return False


def _is_shared(path):
    """Whether that is a directory such as /tmp, where anybody makes files at any time."""
    try:
        return posix.stat("." if path is None else path).st_mode & SHARED == SHARED
    except (OSError, TypeError, ValueError):
        return False


def _finds_modules(frame):
    """Whether an importer lists a directory of the search path."""
    return frame.f_code.co_filename.startswith("<frozen importlib")


def _tries_folders(frame):
    """Whether `tempfile` looks for a folder for temporary files: it makes one in each, and removes it."""
    while frame is not None and frame.f_globals.get("__name__") == "tempfile":
        if frame.f_code.co_name == "_get_default_tempdir":
            return True
        frame = frame.f_back
    return False


def _is_found_from_here(path):
    """Whether that is a file whose name starts in the current directory: in each start made elsewhere it is another one, or none."""
    try:
        text = _text(path)
        return not text.startswith("/") and posix.stat(text).st_mode & FORMAT == REGULAR
    except (OSError, TypeError, ValueError):
        return False


def _is_of_this_folder(frame):
    """Whether the module that is being loaded lies in or below the current directory. A program of this folder is started there, and an
    image of it may depend on what the folder holds; a tool is started anywhere."""
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame is None:
        return False
    path = frame.f_code.co_filename
    here = posix.getcwd().rstrip("/")
    return not path.startswith("/") or path.startswith(here + "/")


def _text(path):
    """The text of a path in any of its forms."""
    path = posix.fspath(path)
    return decode(path) if isinstance(path, bytes) else path


def _caller(frame):
    """Name of the module that has a process started."""
    while frame is not None and frame.f_globals.get("__name__") in ("os", "subprocess"):
        frame = frame.f_back
    return frame and frame.f_globals.get("__name__")


# What starts a process, and what is raised before that.
STARTERS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
# These ask where a library is and what the machine is: the files that such a process has read are inputs.
ASK_THE_MACHINE = {"ctypes.util", "platform"}
LISTS = {"os.listdir", "os.scandir"}
# S_ISVTX and S_IWOTH of stat.h.
SHARED = 0o1002
# S_IFMT, S_IFREG and S_IFDIR.
FORMAT = 0o170000
REGULAR = 0o100000
FOLDER = 0o040000
# What is raised where a file or folder is made.
MAKERS = {"open", "os.mkdir"}
FRAME = type(sys._getframe())
TEMPORARY = "makes a temporary file or folder"
REMOVERS = {"tempfile.mkdtemp": posix.rmdir, "tempfile.mkstemp": posix.unlink}
WRITING = posix.O_CREAT | posix.O_WRONLY | posix.O_RDWR
