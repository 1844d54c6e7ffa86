"""The first entry of `sys.path`, as CPython computes it from the command line."""

import posix
import sys


def absolute(path):
    """Makes a path absolute as CPython does for scripts: resolves nothing."""
    if path.startswith("/"):
        return path
    if path == "." and DOT_IS_FOLDER:
        return posix.getcwd()
    return posix.getcwd() + "/" + path


def first_entry(main):
    """Returns the entry for a main part that is neither a folder nor an archive; None if there is none.

    main: a command_line.Main.
    """
    if IS_SAFE:
        return None
    if main.kind == "code":
        return ""
    if main.kind == "module":
        try:
            return posix.getcwd()
        except OSError:
            return None
    return _folder_of(main.argv[0])


def importer_of(path):
    """Returns the importer of `path` if that is a folder or an archive; None otherwise. Cached as CPython caches it."""
    cache = sys.path_importer_cache
    if path not in cache:
        importer = None
        for hook in sys.path_hooks:
            try:
                importer = hook(path)
                break
            except ImportError:
                pass
        cache[path] = importer
    return cache[path]


def _folder_of(path):
    """Returns the folder of a script: follows the script's own symbolic link once, then resolves the whole path."""
    try:
        link = posix.readlink(path)
    except OSError:
        pass
    else:
        if link.startswith("/") or "/" not in link:
            path = link if link.startswith("/") else path
        else:
            path = path[: path.rfind("/") + 1] + link
    head, slash, _ = _resolve(path).rpartition("/")
    return head or slash


def _resolve(path):
    try:
        posix.stat(path)
    except (OSError, ValueError):
        return path
    import posixpath

    return posixpath.realpath(path)


# Whether the interpreter runs with -I or -P, which leave the entry out.
IS_SAFE = bool(sys.flags.isolated or getattr(sys.flags, "safe_path", False))
DOT_IS_FOLDER = sys.version_info >= (3, 11)
