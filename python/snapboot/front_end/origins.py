"""Records where descriptors were opened, files and folders created, and attributes of the process changed. Used only in the diagnosing run
that follows a refusal."""

import _thread
import posix
import sys

from .report import to_bytes
from .request import encode

# Which argument names the created file.
MAKING = {"open": 0, "os.mkdir": 0, "os.rename": 1, "os.link": 1, "os.symlink": 1, "socket.bind": 1}
SETTING = ("posix", "resource", "_ctypes")
# The number of the descriptor that stays open, so that the program's descriptors have the same numbers as in the refused boot. Where the
# limit does not allow this number, the numbers differ, and their places are not reported.
OUT_OF_THE_WAY = 500
# Modules of functions, as they say, that open nothing: methods have none.
QUIET = (None, "builtins")
OPENING = ("open", "socket.__new__", "socket.accept", "subprocess.Popen", "os.memfd_create")


class Origins:
    """Records from construction on. The hook cannot be removed, so this never runs in a process that becomes an image.

    folder: the control directory (bytes). attributes: the ProcessAttributes.
    """

    def __init__(self, folder, attributes):
        self._attributes = attributes
        # Opened at the start: a program that gives up its rights could not open it any more.
        changes = posix.open(folder + b"/attribute_origins", posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o600)
        try:
            self._changes = posix.dup2(changes, OUT_OF_THE_WAY, inheritable=False)
            posix.close(changes)
        except OSError:
            self._changes = changes
        attributes.look()
        self._places = {}
        self._made = {}
        self._busy = False
        self._seen = _descriptors()
        self._place = None
        self._free = self._lowest_free()
        self._library = _library_folders()
        sys.addaudithook(self._on_event)
        sys.setprofile(self._after_call)

    def found(self):
        """Returns a list of "NUMBER:FILE:LINE", one for each descriptor whose opening was seen."""
        self._busy = True
        self._assign(self._place)
        return ["%d:%s:%d" % (number, *place) for number, place in sorted(self._places.items())]

    def made(self):
        """Returns a list of "PATH:FILE:LINE", one for each name that may have been created there and exists now."""
        self._busy = True
        return [b"%s:%s:%d" % (path, encode(name), line) for path, (name, line) in self._made.items() if _is_there(path)]

    def _after_call(self, frame, event, function):
        """Sees calls of C functions, and the bodies of modules, to attribute changes and opens that raise no audit event."""
        self._see_opened(frame, event, function)
        is_body = event == "return" and frame.f_code.co_name == "<module>"
        if is_body or event == "c_return" and getattr(function, "__module__", None) in SETTING:
            changed = self._attributes.look()
            name, line = self._caller() if changed else (None, None)
            place = name if is_body else "%s:%s" % (name, line)
            posix.write(self._changes, to_bytes([("attribute_origin", "%s:%s" % (change[1:], place)) for change in changed]))

    def _see_opened(self, frame, event, function):
        """Finds the place of a descriptor as soon as the function returns that has opened it. Not all of them raise an event: a database's
        driver in C does not. Asks for the lowest free number, since a list of all descriptors would take too long here."""
        if self._busy or event not in ("return", "c_return") or event == "c_return" and getattr(function, "__module__", None) in QUIET:
            return
        free, self._free = self._free, self._lowest_free()
        if free != self._free:
            # Which of several threads has opened it, nobody knows.
            self._assign(self._place if self._place is not None or _thread._count() else self._place_from(frame))
        self._place = None

    def _lowest_free(self):
        number = posix.dup(self._changes)
        posix.close(number)
        return number

    def _on_event(self, event, arguments):
        if self._busy or event not in OPENING and event not in MAKING:
            return
        self._busy = True
        try:
            if event in MAKING and (event != "open" or arguments[2] & posix.O_CREAT):
                self._make(arguments[MAKING[event]])
            if event not in OPENING:
                return
            # The event precedes the descriptor: a new one now was opened by the previous event.
            self._assign(self._place)
            self._place = self._caller()
        finally:
            self._busy = False

    def _make(self, name):
        path = _path(name)
        if path is not None and path not in self._made:
            self._made[path] = self._caller(3)

    def _assign(self, place):
        now = _descriptors()
        for number in now - self._seen:
            self._places.pop(number, None)
            if place is not None:
                self._places[number] = place
        self._seen = now

    def _caller(self, depth=2):
        return self._place_from(sys._getframe(depth))

    def _place_from(self, first):
        """Returns the innermost frame outside the standard library, or the innermost of all."""
        frame = first
        while frame is not None:
            name = frame.f_code.co_filename
            if not name.startswith("<") and (not name.startswith(self._library) or "/site-packages/" in name):
                return name, frame.f_lineno
            frame = frame.f_back
        return first.f_code.co_filename, first.f_lineno


def _descriptors():
    return {number for number in map(int, posix.listdir("/proc/self/fd")) if _is_open(number)}


def _path(name):
    """Returns the absolute path of a name as bytes; None for a descriptor's number or a network address."""
    try:
        path = encode(getattr(type(name), "__fspath__", lambda it: it)(name))
    except (AttributeError, TypeError, ValueError):
        return None
    return path if path[:1] == b"/" else posix.getcwdb() + b"/" + path


def _is_there(path):
    try:
        posix.lstat(path)
    except (OSError, ValueError):
        return False
    return True


def _is_open(number):
    # The listing also shows the descriptor that it uses itself.
    try:
        posix.fstat(number)
    except OSError:
        return False
    return True


def _library_folders():
    import os

    return (os.path.dirname(os.__file__) + "/", __file__.rpartition("/")[0] + "/")
