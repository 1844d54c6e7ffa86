"""Opens the boot archive, when an import is worth that: see run/sitecustomize.py. Reading this takes longer than a program that imports
nothing may be held up."""

import posix
import sys


def open(finder, folder, run, lazily):
    """Opens the archive.

    finder: what gets a function `find_spec` that finds modules in it, or finds nothing. folder: that of this file. run, lazily: see
    `finder` of imports.py.
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
