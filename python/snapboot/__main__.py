"""`python -m snapboot`: the command `snapboot` of this package, or the first one in PATH."""

import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Relative to PREFIX/libexec/snapboot/python/snapboot and PREFIX/lib/python3.x/site-packages/snapboot; to the folder of `pip install
# --target`; to a source tree.
PLACES = ("../../../../bin/snapboot", "../bin/snapboot", "../../target/release/snapboot")


def command():
    """Returns the path of the command; None if there is none."""
    beside = (os.path.normpath(os.path.join(HERE, place)) for place in PLACES)
    return next((path for path in beside if os.access(path, os.X_OK)), None) or shutil.which("snapboot")


def main():
    """Executes the command with the same arguments."""
    path = command()
    if path is None:
        sys.exit(
            "snapboot: this is the Python package with the hooks alone; there is no command `snapboot` beside it or in PATH. Install it "
            "(pip install its wheel, or make install PREFIX=..., then PREFIX/bin in PATH), or name it by its path."
        )
    os.execv(path, ["snapboot", *sys.argv[1:]])


if __name__ == "__main__":
    main()
