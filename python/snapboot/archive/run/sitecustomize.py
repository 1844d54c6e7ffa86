"""Switches the boot archive on. It costs a program that imports nothing next to nothing: until the first import there is only a finder
that knows where the rest lies (see imports.py of the folder above).

`snapboot run -- COMMAND` has PYTHONPATH name the folder of this file, so `site` imports it. It takes itself out again, so that neither
the program nor what it starts sees it, and has the program's own `sitecustomize` run. Where a whole environment was enabled, a file of
that runs this one.

The modules of the folder above are run without being registered in `sys.modules`, so that the program finds there only what it would
find in an ordinary start. This file is read by every Python 3, also by those that have no boot archive.
"""

import _frozen_importlib_external as external
import posix
import sys

# `site` looks for these two, mostly in vain, before the program begins.
OWN = "sitecustomize"
USER = "usercustomize"
# So few modules are imported before the archive could be open.
FEW = 3
# It is open before these: what they parse may be there. They import more than that themselves.
PARSERS = ("importlib.metadata", "json", "tomli", "tomllib", "yaml")
# Tells the front end of a boot that is being frozen that this environment is enabled, by the path of this file.
ENABLED = b"SNAPBOOT_ENABLED"
IMPORT = __import__
# Stands for the finder of a directory that Python has not looked at yet.
NOT_ASKED = object()
BUILT_IN, FROZEN = external._bootstrap.BuiltinImporter, external._bootstrap.FrozenImporter


class Finder:
    """Takes its place on `sys.meta_path` right before Python's own finder of files, and finds what that would find."""

    # So many modules more are imported before the archive could be open.
    few = FEW
    # What tells it from others: there is one, whoever has switched it on.
    is_of_archive = True
    # In a thawed process: returns the path that tells its program from others (see imports.py). None in an ordinary start.
    thawed_program = None
    # What is called, in a thawed process, when the archive is open.
    has_opened = None
    # Writes what the archive is to have besides. None: it is not open.
    flush = None

    def __init__(self, folder):
        self._folder = folder

    def find_spec(self, name, path=None, target=None):
        """See importlib.abc.MetaPathFinder. Opens the archive when it is worth that."""
        if name == OWN:
            return None
        if name == USER:
            if may_exist(name, self):
                return None
            raise ModuleNotFoundError("No module named %r" % name, name=name)
        if self.few > 0 and name not in PARSERS:
            self.few -= 1
            return None
        self.open()
        return self.find_spec(name, path, target)

    def open(self):
        """Opens the archive. Whatever that imports itself is found by Python."""
        self.find_spec = find_nothing
        try:
            self.find_spec = run(self._folder, "imports", THAWED_PROGRAM=self.thawed_program)["finder"](self, self._folder, run)
        except Exception as error:
            if posix.environ.get(b"SNAPBOOT_LOG", b"") not in (b"", b"0"):
                sys.stderr.write("snapboot: no archive: %s (%s)\n" % (error, type(error).__name__))

    def invalidate_caches(self):
        """See importlib.invalidate_caches."""
        begin_round = getattr(self.find_spec, "invalidate_caches", None)
        if begin_round is not None:
            begin_round()


def find_nothing(name, path=None, target=None):
    """What is found where there is no archive."""
    return None


def run(folder, name, **names):
    """Runs the module of that name in the folder. Returns its names. names: those that it has before."""
    # A program that replaces `__import__` does not see what these import.
    builtins = dict(vars(sys.modules["builtins"]), __import__=IMPORT)
    names = {"__builtins__": builtins, **names, "__name__": "snapboot.archive." + name, "__file__": folder + "/" + name + ".py"}
    loader = external.SourceFileLoader(names["__name__"], names["__file__"])
    exec(loader.get_code(loader.name), names)
    return names


def modified(path):
    """When a directory was changed, as Python's finder of its modules notes it; -1 where it is not there."""
    try:
        return posix.stat(path or posix.getcwd()).st_mtime
    except OSError:
        return -1


def has_room():
    """Whether files are found by Python's own finder, and not from an archive already."""
    return external.PathFinder in sys.meta_path and not any(hasattr(finder, "is_of_archive") for finder in sys.meta_path)


def switch_on(folder):
    """Has the imports of this process served by its archive. folder: the one above this file's."""
    if sys.version_info < (3, 8) or sys.implementation.name != "cpython" or not has_room():
        return
    sys.meta_path.insert(sys.meta_path.index(external.PathFinder), Finder(folder))


def switch_on_here():
    """What the file of `snapboot enable` calls. A boot that is being frozen does without, and its thaws have one."""
    if b"SNAPBOOT_FREEZE_DIR" in posix.environ:
        posix.environ[ENABLED] = __file__.encode("utf-8", "surrogateescape")
    else:
        switch_on(__file__.rpartition("/run/")[0])


def take_out(folder):
    """Makes all as it would be without this file. Returns whether this is the first interpreter of the process: others find the variable
    as the program has it, and still search where it led when the process started."""
    environ = sys.modules["os"].environ
    own, _, before = environ.get("PYTHONPATH", "").partition(":")
    if own == folder:
        if before:
            environ["PYTHONPATH"] = before
        else:
            del environ["PYTHONPATH"]
    sys.path.remove(folder)
    sys.path_importer_cache.pop(folder, None)
    del sys.modules[OWN]
    return own == folder


def may_exist(name, own=None):
    """Whether there may be a module of that name at the top. Python would list directories that it has not listed yet, and take
    longer to see that there is nothing in those that it has.

    own: a finder on `sys.meta_path` that is not asked.
    """
    for finder in sys.meta_path:
        if finder is external.PathFinder:
            break
        # No interpreter has such a module built in.
        if finder is BUILT_IN or finder is FROZEN or finder is own:
            continue
        if finder.find_spec(name, None) is not None:
            return True
    # What a module's file, or its folder, is called.
    names = {name, name + ".py", name + ".pyc"}
    names.update(map(name.__add__, external._imp.extension_suffixes()))
    for entry in sys.path:
        finder = sys.path_importer_cache.get(entry, NOT_ASKED)
        if finder is None:
            continue
        if finder is NOT_ASKED:
            if not posix.access(entry + "/.", posix.F_OK):
                if posix.access(entry, posix.F_OK):
                    return True  # a zip file
            elif any(posix.access(entry + "/" + name, posix.F_OK) for name in names):
                return True
        # It lists its directory anew when this has changed.
        elif type(finder) is not external.FileFinder or finder._path_mtime != modified(entry) or finder._path_cache & names:
            return True
    return False


def start():
    """What `site` imports this file for."""
    folder = __file__.rpartition("/")[0]
    is_first = take_out(folder)
    try:
        # Python imports the program's own one, or says that there is none.
        if external.PathFinder not in sys.meta_path or may_exist(OWN):
            import sitecustomize  # noqa: F401
        else:
            raise ModuleNotFoundError("No module named %r" % OWN, name=OWN)
    finally:
        if is_first:
            switch_on(folder.rpartition("/")[0])


if __name__ == OWN:
    start()
