"""Records which modules importers look up while the program boots.

An importer lists its folder once and remembers the names, so its look-ups cannot be seen from outside. The image depends on them: a new
file with one of these names would be found first. Wrappers around the importer's methods record the look-ups, and are removed before the
freeze.
"""

import posix
import sys

from .channel import record
from .distributions import Distributions
from .report import as_bytes, to_bytes


class Importers:
    """Records look-ups from construction until `stop()`."""

    def __init__(self):
        self._class = type_ = _importer_class()
        # By folder: modules by full name, and whether each was found there; how often the folder was listed; other names looked up in
        # listings.
        self._looked_up = looked_up = {}
        self._lists = lists = {}
        self._endings = {}
        self._record_past()
        self._distributions = distributions = Distributions(lists)
        self._originals = find_spec, fill_cache = type_.find_spec, type_._fill_cache

        def noting_find_spec(self, fullname, target=None):
            found = find_spec(self, fullname, target)
            # A match without a loader is one of several folders of a namespace package.
            looked_up.setdefault(self.path, {})[fullname] = found is not None and found.loader is not None
            distributions.expect(fullname, found)
            return found

        def noting_fill_cache(self):
            lists[self.path] = lists.get(self.path, 0) + 1
            return fill_cache(self)

        type_.find_spec, type_._fill_cache = noting_find_spec, noting_fill_cache

    def stop(self):
        """Removes the wrappers."""
        self._class.find_spec, self._class._fill_cache = self._originals
        self._distributions.stop()

    def forget_lists(self):
        """Drops the listings until now: another process reports them."""
        self._lists.clear()

    def count_lists(self, folder):
        """Returns how often importers have listed a folder."""
        return self._lists.get(folder, 0)

    def looked_up_in(self, folder):
        """Returns the modules that were looked for in this folder: by name, whether each was found in it (True), elsewhere (False) or
        nowhere (None). A module that was found but not loaded will be looked for again."""
        anywhere = self._found()
        names = {name: here for name, here in self._looked_up.get(folder, {}).items() if name in sys.modules or name not in anywhere}
        return {name.rpartition(".")[2]: here if name in anywhere else None for name, here in names.items()}

    def looked_up_in_any(self, folders):
        """Returns the names of top-level modules that were looked for in one of these folders."""
        names = {name for folder in folders for name in self._looked_up.get(folder, ())}
        return frozenset(name for name in names if "." not in name)

    def are_all_in(self, folders):
        """Returns whether only these entries of `sys.path` were searched."""
        return all(isinstance(sys.path_importer_cache.get(folder), (type(None), self._class)) for folder in folders)

    def _found(self):
        """Returns the full names of all modules that were found."""
        return {name for names in self._looked_up.values() for name, here in names.items() if here}

    def entries(self, without=None):
        """Returns the entries for the report, as pairs of key and value.

        without: a folder whose failed look-ups do not count, or None.
        """
        anywhere = self._found()
        found = [("suffix", suffix) for suffix in suffixes()]
        distributions = self._distributions.looked_up
        for folder in sorted(set(self._looked_up) | set(self._lists) | set(self._endings) | set(distributions)):
            said = [folder if folder.startswith("/") else posix.getcwd() + "/" + folder, "lists", str(self._lists.get(folder, 0))]
            for ending in self._endings.get(folder, ()):
                said += ("ending", ending)
            for name in sorted(distributions.get(folder, ())):
                said += ("distribution", name)
            for name, here in self._looked_up.get(folder, {}).items():
                if folder != without or here:
                    said += ("found" if name in anywhere else "sought", name.rpartition(".")[2])
            found.append(("importer", record(*map(as_bytes, said))))
        return found

    def add_to(self, path):
        """Appends all entries to a file: for a child that tries imports first. Raises OSError."""
        descriptor = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC, 0o600)
        try:
            posix.write(descriptor, to_bytes(self.entries()))
        finally:
            posix.close(descriptor)

    def _record_past(self):
        """Records the look-ups of the interpreter's start, before this could watch."""
        for importer in list(sys.path_importer_cache.values()):
            if isinstance(importer, self._class) and importer._path_mtime != -1:
                self._lists[importer.path] = 1
        for name, module in list(sys.modules.items()):
            self._record_search(name, module)
        # `site` looks for these, and mostly does not find them.
        for name in ("sitecustomize", "usercustomize"):
            if name not in sys.modules:
                self._record_search(name, None)
        for folder in _site_folders():
            is_of_environment = sys.prefix != sys.base_prefix and folder.startswith(sys.prefix + "/")
            self._lists[folder] = self._lists.get(folder, 0) + (TIMES_IN_ENVIRONMENT if is_of_environment else 1)
            self._endings[folder] = ENDINGS

    def _record_search(self, name, module):
        spec = getattr(module, "__spec__", None)
        if module is not None and not getattr(spec, "has_location", False):
            return  # built-in and frozen modules come first
        parent = name.rpartition(".")[0]
        path = getattr(sys.modules.get(parent), "__path__", ()) if parent else sys.path
        found = getattr(spec, "origin", None) or ""
        for entry in list(path):
            if type(entry) is str:
                is_here = found.startswith(entry + "/")
                self._looked_up.setdefault(folder_of(entry), {})[name] = is_here
                if is_here:
                    break


def suffixes():
    """Returns the endings of module files, in the order in which an importer tries them."""
    return [*_imp.extension_suffixes(), ".py", ".pyc"]


def shadows(folder, looked_up, is_same):
    """Returns the first name in a folder that an import would find there and did not while freezing; None if there is none.

    looked_up: as `looked_up_in` returns it, for the folder that this one replaces. is_same: whether it is the same folder. Raises OSError
    when the folder cannot be listed.
    """
    for name in posix.listdir(folder):
        stem, dot, ending = name.partition(".")
        if stem not in looked_up or (is_same and looked_up[stem]):
            continue
        endings = suffixes()
        if dot:
            if dot + ending in endings:
                return name
        elif _is_folder(folder + "/" + name):
            inside = posix.listdir(folder + "/" + name)
            # A folder without `__init__` is a module only if nothing else has the name.
            if looked_up[stem] is None or any("__init__" + ending in inside for ending in endings):
                return name
    return None


def _importer_class():
    return sys.modules["_frozen_importlib_external"].FileFinder


def _site_folders():
    """Returns the folders that `site` has listed to find files that it obeys (ENDINGS)."""
    site = sys.modules.get("site")
    if site is None or sys.flags.no_site:
        return []
    folders = site.getsitepackages()
    if site.ENABLE_USER_SITE:
        folders.append(site.USER_SITE)
    return [folder for folder in folders if _is_folder(folder)]


def _is_folder(path):
    try:
        return posix.stat(path).st_mode & 0o170000 == 0o040000
    except OSError:
        return False


def folder_of(entry):
    """Returns the folder of an entry of `sys.path`, in the spelling of its importer."""
    return entry or posix.getcwd()


_imp = sys.modules["_imp"]
# From CPython 3.15 on, `site` goes through each folder once and obeys .start files, too. Before, it goes through those of a virtual
# environment twice.
_HAS_STATE = hasattr(sys.modules.get("site"), "StartupState")
ENDINGS = [".pth", ".start"] if _HAS_STATE else [".pth"]
TIMES_IN_ENVIRONMENT = 1 if _HAS_STATE else 2
