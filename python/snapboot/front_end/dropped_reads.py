"""Recognises reads whose answer is dropped at once, by the functions that called the reader.

`argparse` asks for the terminal's size each time a program adds an option, and drops the answer. A recipe cannot say that of its file: the
same function reads the size for a help text, which a program may keep. With frames of any other shape the read counts, and an image depends
on the size.
"""

import sys


def is_for_nothing(frame):
    """Returns whether the terminal's size is read for a formatter of `argparse` that only checks whether an option's help can be formatted:
    each `add_argument` creates one and drops it. frame: of `shutil.get_terminal_size`, or of its caller."""
    argparse = getattr(sys.modules.get("argparse"), "__file__", None)
    while frame is not None and frame.f_globals.get("__name__") in ("os", "_collections_abc", "shutil"):
        frame = frame.f_back
    names = []
    while frame is not None and frame.f_code.co_filename == argparse:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names[:2] == ["__init__", "_get_formatter"] and "add_argument" in names
