"""The standard streams: made anew for the descriptors 0, 1 and 2 after the thaw, as at CPython's start.

The text and the buffer of each stream keep their identity, since modules may have taken references when they were imported
(`logging.StreamHandler(sys.stderr)`): their `__init__` is called again, which the C implementation of `io` allows
and which replaces their whole state. Only the raw file is a new object: it remembers for good whether it can seek.
"""

import _io
import posix
import sys

# By number: the name in sys, and the name of the stream that Python itself has made.
STREAMS = [("stdin", "__stdin__"), ("stdout", "__stdout__"), ("stderr", "__stderr__")]
DEFAULT_BUFFER_SIZE = _io.DEFAULT_BUFFER_SIZE
# The number of bytes that a text stream reads at once by default.
CHUNK = 8192
# The `newline` of a text stream, by its reading of these lines.
LINES = "a\nb\r\nc\rd"
NEWLINES = {
    ("a\n", "b\r\n", "c\rd"): "\n",
    ("a\nb\r\n", "c\rd"): "\r\n",
    ("a\nb\r", "\nc\r", "d"): "\r",
    ("a\n", "b\r\n", "c\r", "d"): "",
    ("a\n", "b\n", "c\n", "d"): None,
}


class Stream:
    """One standard stream of the frozen process."""

    def __init__(self, name, descriptor):
        self.name = name
        self.descriptor = descriptor
        self.text = text = sys.__dict__["__" + name + "__"]
        if text is None:
            return
        self.buffer = text.buffer
        # Python's option -u leaves out the buffer of streams that write.
        self.buffered = not isinstance(self.buffer, _io.FileIO)
        self.unbuffered = descriptor > 0 and not self.buffered
        self.line_buffering = text.line_buffering
        self.began_held = self._count_holders()
        self.is_own = self.is_alone = False
        self.views = []
        self.closed_by_program = False
        self.began_inherited, self.began_blocking = posix.get_inheritable(descriptor), posix.get_blocking(descriptor)

    def settle(self):
        """Records how the program has set up the stream. Call right before the freeze. A stream that the program has closed stays closed;
        if it has closed the descriptor, the freezer refuses (crates/freezer standard_streams.rs)."""
        if self.text is None:
            return
        self.closed_by_program = is_closed(self.buffer) or not is_open(self.descriptor)
        if self.closed_by_program:
            return
        for text in (self.text, sys.__dict__.get(self.name)):
            if type(text) is not _io.TextIOWrapper or any(text is view[0] for view in self.views):
                continue
            try:
                if text.buffer is not self.buffer:
                    continue
            except ValueError:  # detached: the program uses the buffer otherwise
                continue
            kept = None if text.line_buffering == self.line_buffering else text.line_buffering
            view = text, text.encoding, text.errors, self._newline_of(text), kept, text.write_through, text._CHUNK_SIZE
            self.views.append(view)
        self.is_own = bool(self.views) and self.views[0][0] is self.text
        self.is_alone = self.is_own and len(self.views) == 1 and self._count_holders() == self.began_held
        self.inherited, self.blocking = posix.get_inheritable(self.descriptor), posix.get_blocking(self.descriptor)
        if self.views:
            self.renew()  # see _newline_of

    def _count_holders(self):
        return sys.getrefcount(self.buffer)

    def encode_as(self, encoding, errors, write_through):
        """Sets the encoding of the interpreter's own text stream for the next `renew`. An argument of None changes nothing."""
        text, old_encoding, old_errors, newline, kept, old_through, chunk = self.views[0]
        if encoding is not None:
            old_encoding, old_errors = encoding, "backslashreplace" if self.descriptor == 2 else errors
        through = old_through if write_through is None else write_through
        self.views[0] = text, old_encoding, old_errors, newline, kept, through, chunk

    def _newline_of(self, text):
        """Returns the `newline` that the program has given a text stream. No attribute shows it, so it is derived from how lines are read.
        The stream must be made anew afterwards."""
        if not self.buffered:
            return "\n"
        try:
            if self.descriptor:
                text.flush()
                file = _io.BytesIO()
                self.buffer.__init__(file)
                text.write("\n")
                text.flush()
                return file.getvalue().decode(text.encoding)
            self.buffer.__init__(_io.BytesIO(LINES.encode(text.encoding)))
            return NEWLINES.get(tuple(iter(text.readline, "")), "\n")
        except Exception:
            return "\n"

    def _renew_descriptor(self):
        """Records the program's changes to a descriptor's flags; each start has another descriptor."""
        if self.inherited is not self.began_inherited:
            posix.set_inheritable(self.descriptor, self.inherited)
        if self.blocking is not self.began_blocking:
            posix.set_blocking(self.descriptor, self.blocking)

    def renew(self):
        """Makes the stream fit its descriptor as that is now. Raises OSError if that is closed, or a directory."""
        descriptor = self.descriptor
        raw = _io.FileIO(descriptor, "wb" if descriptor else "rb", False)
        raw.name = "<" + self.name + ">"
        interactive = raw.isatty()
        if self.unbuffered:
            self.buffer, self.buffered = raw, False
        else:
            size = DEFAULT_BUFFER_SIZE
            if not interactive and raw._blksize > 1:
                size = max(min(raw._blksize, LARGEST_BLOCK), SMALLEST_BUFFER)
            if self.buffered:
                self.buffer.__init__(raw, size)
            else:
                self.buffer, self.buffered = _io.BufferedWriter(raw, size), True
        buffer = self.buffer
        by_line = self.by_line_allowed and (interactive or (descriptor == 2 and STDERR_BY_LINE))
        for text, encoding, errors, newline, kept, write_through, chunk in self.views:
            text.__init__(buffer, encoding, errors, newline, by_line if kept is None else kept, write_through)
            if chunk != CHUNK:
                text._CHUNK_SIZE = chunk
        self._renew_descriptor()


