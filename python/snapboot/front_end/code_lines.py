"""Keeps the source of `-c` for tracebacks in the module `linecache`, as CPython does since 3.13.

CPython imports that module before it runs the code of `-c`, and at no other time by itself. A thaw that did the same would search the
module, read it and release it, and write to many pages. So it is imported before the freeze and taken out of `sys.modules`. A start with
`-c` puts it back, unless its own folder, which comes first in the search path, has a module of that name.
"""

import posix
import sys

from .search_path import importer_of

NAME = "linecache"


def prepare(kind, path_entry):
    """Imports the module ahead. Call while look-ups of modules are recorded.

    kind: of the main part that is frozen. path_entry: the entry of `sys.path` for it, or None. Each start has its own.
    """
    if not IS_USED or kind not in ("bare", "code") or NAME in sys.modules:
        return
    from . import importers  # here, since what is loaded without need is a part of each thaw

    path, known = sys.path[:], set(sys.modules)
    sys.path[:] = [entry for entry in path if entry is not path_entry]
    try:
        module = __import__(NAME)
    except ImportError:
        module = None  # each start will fail to import it, too
    finally:
        sys.path[:] = path
        added = [name for name in sys.modules if name not in known]
        for name in added:
            del sys.modules[name]
    if added == [NAME]:
        PREPARED.append(module)
    if PREPARED and module.__spec__.has_location:  # in 3.15 it is part of the interpreter, and not searched for
        FILES.extend(NAME + ending for ending in ("", *importers.suffixes()))


def register(code, text):
    """Keeps the source of the code of `-c`, if IS_USED."""
    if PREPARED and NAME not in sys.modules and not _is_in_own_folder():
        sys.modules[NAME] = PREPARED[0]
    import linecache

    # The first releases of 3.13 kept the source under the file's name.
    key = code if hasattr(linecache, "_interactive_cache") else "<string>"
    linecache._register_code(key, text, "<string>")


def _is_in_own_folder():
    """Returns whether the folder of this start may have the module. Leaves the folder's importer in the cache, as the import does."""
    if not FILES or "" not in sys.path:
        return False
    try:
        importer_of(posix.getcwd())
    except OSError:
        return False
    for name in FILES:
        if posix.access(name, posix.F_OK):
            return True
    return False


IS_USED = sys.version_info >= (3, 13)
PREPARED = []
# What it may be called in a folder.
FILES = []
