"""The program that the tests of changes, damage and parts start: it has something for each part of the archive."""

import os

from . import starts

MAIN = """\
import atexit, gc, re, sys
import first, second, package.inner, package.namespace_part
from package import other
print(first.TEXT, second.SEEN, package.inner.TEXT, other.TEXT, second.PATTERN.sub("-", "a1b22c"))
print(sorted(name for name, m in sys.modules.items() if "/app/" in str(getattr(m, "__file__", ""))))
print([m.__file__[-20:] for m in (first, second, package.inner, other)])
for name in "missing", "package.missing", "broken":
    try:
        __import__(name); print(name, "is there")
    except Exception as error:
        print(type(error).__name__, error)
print(gc.isenabled(), file=sys.stderr)
import last
sys.exit(3)
"""
FILES = {
    "main.py": MAIN,
    "late/first.py": "TEXT = 'aa first'\n",
    "late/second.py": "import re, third\nPATTERN = re.compile(r'\\d+')\nSEEN = ['second', __name__, third.__file__[-8:]]\n",
    "late/third.py": "import json, textwrap\nTHIRD = 'aa third'\n",
    "late/last.py": "class Last:\n    def __del__(self): print('last words', flush=True)\nkept = Last(); kept.me = kept\n",
    "late/broken.py": "raise KeyError('aa broken')\n",
    "late/package/__init__.py": "TEXT = 'aa package'\n",
    "late/package/inner.py": "TEXT = 'aa inner'\n",
    "late/package/other.py": "TEXT = 'aa other'\n",
    "late/package/namespace_part/x.txt": "",
    "early/nothing.txt": "",
    "elsewhere/first.py": "TEXT = 'elsewhere first'\n",
}


def made(top, python=None, **variables):
    """The Starts of the program, in a folder below `top`. python: an interpreter, the newest if it is None."""
    folder = top / "app"
    starts.write(folder, FILES)
    interpreters = starts.interpreters()
    python = python or interpreters[max(interpreters)]
    variables.setdefault("PYTHONPATH", f"{folder}/early:{folder}/late")
    return starts.Starts(python, folder, **variables)


def old(folder):
    """Give everything there old times, so that the next change shows."""
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (1, 1), follow_symlinks=False)
