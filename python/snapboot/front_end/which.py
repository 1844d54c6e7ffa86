"""Makes `shutil.which` find an installed command's own file, not the link to its image that precedes it on PATH.

A program looks up its own name and those of its siblings, and compares the result with its own file: pip does, to name itself in its
notice. Modules that were loaded while the program booted hold the function itself, so that another one in its place would not do: it gets
other code. A function that is not as in CPython's `shutil` stays as it is, and finds the links.
"""

import posix
import sys


def find_programs(script):
    """Makes `shutil.which` return the program behind a link to an image of the store, if the program lies beside this script. Where
    `shutil` is loaded later, it finds the links. Changes the function's code, so that it also works for whoever has already imported it."""
    which = getattr(sys.modules.get("shutil"), "which", None)
    kind = type(find_programs)
    if type(which) is not kind or which.__closure__ or which.__code__.co_varnames[:3] != ("cmd", "mode", "path"):
        return
    if PLACE not in _instead.__code__.co_consts:
        return  # a compiler that keeps constants elsewhere
    original = kind(which.__code__, which.__globals__, which.__name__, which.__defaults__)
    folder = script.rpartition("/")[0]

    def find(cmd, mode, path):
        found = original(cmd, mode, path)
        return _program(found, folder) or found

    constants = tuple(find if constant == PLACE else constant for constant in _instead.__code__.co_consts)
    code = which.__code__
    which.__code__ = _instead.__code__.replace(
        co_consts=constants, co_filename=code.co_filename, co_name=code.co_name, co_firstlineno=code.co_firstlineno
    )


def _program(found, folder):
    """Returns the program whose image this link leads to, if it lies in this folder; else None."""
    try:
        image = posix.readlink(found)
        if not image.endswith(".img"):
            return None
        program = posix.readlink(image.rpartition("/")[0] + "/program")
        return program if program.rpartition("/")[0] == folder else None
    except (OSError, TypeError, ValueError):
        return None  # no link, or no text


PLACE = 8020190114


def _instead(cmd, mode, path):
    find = 8020190114
    return find(cmd, mode, path)
