"""Switches the boot archive on. A program that imports nothing pays next to nothing: until the first import there is only a finder that
knows where the rest lies (see imports.py of the folder above).

`snapboot run -- COMMAND` puts the folder of this file on PYTHONPATH, so `site` imports it. It then removes itself, so that neither the
program nor its children see it, and runs the program's own `sitecustomize`. In an enabled environment, a file of that environment runs this
one.

The modules of the folder above are run without being registered in `sys.modules`, so the program finds there only what it would find in an
ordinary start. Every Python 3 reads this file, also those that have no boot archive.
"""

import _frozen_importlib_external as external
import posix
import sys

# `site` looks for these two, mostly without success, before the program begins.
OWN = "sitecustomize"
USER = "usercustomize"
# The bytes that every object begins with in the stable ABI, for which the native part of the archive is built. Those of a free-threaded
# build, and of one that traces references, are others: loaded there, the native part would write into the wrong fields.
HEAD = 16
# This many modules are imported before the archive is opened.
FEW = 3
# It is opened before these: the archive may have their documents. They import more modules than that themselves.
PARSERS = ("importlib.metadata", "json", "tomli", "tomllib", "yaml")
# Tells the front end of a freezing boot that this environment is enabled, with the path of this file.
ENABLED = b"SNAPBOOT_ENABLED"
IMPORT = __import__
# Stands for the finder of a directory that Python has not looked at yet.
NOT_ASKED = object()
BUILT_IN, FROZEN = external._bootstrap.BuiltinImporter, external._bootstrap.FrozenImporter


class Finder:
    """Stands on `sys.meta_path` right before Python's own finder of files, and finds the same modules."""

    # This many more modules are imported before the archive is opened.
    few = FEW
    # Identifies it: there is only one, whoever has switched it on.
    is_of_archive = True
    # In a thawed process: returns the path that identifies its program (see imports.py). None in an ordinary start.
    thawed_program = None
    # Called in a thawed process when the archive has been opened.
    has_opened = None
    # Called in a thawed process once it has loaded nothing more for a while.
    when_calm = None
    # Called when it is about to be opened, in a start that may have an image the next time.
    count_start = None
    # Writes new entries to the archive. None: it is not open.
    flush = None

    def __init__(self, folder):
        self._folder = folder

    def find_spec(self, name, path=None, target=None):
        """See importlib.abc.MetaPathFinder. Opens the archive when that is worth it."""
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
        """Opens the archive. Its own imports go through Python's finders."""
        self.find_spec = find_nothing
        if self.count_start is not None:
            attempt("no image", self.count_start)
        try:
            check_head()
            self.find_spec = run(self._folder, "imports", THAWED_PROGRAM=self.thawed_program)["finder"](self, self._folder, run)
        except Exception as error:
            log("no archive", error)

    def invalidate_caches(self):
        """See importlib.invalidate_caches."""
        begin_round = getattr(self.find_spec, "invalidate_caches", None)
        if begin_round is not None:
            begin_round()


def log(what, error):
    """Says what there is not, and why, where SNAPBOOT_LOG asks for it."""
    if posix.environ.get(b"SNAPBOOT_LOG", b"") not in (b"", b"0"):
        sys.stderr.write("snapboot: %s: %s (%s)\n" % (what, error, type(error).__name__))


def check_head():
    """Raises ImportError if objects of this Python begin otherwise than in the stable ABI."""
    head = object.__basicsize__
    if head != HEAD:
        kind = "this is a free-threaded build" if "t" in sys.abiflags else "this is no ordinary build"
        raise ImportError("%s: its objects begin with %d bytes of their own, and the archive knows only %d" % (kind, head, HEAD))


def find_nothing(name, path=None, target=None):
    """The result if there is no archive."""
    return None


def run(folder, name, **names):
    """Runs the module of that name in the folder. Returns its namespace. names: the initial ones."""
    # A program that replaces `__import__` does not see these imports.
    builtins = dict(vars(sys.modules["builtins"]), __import__=IMPORT)
    names = {"__builtins__": builtins, **names, "__name__": "snapboot.archive." + name, "__file__": folder + "/" + name + ".py"}
    loader = external.SourceFileLoader(names["__name__"], names["__file__"])
    exec(loader.get_code(loader.name), names)
    return names


def modified(path):
    """Returns when a directory was changed, as Python's finder of its modules records it; -1 if it does not exist."""
    try:
        return posix.stat(path or posix.getcwd()).st_mtime
    except OSError:
        return -1


def has_room():
    """Returns whether Python's own finder finds files, and not already an archive."""
    return external.PathFinder in sys.meta_path and not any(hasattr(finder, "is_of_archive") for finder in sys.meta_path)


def attempt(what, action, *words):
    """Calls something that no start may fail for, and returns the result. what: what there is not if it fails, for the log."""
    try:
        return action(*words)
    except Exception as error:
        log(what, error)
        return None


def switch_on(folder, count_start=None):
    """Serves the imports of this process from its archive. folder: the one above this file's. count_start: called when that begins; at
    once, where there is no archive."""
    if sys.version_info < (3, 8) or sys.implementation.name != "cpython" or not has_room():
        if count_start is not None:
            attempt("no image", count_start)
        return
    finder = Finder(folder)
    finder.count_start = count_start
    sys.meta_path.insert(sys.meta_path.index(external.PathFinder), finder)


def switch_on_here(snapboot):
    """Called by the file of `snapboot enable`, with the path of the command. A freezing boot does without the archive, and its thaws have
    one."""
    attempt("another sys._base_executable", name_base)
    if b"SNAPBOOT_FREEZE_DIR" in posix.environ:
        posix.environ[ENABLED] = __file__.encode("utf-8", "surrogateescape")
    elif posix.environ.get(b"SNAPBOOT") != b"off":
        folder = __file__.rpartition("/run/")[0]
        switch_on(folder, attempt("no image", hand_over, folder, snapboot))


def name_base():
    """Sets `sys._base_executable` where the entry is in the interpreter's place (see crates/entry). Python follows the links from there,
    which are in another folder now."""
    if sys.version_info < (3, 11):
        return
    real = sys.modules["os"].path.realpath
    bin, _, name = real(sys.executable).rpartition("/")
    kept = bin.rpartition("/")[0] + "/.snapboot/" + name
    if posix.access(kept, posix.F_OK):
        sys._base_executable = real(kept)


def hand_over(folder, snapboot):
    """See hand_over in images.py. folder: that of images.py."""
    return run(folder, "images")["hand_over"](snapboot, folder.rpartition("/")[0])


def take_out(folder):
    """Undoes everything this file has caused. Returns whether this is the first interpreter of the process: others find the program's
    variable, and still search the directories of the process' start."""
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
    """Returns whether there may be a top-level module of that name. Python would list directories that it has not listed yet, and take
    longer to see that the listed ones have no match.

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
    # Possible names of a module's file or folder.
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
        # It lists its directory again after a change.
        elif type(finder) is not external.FileFinder or finder._path_mtime != modified(entry) or finder._path_cache & names:
            return True
    return False


def start():
    """Called because `site` imports this file."""
    folder = __file__.rpartition("/")[0]
    is_first = take_out(folder)
    try:
        # Python imports the program's own one, or reports that there is none.
        if external.PathFinder not in sys.meta_path or may_exist(OWN):
            import sitecustomize  # noqa: F401
        else:
            raise ModuleNotFoundError("No module named %r" % OWN, name=OWN)
    finally:
        if is_first:
            switch_on(folder.rpartition("/")[0])


if __name__ == OWN:
    start()
