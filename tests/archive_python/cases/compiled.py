"""Code: compiled files, warnings while compiling, encodings, and what can be seen of code objects."""

from . import case

TOUCHY = {
    "touchy.py": """\
x = 'a\\d'
print(x is 1)
assert (x, 'always')
""",
    "touchy2.py": """\
import touchy
x = '\\q'
""",
}
UNWRITTEN = {"PYTHONDONTWRITEBYTECODE": "1"}
WALK = """
import types, sys
def walk(code, depth=0):
    print(" " * depth, code.co_name, code.co_filename, code.co_firstlineno, code.co_flags, code.co_names, code.co_varnames,
        code.co_freevars,
          code.co_cellvars, code.co_stacksize, code.co_code[:20], getattr(code, "co_qualname", None),
          [repr(c) for c in code.co_consts if not isinstance(c, types.CodeType)], [type(c).__name__ for c in code.co_consts],
          list(code.co_lines()) if hasattr(code, "co_lines") else code.co_lnotab, list(code.co_positions())[:4] if hasattr(code,
              "co_positions") else None)
    for c in code.co_consts:
        if isinstance(c, types.CodeType): walk(c, depth + 1)
"""
RICH = """\
\"\"\"Module doc.\"\"\"
from __future__ import annotations
NAMES = ("a", "b", 1.5, -0.0, 1j, 2 ** 100, b"bytes", ..., None, True, frozenset)
def member(x): return x in {1, 2, 3}
def words(x): return x in {"alpha", "beta", "gamma"}
def nested(a, *args, b: int = 2, **kw):
    \"\"\"Doc of nested.\"\"\"
    c = [a for a in args]
    def inner(): nonlocal c; return c, b
    return inner
class Thing:
    \"\"\"Doc of Thing.\"\"\"
    __slots__ = ("one", "two")
    def method(self): return __class__
    async def other(self):
        async for x in self: yield x
lam = lambda *, k=(1, (2, (3,))): k
big = "x" * 5000
uni = "ünïcodé \\ud800 \\U0001f600"
"""
CASES = {
    "warnings-each-time": case("import touchy, touchy2\n", TOUCHY, env=UNWRITTEN, shows="SyntaxWarning"),
    "warnings-once": case("import touchy, touchy2\n", TOUCHY, shows="SyntaxWarning"),
    "warnings-as-errors": case(
        """\
for name in 'touchy', 'touchy2':
    try: __import__(name)
    except SyntaxError as e: print(e)
""",
        TOUCHY,
        env=UNWRITTEN,
        words=[["main.py"], ["-W", "error", "main.py"], ["-W", "ignore", "main.py"], ["-W", "default", "main.py"], ["main.py"]],
        shows="SyntaxWarning",
    ),
    "warnings-elsewhere": case(
        """\
import sys, warnings
warnings.simplefilter('always')
with warnings.catch_warnings(record=True) as caught:
    import touchy
print([(str(w.message), w.lineno, w.filename[-9:]) for w in caught], len(warnings.filters))
""",
        TOUCHY,
        env=UNWRITTEN,
        shows="touchy.py",
    ),
    "warnings-unwritable": case("import touchy\n", TOUCHY, env={"PYTHONPYCACHEPREFIX": "/proc/nowhere"}, shows="SyntaxWarning"),
    "warnings-pyc-removed": case("import touchy\n", TOUCHY, between="rm -rf __pycache__", shows="SyntaxWarning"),
    "pycache-prefix": case(
        """\
import package.inner as i, sys
print(getattr(i, '__cached__', None), i.__spec__.cached, sys.pycache_prefix)
sys.pycache_prefix = 'other'
import later; print(getattr(later, '__cached__', None), later.__spec__.cached)
sys.pycache_prefix = None
import latest; print(getattr(latest, '__cached__', None), latest.__spec__.cached)
import os; print(sorted(os.listdir('other')))
""",
        {"package/__init__.py": "", "package/inner.py": "", "later.py": "", "latest.py": ""},
        env={"PYTHONPYCACHEPREFIX": "cache"},
        shows="cache",
    ),
    "pycache-written": case(
        """\
import package.inner, os
print(sorted(os.listdir('__pycache__')), sorted(os.listdir('package/__pycache__')))
""",
        {"package/__init__.py": "", "package/inner.py": ""},
        shows="inner",
    ),
    "cache-tag-changed": case(
        """\
import sys
sys.implementation.cache_tag = 'odd'
import later; print(getattr(later, '__cached__', None), later.__spec__.cached)
sys.implementation.cache_tag = None
import latest; print(getattr(latest, '__cached__', None), latest.__spec__.cached)
""",
        {"later.py": "", "latest.py": ""},
        shows="odd",
    ),
    "dont-write-set-by-program": case(
        """\
import sys, os
sys.dont_write_bytecode = True
import later
print([n for n in os.listdir('__pycache__') if 'later' in n])
""",
        {"later.py": ""},
    ),
    "sourceless": case(
        """\
import bare, pack.inner
print(bare.__file__, getattr(bare, '__cached__', None), bare.__loader__, bare.X, pack.inner.__spec__)
""",
        {"pack/x.txt": ""},
        prepare="""\
import os, py_compile
for n in 'bare', 'pack/__init__', 'pack/inner':
    open(n + '.py', 'w').write('X = 1')
    py_compile.compile(n + '.py', n + '.pyc')
    os.remove(n + '.py')""",
        shows="Sourceless",
    ),
    "hash-unchecked": case(
        "import hashed; print(hashed.A)\n",
        {"hashed.py": "A = 'new'\n", "old.py": "A = 'old'\n"},
        prepare="""\
import py_compile, importlib.util, os
py_compile.compile('old.py', importlib.util.cache_from_source('hashed.py'),
    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)""",
        shows="old",
        words=[["main.py"], ["--check-hash-based-pycs", "always", "main.py"], ["main.py"]],
    ),
    "hash-never": case(
        "import hashed; print(hashed.A)\n",
        {"hashed.py": "A = 'new'\n", "old.py": "A = 'old'\n"},
        prepare="""\
import py_compile, importlib.util, os
py_compile.compile('old.py', importlib.util.cache_from_source('hashed.py'),
    invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)""",
        shows="old",
        words=[["--check-hash-based-pycs", "never", "main.py"], ["main.py"], ["--check-hash-based-pycs", "never", "main.py"]],
        env=UNWRITTEN,
    ),
    "hash-replaced": case(
        "import hashed; print(hashed.A)\n",
        {
            "hashed.py": "A = 'new'\n",
            "swap.py": """\
import py_compile, importlib.util, sys
open('old.py', 'w').write('A = %r' % sys.argv[1])
py_compile.compile('old.py', importlib.util.cache_from_source('hashed.py'), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
import time; time.sleep(0.03)
""",
        },
        shows="three",
        words=[
            ["swap.py", "one"], ["main.py"], ["main.py"], ["swap.py", "two"], ["main.py"], ["swap.py", "three"], ["main.py"],
            ["main.py"],
        ],
    ),
    "stale-pyc-promoted": case(
        "import kept; print(kept.A)\n",
        {
            "kept.py": "A = 1\n",
            "edit.py": """\
import os, sys, time, shutil
s = os.stat('kept.py')
open('kept.py', 'w').write('A = %s\\n' % sys.argv[1])
os.utime('kept.py', ns=(s.st_mtime_ns, s.st_mtime_ns))
if len(sys.argv) > 2: shutil.rmtree('__pycache__')
time.sleep(0.03)
""",
        },
        words=[
            ["main.py"], ["main.py"], ["edit.py", "2"], ["main.py"], ["main.py"], ["edit.py", "3", "x"], ["main.py"], ["main.py"],
            ["edit.py", "4"], ["main.py"], ["edit.py", "4", "x"], ["main.py"], ["main.py"],
        ],
        between="rm -rf __pycache__; echo A = 1 > kept.py; sleep 0.03",
        shows="4",
    ),
    "encodings": case(
        """\
import latin, bom, utf16ish, crlf, form
print(latin.A, bom.A, crlf.A, form.A)
""",
        {
            "latin.py": "# -*- coding: latin-1 -*-\nA = 'é'\n".encode("latin-1"),
            "bom.py": "\ufeffA = 'é'\n",
            "utf16ish.py": """\
# vim: set fileencoding=cp1252 :
A = 1
""",
            "crlf.py": """\
A = '''a\r
b'''\r
""",
            "form.py": '\x0cA = 1',
        },
        shows="é",
    ),
    "code-objects": case(
        WALK + """\
import rich
for f in rich.member, rich.words, rich.nested, rich.Thing.method, rich.Thing.other, rich.lam: walk(f.__code__)
walk(rich.__loader__.get_code('rich'))
print(rich.__doc__, rich.nested.__doc__, rich.Thing.__doc__, type(rich.member.__code__.co_consts[-1]), rich.NAMES, ascii(rich.uni))
""",
        {"rich.py": RICH},
        env={"PYTHONHASHSEED": "1"},
        shows="frozenset",
    ),
    "interned": case(
        """\
import rich, sys
c = rich.nested.__code__
print(all(sys.intern(n) is n for n in c.co_names + c.co_varnames + rich.Thing.__slots__), sys.intern('alpha') is 'alpha',
    rich.NAMES[0] is 'a', c.co_filename is rich.member.__code__.co_filename, rich.member.__name__ is sys.intern('member'))
""",
        {"rich.py": RICH},
        env={"PYTHONWARNINGS": "ignore"},
    ),
    "dis": case(
        """\
import dis, rich
dis.dis(rich.nested); dis.dis(rich.Thing)
print(dis.code_info(rich.nested))
""",
        {"rich.py": RICH},
        env={"PYTHONHASHSEED": "1"},
        shows="LOAD",
    ),
    "mutable-results": case(
        """\
import m
m.L.append(1); m.D['x'] = 2; m.f.__defaults__ = (5,); m.f.__code__ = m.g.__code__
print(m.L, m.D, m.f())
import importlib; importlib.reload(m); print(m.L, m.D, m.f())
""",
        {
            "m.py": """\
L = [1, 2]
D = {'a': 1}
def f(a=1): return a
def g(a=2): return a * 10
""",
        },
    ),
    "optimized": case(
        """\
import m
print(m.f.__doc__, m.f(), getattr(m, '__cached__', None), __debug__)
""",
        {
            "m.py": """\
def f():
    'doc'
    try: assert 0
    except AssertionError: return 'asserted'
    return __debug__
""",
        },
        words=[["main.py"], ["-O", "main.py"], ["-OO", "main.py"], ["main.py"], ["-O", "main.py"]],
        shows="asserted",
    ),
    "optimized-by-program": case(
        """\
import sys
import m
print(m.f.__doc__)
""",
        {
            "m.py": """\
def f():
    'doc'
""",
        },
        env={"PYTHONOPTIMIZE": "2"},
    ),
    "no-debug-ranges": case(
        """\
import m
print(list(m.f.__code__.co_positions())[-1])
try: m.f(None)
except Exception: import traceback; traceback.print_exc()
""",
        {"m.py": "def f(a): return a.b.c + 1\n"},
        words=[["main.py"], ["-X", "no_debug_ranges", "main.py"], ["main.py"], ["-X", "no_debug_ranges", "main.py"]],
        since=(3, 11),
        shows="None",
    ),
    "moved": case(
        """\
import sys
sys.path.insert(0, sys.argv[1])
import m; print(m.f.__code__.co_filename, m.__file__)
""",
        {"one/m.py": "def f(): pass\n"},
        prepare="import os; os.symlink('one', 'two')",
        words=[["main.py", "one"], ["main.py", "two"], ["main.py", "./one"], ["main.py", "two"]],
    ),
    "future-and-type-comments": case(
        "import m; print(m.f.__annotations__, m.x)\n",
        {
            "m.py": """\
from __future__ import annotations, division
def f(a: int, b: 'str' = 1) -> None: pass
x: int = 3 # type: int
""",
        },
    ),
    "big": case(
        "import big; print(len(big.X), big.f())\n",
        {
            "big.py": "X = [" + ",".join(f"('k{n}', {n}, {n}.5)" for n in range(5000)) + """\
]
def f(): return """ + "+".join(str(n) for n in range(300)) + "\n",
        },
    ),
    "empty": case(
        "import empty, comment, doc; print(vars(empty).keys(), comment.__doc__, doc.__doc__)\n",
        {"empty.py": "", "comment.py": "# x", "doc.py": "'only doc'"},
    ),
}
