"""Switches the boot archive on, and costs a program that imports nothing next to nothing: until the first import there is only a
finder that knows where the rest lies.

The modules of this folder are run without being registered in `sys.modules`, so that the program finds there only what it would
find in an ordinary start.
"""

import sys

import _frozen_importlib_external as external

# `site` looks for these two, mostly in vain, before the program begins.
NO_MODULES = ("sitecustomize", "usercustomize")


class Finder:
    """Takes its place on `sys.meta_path` right before Python's own finder of files, and finds what that would find."""

    def __init__(self, folder):
        self._folder = folder

    def find_spec(self, name, path=None, target=None):
        """See importlib.abc.MetaPathFinder. The first call opens the archive."""
        if name in NO_MODULES:
            return None
        # Whatever this imports itself is found by Python.
        self.find_spec = find_nothing
        try:
            self.find_spec = run(self._folder, "imports")["finder"](self._folder, run)
        except Exception as error:
            if is_logging():
                sys.stderr.write("snapboot: no archive: %s (%s)\n" % (error, type(error).__name__))
        return self.find_spec(name, path, target)

    def invalidate_caches(self):
        """See importlib.invalidate_caches."""
        begin_round = getattr(self.find_spec, "invalidate_caches", None)
        if begin_round is not None:
            begin_round()


def find_nothing(name, path=None, target=None):
    """What is found where there is no archive."""
    return None


def run(folder, name):
    """Runs the module of that name in this folder. Returns its names."""
    names = {"__name__": "snapboot.archive." + name, "__file__": folder + "/" + name + ".py"}
    loader = external.SourceFileLoader(names["__name__"], names["__file__"])
    exec(loader.get_code(loader.name), names)
    return names


def is_logging():
    """Whether SNAPBOOT_LOG asks to be told why something is as it is."""
    import posix

    return posix.environ.get(b"SNAPBOOT_LOG", b"") not in (b"", b"0")


def switch_on(folder):
    """Has the imports of this process served by its archive. folder: where this file lies."""
    if external.PathFinder in sys.meta_path:
        sys.meta_path.insert(sys.meta_path.index(external.PathFinder), Finder(folder))
