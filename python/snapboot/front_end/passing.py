"""Reads whose answer is thrown away at once."""

import sys


def is_for_nothing(frame):
    """Whether the size of the terminal is asked for a formatter of `argparse` that only tries whether an option's help can be formatted:
    each `add_argument` makes one and drops it. frame: that of `shutil.get_terminal_size`, or of whom that asks."""
    argparse = getattr(sys.modules.get("argparse"), "__file__", None)
    while frame is not None and frame.f_globals.get("__name__") in ("os", "_collections_abc", "shutil"):
        frame = frame.f_back
    names = []
    while frame is not None and frame.f_code.co_filename == argparse:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names[:2] == ["__init__", "_get_formatter"] and "add_argument" in names
