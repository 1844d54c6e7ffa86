"""A training run: the program runs as in an ordinary start, and reports at its end which modules it has loaded.

The report is DIR/profile, entries as in the request: `module`, a record of the name and the file of each module, in the order of the
imports; `changed` for each variable of the environment that has changed since the start; and `pattern` for each regular expression that the
program has compiled. learnt.py decides which of the modules may be loaded early. A run that ends without exit handlers reports nothing.
"""

import posix
import sys

from . import main_part, modules, patterns
from .context import Context
from .environment import changed
from .report import to_bytes, write_file
from .request import read_request


def run():
    """Runs the program that the request names from its beginning to its end."""
    context = Context()
    folder = context.environment.own[b"SNAPBOOT_FREEZE_DIR"]
    main = context.begin(read_request(folder))
    if main is None:
        return
    import atexit

    begun = Begun()
    sys.meta_path.insert(0, begun)
    # The handler registered first is called last.
    atexit.register(_write_profile, folder, posix.getpid(), dict(posix.environ), begun.names)
    try:
        call = main_part.call_of(main, sys.modules["__main__"], context.prepared)
    except main_part.Fallback as reason:
        sys.exit("snapboot: " + str(reason))
    call()


class Begun:
    """Finds no module, and records the order in which imports begin. `sys.modules` lists a module after those that it imports."""

    def __init__(self):
        self.names = {}

    def find_spec(self, name, path=None, target=None):
        """Called first for each import."""
        self.names.setdefault(name, len(self.names))


def _write_profile(folder, process, variables, order):
    if posix.getpid() != process:
        return  # a forked child
    entries = modules.loaded_from_files(sorted(sys.modules.items(), key=lambda item: order.get(item[0], -1)))
    write_file(folder + b"/profile", to_bytes(entries + changed(variables) + patterns.entries(variables)))
