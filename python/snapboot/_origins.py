"""Where descriptors were opened: only in the diagnosing run that follows a refusal."""

import posix
import sys

OPENING = ("open", "socket.__new__", "socket.accept", "subprocess.Popen", "os.memfd_create")


class Origins:
    """Watches from its making on. The watch cannot be ended, so this never runs in a process that becomes an image."""

    def __init__(self):
        self._places = {}
        self._busy = False
        self._seen = _descriptors()
        self._place = None
        self._library = _library_folders()
        sys.addaudithook(self._hear)

    def found(self):
        """A list of "NUMBER:FILE:LINE", for each descriptor whose opening was seen."""
        self._busy = True
        self._assign()
        return ["%d:%s:%d" % (number, *place) for number, place in sorted(self._places.items())]

    def _hear(self, event, _):
        if self._busy or event not in OPENING:
            return
        self._busy = True
        try:
            # The event comes before the descriptor: what is new now was opened by the one before.
            self._assign()
            self._place = self._caller()
        finally:
            self._busy = False

    def _assign(self):
        now = _descriptors()
        for number in now - self._seen:
            if self._place is not None:
                self._places[number] = self._place
        self._seen = now

    def _caller(self):
        """The innermost frame outside the standard library; the innermost of all if there is none."""
        frame = first = sys._getframe(2)
        while frame is not None:
            name = frame.f_code.co_filename
            if not name.startswith("<") and (not name.startswith(self._library) or "/site-packages/" in name):
                return name, frame.f_lineno
            frame = frame.f_back
        return first.f_code.co_filename, first.f_lineno


def _descriptors():
    return {number for number in map(int, posix.listdir("/proc/self/fd")) if _is_open(number)}


def _is_open(number):
    # The listing shows the descriptor that it was made with, too.
    try:
        posix.fstat(number)
    except OSError:
        return False
    return True


def _library_folders():
    import os

    return (os.path.dirname(os.__file__) + "/", __file__.rpartition("/")[0] + "/")
