"""A training run: the program runs as in an ordinary start, and tells at its end which modules it has loaded.

What it tells is DIR/profile, entries as in the request: `module` and `file` of each module, in the order of their imports, and `changed`
for each variable of the environment that is not as it was at the start. A run that ends without exit handlers tells nothing.
"""

import posix
import sys

from . import main_part, modules
from .context import Context
from .report import to_bytes, write_file
from .request import decode, read_request


def run():
    """Runs the program that the request names, from its beginning to its end."""
    context = Context()
    folder = context.environment.own[b"SNAPBOOT_FREEZE_DIR"]
    main = context.begin(read_request(folder))
    if main is None:
        return
    import atexit

    # What is registered first is called last.
    atexit.register(_tell, folder, posix.getpid(), dict(posix.environ))
    try:
        call = main_part.call_of(main, sys.modules["__main__"], context.prepared)
    except main_part.Fallback as reason:
        sys.exit("snapboot: " + str(reason))
    call()


def _tell(folder, process, variables):
    if posix.getpid() != process:
        return  # a child that it has left to itself
    entries = []
    for name, module in list(sys.modules.items()):
        names = modules.NAMES(module) if modules.is_module(module) else None
        spec = names.get("__spec__") if type(names) is dict else None
        if getattr(spec, "name", None) == name and spec.has_location and type(spec.origin) is str:
            entries += [("module", name), ("file", spec.origin)]
    loaded = sys.modules.get("os")
    now = posix.environ if loaded is None else loaded.environ._data
    changed = {name for name in {*variables, *now} if variables.get(name) != now.get(name)}
    entries += [("changed", name) for name in sorted(changed)]
    write_file(folder + b"/profile", to_bytes(entries))
