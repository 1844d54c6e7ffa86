"""What may differ between any two starts of the same program, thawed or not. Nothing else is made equal before comparing."""

import re

RULES = (
    # (what it is, pattern, what it becomes)
    ("a process' number, where a message names it", rb"\b(pid[ =:]*)\d+", rb"\1PID"),
    ("an address, as in <object at 0x7f...>", rb"\b0x[0-9a-f]{7,16}\b", rb"0xADDRESS"),
    ("a thread's number, an address in <Thread(..., started 1404...)>", rb"\bstarted (daemon )?\d{9,}", rb"started \1ID"),
    ("faulthandler's frames of C code (CPython 3.14 or later): other calls lead there after a thaw", rb"(  Binary file .*\n)+", b"  C\n"),
    ("a name made by tempfile or Tempfile", rb"/tmp(?:[a-z0-9_]{8}|\d{8}-\d+-[a-z0-9]+)\b", rb"/tmpNAME"),
)
PATTERNS = [(re.compile(pattern), replacement) for _, pattern, replacement in RULES]


def normalised(data):
    """The bytes that a program showed, without what differs from one start to the next."""
    for pattern, replacement in PATTERNS:
        data = pattern.sub(replacement, data)
    return data
