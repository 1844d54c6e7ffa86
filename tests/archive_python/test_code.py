"""Code from the archive is what Python would have made: each object of it, on each CPython."""

import os
import pathlib
import subprocess

import pytest
from common import support

from . import starts

PROBE = pathlib.Path(__file__).with_name("code_probe.py")
PART = support.ROOT / "python/snapboot/archive"
# Every so many files of the library.
SAMPLE = 40

CONSTANTS = """\
\"\"\"A text — not ASCII.\"\"\"
NUMBERS = 0, 1, -1, -5, 256, 257, 1 << 40, -(1 << 63), 1 << 63, 1 << 200, 1.5, -0.0, 0.0, 1e400, 2j, True, False, None, ...
TEXTS = "", "a", "ab", "a b", "\\xe9", "\\u20ac", "\\U0001f600", "\\ud800", "\\0\\0", "x" * 100, "name", "ünïcode"
BYTES = b"", b"a", b"ab", b"\\0\\xff" * 20
TUPLES = (), ((),), ((1, (2.0, ("a b",))), (1, (2.0, ("a b",))))
def sets(x): return x in {1, 2, "a", "b c"} or x in {(), (1, 2)} or x in [True, 1.0, 1]
def outer(a, b=1, /, c=2, *d, e, f="x", **g):
    "A documentation."
    def inner(c=c):
        nonlocal a
        a = [b + y for y in d if y]
        return lambda: (a, c, g)
    try:
        return inner
    except (ValueError, KeyError) as error:
        raise error from None
    finally:
        print(f"{a!r:>{b}}")
class Ä:
    ö: int = 1
    def __init__(self): super().__init__()
    async def later(self):
        async with self as x:
            yield await x
"""
# More objects than there are numbers for: marshal keeps it.
LARGE = "X = [%s]\n" % ", ".join("'text %d'" % number for number in range(70000))


@pytest.mark.parametrize("version", sorted(starts.interpreters()), ids=lambda version: "%d.%d" % version)
def test_code_is_the_same(version, tmp_path):
    python = starts.interpreters()[version]
    told = subprocess.run([python, "-Ic", "import os; print(os.__file__)"], capture_output=True, text=True, check=True)
    library = pathlib.Path(told.stdout.strip()).parent
    paths = sorted(map(os.fspath, [*library.glob("*.py"), *library.glob("*/*.py")]))[::SAMPLE]
    starts.write(tmp_path, {"constants.py": CONSTANTS, "ä.py": CONSTANTS, "empty.py": ""})
    own = [os.fspath(tmp_path / name) for name in ("constants.py", "ä.py", "empty.py")]
    starts.settle()
    os.chmod(tmp_path, 0o700)
    env = support.environment(SNAPBOOT_ARCHIVE=os.fspath(tmp_path / "boot.archive"), PYTHONWARNINGS="ignore")
    for what in ("keep", "compare"):
        done = support.run([python, "-X", "utf8", PROBE, what, PART, *own, *paths], env=env, cwd=tmp_path, log=False)
        assert done.status == 0, done
    # Some of the library's are no code of this version, on purpose.
    counts = [f"{number} files" for number in range(len(own) + len(paths) // 2, len(own) + len(paths) + 1)]
    assert done.out.strip() in counts, done.out


def test_code_of_too_many_objects(tmp_path):
    starts.write(tmp_path / "program", {"main.py": "import large; print(len(large.X), large.X[-1])", "large.py": LARGE})
    starts.settle()
    program = starts.Starts(support.PYTHON, tmp_path / "program")
    program.compared(["main.py"], times=3)
