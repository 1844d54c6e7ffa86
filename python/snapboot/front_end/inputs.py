"""Which files this interpreter has loaded."""

import posix

from . import modules


def loaded_files(script):
    """Returns the absolute paths of all sources and extension modules that were loaded, without duplicates. `snapboot freeze` sees other
    reads from outside.

    script: the path of the main script, or None.
    """
    files = dict.fromkeys([] if script is None else [script])
    for names in modules.all_names():
        for path in _files_of(names):
            files[path] = None
    return [path for path in files if path.startswith("/") and _is_file(path)]


def _files_of(names):
    spec = names.get("__spec__")
    candidates = [names.get("__file__")]
    if spec is not None and getattr(spec, "has_location", False):
        candidates.append(getattr(spec, "origin", None))
        # A module from a zip archive has no file of its own.
        candidates.append(getattr(getattr(spec, "loader", None), "archive", None))
    for path in candidates:
        if type(path) is str:
            yield path if path.startswith("/") else posix.getcwd() + "/" + path


def _is_file(path):
    try:
        return posix.stat(path).st_mode & 0o170000 == 0o100000
    except (OSError, ValueError):
        return False
