"""Opens the boot archive, when an import is worth that: see run/sitecustomize.py. Reading this takes longer than a program that imports
nothing may be held up."""

import _frozen_importlib_external as external
import posix
import sys


def open(finder, folder, lazily):
    """Opens the archive.

    finder: what gets a function `find_spec` that finds modules in it, or finds nothing. folder: that of this file. lazily: see `finder` of
    imports.py.
    """
    # Whatever this imports itself is found by Python.
    finder.find_spec = find_nothing
    try:
        finder.find_spec = run(folder, "imports")["finder"](folder, run, lazily)
    except Exception as error:
        if posix.environ.get(b"SNAPBOOT_LOG", b"") not in (b"", b"0"):
            sys.stderr.write("snapboot: no archive: %s (%s)\n" % (error, type(error).__name__))


def find_nothing(name, path=None, target=None):
    """What is found where there is no archive."""
    return None


def run(folder, name, **names):
    """Runs the module of that name in the folder. Returns its names. names: those that it has before."""
    # Its imports are seen by a program that replaces `__import__` as little as those of this file.
    builtins = dict(vars(sys.modules["builtins"]), __import__=__builtins__["__import__"])
    names = {"__builtins__": builtins, **names, "__name__": "snapboot.archive." + name, "__file__": folder + "/" + name + ".py"}
    loader = external.SourceFileLoader(names["__name__"], names["__file__"])
    exec(loader.get_code(loader.name), names)
    return names
