"""Code from the archive is what Python would have made: each object of it, on each CPython."""

import os
import pathlib
import subprocess

import pytest
from common import support
from common.waiting import settle

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
    settle()
    os.chmod(tmp_path, 0o700)
    env = support.environment(SNAPBOOT_ARCHIVE=os.fspath(tmp_path / "boot.archive"), PYTHONWARNINGS="ignore")
    for what in ("keep", "compare"):
        done = support.run([python, "-X", "utf8", PROBE, what, PART, *own, *paths], env=env, cwd=tmp_path, log=False)
        assert done.status == 0, done
    # Some of the library's are no code of this version, on purpose.
    counts = [f"{number} files" for number in range(len(own) + len(paths) // 2, len(own) + len(paths) + 1)]
    assert done.out.strip() in counts, done.out


@pytest.mark.parametrize("version", sorted(starts.interpreters()), ids=lambda version: "%d.%d" % version)
def test_a_python_of_unknown_layout_has_marshal_keep_its_code(version, tmp_path):
    starts.write(tmp_path, {"constants.py": CONSTANTS})
    settle()
    os.chmod(tmp_path, 0o700)
    path = os.fspath(tmp_path / "constants.py")
    env = support.environment(SNAPBOOT_ARCHIVE=os.fspath(tmp_path / "boot.archive"))
    command = [starts.interpreters()[version], "-X", "utf8", PROBE]
    for what, lines in (("keep unknown", "0 files"), ("compare", f"{path}: laid out twice, or not at all\n1 files")):
        done = support.run([*command, what, PART, path], env=env, cwd=tmp_path, log=False)
        assert (done.status, done.out.strip()) == (0, lines), done


def test_code_of_too_many_objects(tmp_path):
    starts.write(tmp_path / "program", {"main.py": "import large; print(len(large.X), large.X[-1])", "large.py": LARGE})
    settle()
    program = starts.Starts(support.PYTHON, tmp_path / "program")
    program.compared(["main.py"], times=3)


# What something may keep of code that runs once: it never changes. Each module keeps one thing, and what can be seen of it then.
KEPT = {
    "code": "FRAME.f_code",
    "frame": "FRAME",
    "constants": "FRAME.f_code.co_consts",
    "names": "FRAME.f_code.co_names",
    "table": "getattr(FRAME.f_code, TABLE)",
    "reference": "weakref.ref(FRAME.f_code)",
    "bytes": "FRAME.f_code.co_code",
    "class": "next((it for it in FRAME.f_code.co_consts if isinstance(it, types.CodeType)), None)",
    "nothing": "None",
}
BODY = """
"The documentation of a module."
import keeping
FIRST, SECOND = ("a tuple of texts", "%(name)s"), "a text that is no name"
class Outer:
    "The documentation of a class."
    KEPT = {"a": (1, 2, "%(name)s")}
    class Inner:
        keeping.keep("%(name)s of a class")
        def method(self): return "%(name)s", ("x", ("y y", self))
LATER = (keeping.TABLE + "%(name)s" for _ in [1])
keeping.keep("%(name)s")
"""
KEEPING = """
import weakref, sys, types
KINDS = %r
TABLE = "co_linetable" if sys.version_info >= (3, 10) else "co_lnotab"
kept = {}
def shown(it):
    if isinstance(it, types.FrameType): it = it.f_code
    if isinstance(it, weakref.ref): it = it() or "gone"
    if isinstance(it, types.CodeType):
        names = "co_name", "co_names", "co_consts", "co_code", TABLE, "co_firstlineno", "co_filename"
        return [shown(getattr(it, name)) for name in names]
    return [shown(one) for one in it] if isinstance(it, tuple) else repr(it)
def keep(name):
    FRAME = sys._getframe(1)
    it = eval(KINDS[name.partition("_")[0]], globals(), {"FRAME": FRAME})
    kept[name] = it, shown(it)
def compare():
    for name, (it, before) in kept.items():
        now = shown(it)
        if now != before and now != repr("gone"): print(name, "has changed:", now, "instead of", before)
    print(len(kept), "kept")
""" % KEPT


@pytest.mark.parametrize("version", sorted(starts.interpreters()), ids=lambda version: "%d.%d" % version)
def test_code_that_runs_once_is_kept_where_something_has_it(version, tmp_path):
    names = [f"{kind}_{number}" for number in range(12) for kind in KEPT]
    files = {f"{name}.py": BODY % {"name": name} for name in names}
    imports = "\n".join(f"import {name}" for name in names)
    nested = {f"deep_{number}.py": f"import deep_{number + 1}\nclass A:\n  B = {number}\n" for number in range(100)}
    nested |= {"deep_100.py": "import nothing_0", "fails.py": "class A:\n  B = 1 / 0\n"}
    main = (
        f"import keeping, traceback, deep_0\n{imports}\ntry:\n  import fails\nexcept ZeroDivisionError as it:\n  error = it\n"
        "import nothing_1, colorsys, cmd, sched\nkeeping.compare()\ntraceback.print_exception(type(error), error, error.__traceback__)\n"
        "print([*nothing_2.LATER, *code_2.LATER])\n"
        "print(nothing_3.__doc__, nothing_3.Outer.__doc__, nothing_3.FIRST, nothing_3.Outer.Inner().method())\n"
    )
    starts.write(tmp_path / "app", {**files, **nested, "keeping.py": KEEPING, "main.py": main})
    program = starts.Starts(starts.interpreters()[version], tmp_path / "app")
    settle()
    ordinary = program.compared(["main.py"], times=3)
    assert f"{2 * len(names)} kept" in ordinary.out and "has changed" not in ordinary.out, ordinary.out


# Wraps a function of Python's import system: the frames above a finder are others then.
OTHER_FRAMES = """\
import _frozen_importlib
find = _frozen_importlib._find_spec
_frozen_importlib._find_spec = lambda *arguments: find(*arguments)
"""


def test_imports_with_other_frames_get_no_code_from_the_archive(tmp_path):
    """Only frames show that an import asks a finder, and not somebody who may load the module much later, when its file has changed."""
    files = {"other.py": OTHER_FRAMES, "nothing.py": "", **{f"module_{number}.py": f"VALUE = {number}\n" for number in range(20)}}
    main = [f"import module_{number}" for number in range(20)] + ["print(module_19.VALUE)"]
    for name in ("nothing", "other"):
        files[f"with_{name}.py"] = "\n".join([*main[:10], f"import {name}", *main[10:], ""])
    starts.write(tmp_path, files)
    settle()
    hits = []
    for name in ("with_nothing.py", "with_other.py"):
        result, counts = starts.Starts(support.PYTHON, tmp_path).warm([name]).counted([name])
        assert result.out == "19\n", result
        hits.append(counts["hits"])
    assert hits[0] == hits[1] + 10, hits


def test_memory_taken_in_advance_is_given_back(tmp_path):
    """By the first collection after the imports: of the archive's pages, at least."""
    main = (
        "import asyncio, ctypes, decimal, difflib, doctest, email.message, http.server, logging.config, multiprocessing\n"
        "import pydoc, tarfile, unittest.mock, xml.dom.minidom, xmlrpc.client, gc\n"
        "def memory():\n  with open('/proc/self/smaps') as file: text = file.read()\n"
        "  part = text.partition('boot.archive\\n')[2].partition('Rss:')[2]\n  return int(part.split()[0] if part else 0)\n"
        "first = memory()\ngc.collect(0)\nprint(first, memory())\n"
    )
    starts.write(tmp_path / "app", {"main.py": main})
    program = starts.Starts(support.PYTHON, tmp_path / "app")
    settle()
    for _ in range(3):
        told = program.with_archive(["main.py"]).out.split()
    before, after = map(int, told)
    assert before > 1000 > after, told
