"""A second reader and writer of the image format, made from docs/internals/image-format.md alone: patches images for tests.

That it reads what the first one wrote is itself a test of the document.
"""

import ctypes
import functools
import pathlib
import struct
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/internals/image-format.md"
sys.path.insert(0, str(ROOT / "tools"))

import workloads  # noqa: E402


class Format:
    """The records, sections and constants that the document names."""

    def __init__(self, text):
        self.records, self.sections, self.constants = {}, {}, {}
        heading = columns = None
        for line in text.splitlines():
            if line.startswith("#"):
                heading, columns = line.strip("# "), None
            elif not line.startswith("|"):
                columns = None
            else:
                row = [cell.strip() for cell in line.strip("|").split("|")]
                if columns is None:
                    columns = row
                elif set(row[0]) != {"-"}:
                    self._add(heading, columns, row)

    def _add(self, heading, columns, row):
        if columns[0] == "field":
            self.records.setdefault(heading, {})[row[0]] = (int(row[1]), int(row[2]))
        elif columns[0] == "section":
            self.sections[row[1]] = int(row[0])
        elif columns[1] == "value":
            self.constants[row[0]] = int(row[1], 0)

    def size(self, record):
        """Bytes of a record."""
        return max(offset + size for offset, size in self.records[record].values())


@functools.cache
def image_format():
    """The format, read once."""
    return Format(DOCUMENT.read_text())


@functools.cache
def xxhash():
    """The xxhash library; skips the test where it cannot be had."""
    try:
        workloads.install_debian_packages(("libxxhash0",))
        library = ctypes.CDLL("libxxhash.so.0")
    except (workloads.Unavailable, OSError) as reason:
        pytest.skip(f"checksums need libxxhash: {reason}")
    library.XXH3_64bits.restype = ctypes.c_uint64
    library.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return library


def xxh3(data):
    """The 64-bit XXH3 checksum."""
    return xxhash().XXH3_64bits(bytes(data), len(data))


class ImageFile:
    """An image as bytes whose fields can be read and changed by name."""

    def __init__(self, content):
        self.bytes = bytearray(content)
        self.format = image_format()
        self.head_at = self.format.constants["HEAD_OFFSET"]

    def head(self, field):
        """A field of the head, as a number (or bytes where it is not 4 or 8 long)."""
        return self._get("Head", field, self.head_at)

    def set_head(self, field, value):
        """Change a field of the head."""
        self._set("Head", field, self.head_at, value)

    def section(self, name):
        """Offset in the file, record size and size of a section; None when the image has none."""
        tables = self.head("tables_offset")
        (count,) = struct.unpack_from("<I", self.bytes, tables)
        for index in range(count):
            at = tables + 8 + index * self.format.size("Entry")
            if self._get("Entry", "section", at) == self.format.sections[name]:
                place = tables + self._get("Entry", "offset", at)
                return place, self._get("Entry", "record_size", at), self._get("Entry", "size", at)
        return None

    def rows(self, name):
        """Where in the file the rows of a section are."""
        place, record_size, size = self.section(name) or (0, 1, 0)
        return range(place, place + size, record_size)

    def get(self, record, field, at):
        """A field of the row of that record at a place in the file."""
        return self._get(record, field, at)

    def set(self, record, field, at, value):
        """Change a field of a row."""
        self._set(record, field, at, value)

    def text(self, record, field, at):
        """The string that a field of a row names."""
        offset, length = struct.unpack("<II", self._get(record, field, at))
        place = self.section("strings")[0] + offset
        return bytes(self.bytes[place : place + length])

    def seal(self):
        """Make the checksums of command, tables and head right again. Returns the bytes."""
        tables, size = self.head("tables_offset"), self.head("tables_size")
        self.set_head("tables_sum", xxh3(self.bytes[tables : tables + size]))
        at = self.head_at + self.format.constants["COMMAND_OFFSET"]
        self.set_head("command_sum", xxh3(self.bytes[at : at + self.head("command_size")]))
        summed = self.format.records["Head"]["head_sum"][0]
        self.set_head("head_sum", xxh3(self.bytes[self.head_at : self.head_at + summed]))
        return self.bytes

    def _get(self, record, field, at):
        offset, size = self.format.records[record][field]
        raw = bytes(self.bytes[at + offset : at + offset + size])
        is_number = size in (4, 8) and field not in ("magic", "path", "name", "text")
        return int.from_bytes(raw, "little") if is_number else raw

    def _set(self, record, field, at, value):
        offset, size = self.format.records[record][field]
        raw = value if isinstance(value, bytes) else value.to_bytes(size, "little")
        assert len(raw) == size
        self.bytes[at + offset : at + offset + size] = raw
