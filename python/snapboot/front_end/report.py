"""The front end's report to `snapboot freeze`: DIR/report, entries as in the request."""

import posix

from .channel import OF_PROGRAM, record
from .request import encode

# Exit statuses of the freezing process.
OK = 0
PROGRAM_RAISED = 1
USER_MISTAKE = 2
FREEZER_REFUSED = 3
NOT_WRITTEN = 5
FOLDER = __file__.rpartition("/")[0] + "/"


class Report:
    """The entries of the report: an ordered list of (key, value); value is str or bytes."""

    def __init__(self):
        self.entries = []

    def add(self, key, value):
        """Adds one entry."""
        self.entries.append((key, value))

    def add_record(self, key, *fields):
        """Adds one entry with several fields, each str or bytes."""
        self.add(key, record(*map(as_bytes, fields)))

    def add_event(self, kind, subject, reader, place, detail=b"", renewed=b""):
        """Adds an event: what the program has read. See the fields of an event in channel.py, each str or bytes. renewed: `b"1"` where a
        thaw renews the results of the read."""
        self.add_record("event", kind, OF_PROGRAM, subject, reader, place, detail, renewed)

    def write(self, folder, name="report"):
        """Writes the file of that name into the control directory. Raises OSError."""
        write_file(folder + b"/" + name.encode(), to_bytes(self.entries))


def described(error):
    """Describes an error of the front end's own code, as report.rb does: the error, where it was raised, and the callers."""
    places, trace = [], error.__traceback__
    while trace is not None:
        places.append("%s:%d" % (trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    raised = places[-1:]
    called = [place for place in places if place.startswith(FOLDER) and place not in raised][-1:]
    if raised and raised[0].startswith(FOLDER):
        called = []
    return "%s: %s (%s)" % (type(error).__name__, str(error).partition("\n")[0], ", called by ".join(raised + called))


def to_bytes(entries):
    """Encodes entries, pairs of key and value, for a file."""
    return b"".join([key.encode() + b"=" + as_bytes(value) + b"\0" for key, value in entries])


def as_bytes(value):
    """Returns a value, or a field of a record, without the bytes that would end the entry."""
    return encode(value).replace(b"\0", b"")


def write_file(path, data):
    """Writes a new file. Raises OSError."""
    descriptor = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o600)
    try:
        while data:
            data = data[posix.write(descriptor, data) :]
    finally:
        posix.close(descriptor)
