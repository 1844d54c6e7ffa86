"""What `snapboot run -- COMMAND` has PYTHONPATH name the folder of: takes itself out of PYTHONPATH, so that neither the program nor
what it starts sees it, has the program's own `sitecustomize` run, and switches the boot archive on.

`site` imports it, in any version of Python 3, also in those that have no boot archive.
"""

import os
import sys


def _take_out(folder):
    """Makes all as it would be without this file."""
    _, _, before = os.environ["PYTHONPATH"].partition(os.pathsep)
    if before:
        os.environ["PYTHONPATH"] = before
    else:
        del os.environ["PYTHONPATH"]
    sys.path.remove(folder)
    sys.path_importer_cache.pop(folder, None)
    del sys.modules["sitecustomize"]


def _switch_on(folder):
    if sys.version_info < (3, 8) or sys.implementation.name != "cpython":
        return
    names = {"__file__": folder + "/set_up.py"}
    loader = type(__spec__.loader)("snapboot.archive.set_up", names["__file__"])
    exec(loader.get_code(loader.name), names)
    names["switch_on"](folder)


_take_out(__file__.rpartition("/")[0])
try:
    # The program's own. Where there is none, `site` learns that from the error.
    import sitecustomize  # noqa: F401
finally:
    _switch_on(__file__.rpartition("/run/")[0])