class Streams:
    """All three standard streams."""

    def __init__(self):
        """Create this before the program can change anything."""
        self.all = [Stream("stdin", 0), Stream("stdout", 1), Stream("stderr", 2)]
        self.unbuffered = any(stream.text is not None and not stream.buffered for stream in self.all)
        for stream in self.all:
            stream.by_line_allowed = not self.unbuffered

    def are_as(self, unbuffered, encoding, errors):
        """Returns whether all exist, and are as an interpreter with these settings makes them."""
        return all(
            type(stream.text) is _io.TextIOWrapper
            and stream.text.encoding == encoding
            and stream.text.errors == ("backslashreplace" if stream.descriptor == 2 else errors)
            and stream.text.write_through is unbuffered
            and stream.unbuffered is (unbuffered and stream.descriptor > 0)
            for stream in self.all
        )

    def are_own(self):
        """Returns whether the program has left the interpreter's own text streams unchanged. Call after `settle`."""
        return all(stream.text is not None and not stream.closed_by_program and stream.is_own for stream in self.all)

    def are_alone(self):
        """Returns whether only these text streams hold their buffers."""
        return all(stream.is_alone for stream in self.all)

    def encode_as(self, encoding, errors):
        """See Stream.encode_as."""
        for stream in self.all:
            stream.encode_as(encoding, errors, None)

    def buffer(self, unbuffered):
        """Makes them buffered, or not, from the next `renew` on."""
        self.unbuffered = unbuffered
        for stream in self.all:
            stream.by_line_allowed = not unbuffered
            stream.unbuffered = unbuffered and stream.descriptor > 0
            stream.encode_as(None, None, unbuffered)

    def settle(self):
        """See Stream.settle."""
        for stream in self.all:
            stream.settle()

    def renew(self):
        """Makes all three anew. Raises OSError (see Stream.renew): an ordinary start has None for a closed stream, and loaded modules may
        have tested for that or kept the stream.
        """
        for stream in self.all:
            if stream.text is None:
                self._create(stream)
            elif not stream.closed_by_program:
                stream.renew()

    def _create(self, stream):
        """Creates a stream that was closed while freezing, and is open now."""
        if not is_open(stream.descriptor):
            return
        model = next((view for other in self.all for view in getattr(other, "views", ())), None)
        encoding = model[1] if model else sys.getfilesystemencoding()
        errors = "backslashreplace" if stream.descriptor == 2 else "strict"
        text = _io.open(stream.descriptor, "w" if stream.descriptor else "r", -1, encoding, errors, "\n", False)
        text.buffer.raw.name = "<" + stream.name + ">"
        text.mode = "w" if stream.descriptor else "r"
        if stream.descriptor == 2:
            text.reconfigure(line_buffering=True)
        names = sys.__dict__
        names["__" + stream.name + "__"] = text
        if names[stream.name] is None:
            names[stream.name] = text


def flush(*names):
    """Flushes the streams with these names in `sys`. One that is closed, detached, None, deleted or no file is the program's own affair."""
    for name in names:
        try:
            sys.__dict__[name].flush()
        except Exception:
            pass


def is_closed(stream):
    """Returns whether this is closed, whatever it is; False for a stream that has only lost its buffer."""
    try:
        return bool(stream.closed)
    except BaseException:  # such as ValueError of a detached stream
        return False


def is_open(descriptor):
    """Returns whether the process has the descriptor open."""
    try:
        posix.fstat(descriptor)
    except OSError:
        return False
    return True


# CPython uses a file's block size as the size of its buffer; from 3.14 on only within these bounds (bytes).
SMALLEST_BUFFER = DEFAULT_BUFFER_SIZE if sys.version_info >= (3, 14) else 0
LARGEST_BLOCK = 8 * 2**20 if sys.version_info >= (3, 14) else sys.maxsize
# CPython 3.9 made stderr line-buffered for all kinds of files.
STDERR_BY_LINE = sys.version_info >= (3, 9)
