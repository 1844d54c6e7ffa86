"""Which modules importers look up while the program boots.

An importer of a folder lists it once and remembers the names, so that nobody outside can see which modules were looked for there.
The image must know: a new file of one of these names would be found first. It is watched by a wrapper around the importer's own
methods, which is taken off again before the freeze.
"""

import posix
import sys

from .channel import record
from .distributions import Distributions
from .report import as_bytes, to_bytes


class Importers:
    """Watches from its making on, until `stop`."""

    def __init__(self):
        self._class = type_ = _importer_class()
        # By folder: whether a module was found there, by its whole name; how often it was listed; what else was looked for in lists.
        self._looked_up = looked_up = {}
        self._lists = lists = {}
        self._endings = {}
        self._note_past()
        self._distributions = distributions = Distributions(lists)
        self._originals = find_spec, fill_cache = type_.find_spec, type_._fill_cache

        def noting_find_spec(self, fullname, target=None):
            found = find_spec(self, fullname, target)
            # Without a loader it is one of several folders of that name.
            looked_up.setdefault(self.path, {})[fullname] = found is not None and found.loader is not None
            distributions.expect(fullname, found)
            return found

        def noting_fill_cache(self):
            lists[self.path] = lists.get(self.path, 0) + 1
            return fill_cache(self)

        type_.find_spec, type_._fill_cache = noting_find_spec, noting_fill_cache

    def stop(self):
        """Takes the wrappers off."""
        self._class.find_spec, self._class._fill_cache = self._originals
        self._distributions.stop()

    def forget_lists(self):
        """Leaves to another process to report what was listed until now."""
        self._lists.clear()

    def looked_up_in(self, folder):
        """The modules that were looked for in this folder: by name, whether each was found in it (True), elsewhere (False) or nowhere
        (None). One that was found and is not loaded will be looked for again."""
        anywhere = self._found()
        names = {name: here for name, here in self._looked_up.get(folder, {}).items() if name in sys.modules or name not in anywhere}
        return {name.rpartition(".")[2]: here if name in anywhere else None for name, here in names.items()}

    def looked_up_in_any(self, folders):
        """The names of the modules, of those in no package, that were looked for in one of these folders."""
        names = {name for folder in folders for name in self._looked_up.get(folder, ())}
        return frozenset(name for name in names if "." not in name)

    def are_all_in(self, folders):
        """Whether nothing else imports from these entries of `sys.path`."""
        return all(isinstance(sys.path_importer_cache.get(folder), (type(None), self._class)) for folder in folders)

    def _found(self):
        """The whole names of the modules that were found anywhere."""
        return {name for names in self._looked_up.values() for name, here in names.items() if here}

    def entries(self, without=None):
        """What is to be reported, as pairs of key and value.

        without: a folder in which nothing counts that was looked for and not found there, or None.
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
        """Adds all of it to a file: what a child does that imports something first. Raises OSError."""
        descriptor = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC, 0o600)
        try:
            posix.write(descriptor, to_bytes(self.entries()))
        finally:
            posix.close(descriptor)

    def _note_past(self):
        """What was looked up before anybody could watch: at the interpreter's start."""
        for importer in list(sys.path_importer_cache.values()):
            if isinstance(importer, self._class) and importer._path_mtime != -1:
                self._lists[importer.path] = 1
        for name, module in list(sys.modules.items()):
            self._note_search(name, module)
        # Looked for by `site`, and mostly not there.
        for name in ("sitecustomize", "usercustomize"):
            if name not in sys.modules:
                self._note_search(name, None)
        for folder in _site_folders():
            # In a virtual environment `site` goes through its folders twice.
            times = 2 if sys.prefix != sys.base_prefix and folder.startswith(sys.prefix + "/") else 1
            self._endings[folder] = [".pth"] * times

    def _note_search(self, name, module):
        spec = getattr(module, "__spec__", None)
        if module is not None and not getattr(spec, "has_location", False):
            return  # built in, or frozen: these come first
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
    """Endings of module files, in the order in which an importer tries them."""
    return [*_imp.extension_suffixes(), ".py", ".pyc"]


def shadows(folder, looked_up, is_same):
    """The first name in a folder that an import would find there and did not while freezing; None if there is none.

    looked_up: as `looked_up_in` has it, of the folder that stood in the place of this one. is_same: whether it was this one. Raises OSError
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
            # A folder without that is a module only where there is no other.
            if looked_up[stem] is None or any("__init__" + ending in inside for ending in endings):
                return name
    return None


def _importer_class():
    return sys.modules["_frozen_importlib_external"].FileFinder


def _site_folders():
    """Those that `site` has listed to find .pth files."""
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
    """The folder of an entry of `sys.path`, as its importer calls it."""
    return entry or posix.getcwd()


_imp = sys.modules["_imp"]
