"""What a module tells of itself, and packages."""

from . import case

TELL = """
def tell(m):
    s = m.__spec__
    print(m.__name__, m.__file__, getattr(m, "__cached__", None), m.__package__, type(m.__loader__), m.__loader__ is s.loader,
          m.__loader__.__dict__, getattr(m, "__path__", None), type(getattr(m, "__path__", None)), list(vars(m))[:9])
    print(s, s.cached, s.origin, s.parent, s.has_location, s.submodule_search_locations, s.__dict__.keys(), s.loader_state,
          s._initializing, type(s), repr(m), type(m.__loader__).__qualname__, type(m.__loader__).__module__,
          s.loader.is_package(m.__name__))
"""
PACKAGE = {
    "package/__init__.py": """\
from . import inner
X = 1
""",
    "package/inner.py": """\
\"\"\"doc\"\"\"
Y = 2
""",
}
CASES = {
    "attributes": case(
        TELL + """\
import package, package.inner, plain, json.decoder
for m in package, package.inner, plain, json, json.decoder: tell(m)
""",
        {**PACKAGE, "plain.py": "def f(): pass\n"},
        shows="package.inner",
    ),
    "identity": case(
        """
import importlib.machinery as machinery, importlib.abc, importlib.util, pickle, plain, sys
loader = plain.__loader__
print(type(loader) is machinery.SourceFileLoader, isinstance(loader, importlib.abc.SourceLoader),
    loader == machinery.SourceFileLoader("plain", plain.__file__))
print(loader.get_source("plain"), loader.get_filename("plain"), loader.get_data(plain.__file__), loader.path_stats(plain.__file__).keys())
print(loader.get_code("plain").co_filename, hash(loader) == hash(machinery.SourceFileLoader("plain", plain.__file__)))
import copy
found = importlib.util.find_spec("other").loader
print(type(found) is machinery.SourceFileLoader, copy.copy(found).__dict__, pickle.loads(pickle.dumps(found)).path)
finder = next((finder for finder in sys.meta_path if type(finder).__name__ == "Finder"), machinery.PathFinder)
print(vars(finder.find_spec("other").loader), vars(machinery.PathFinder.find_spec("other").loader))
spec = importlib.util.find_spec("other")
print(spec, spec.loader.get_code("other").co_consts, spec.loader.get_code("other"), "other" in sys.modules)
print(vars(importlib.util.find_spec("other").loader), isinstance(spec.loader, machinery.SourceFileLoader), type(spec.loader).__mro__)
try: spec.loader.get_code("wrong")
except ImportError as error: print(repr(error))
fresh = importlib.util.find_spec("other")
try: fresh.loader.get_code("wrong")
except ImportError as error: print(repr(error))
module = importlib.util.module_from_spec(fresh)
fresh.loader.exec_module(module)
print(module.Z, sorted(vars(fresh.loader)))
fresh.loader.exec_module(module); print(fresh.loader.load_module("other").Z)
""",
        {"plain.py": "A = 1\n", "other.py": "Z = 3\n"},
        shows="True",
    ),
    "namespace": case(
        """
import sys
sys.path[:0] = ["one", "two"]
import space.a, space.b
print(space.__path__, space.__spec__, space.__file__ if hasattr(space, "__file__") else None, type(space.__loader__).__name__)
import os
os.mkdir("three"); os.mkdir("three/space"); open("three/space/c.py", "w").write("C = 1")
sys.path.append("three")
import space.c
print(space.c.__file__, space.__path__)
""",
        {"one/space/a.py": "A = 1", "two/space/b.py": "B = 1"},
        between="rm -rf three",
        shows="three/space/c.py",
    ),
    "namespace-part-grows": case(
        """
import importlib, os, sys
sys.path[:0] = [os.path.abspath("one")]
import space.a
try: import space.late
except ImportError as error: print(error)
open("one/space/late.py", "w").write("L = 1")
importlib.invalidate_caches()
import space.late
print(space.late.L)
open("one/space/later.py", "w").write("L = 2")
importlib.invalidate_caches()
print(importlib.import_module("space.later").L)
""",
        {"one/space/a.py": "A = 1"},
        between="rm -f one/space/late.py one/space/later.py",
        shows="No module named",
    ),
    "portion-becomes-package": case(
        """
import importlib, os, sys
import space.a
print(space.__path__)
for name in list(sys.modules):
    if name.startswith("space"): del sys.modules[name]
open("space/__init__.py", "w").write("I = 1")
importlib.invalidate_caches()
import space
print(space.I, space.__path__)
""",
        {"space/a.py": "A = 1"},
        between="rm -f space/__init__.py",
    ),
    "resources": case(
        """
import importlib.resources as resources, pkgutil
print(resources.read_text("package", "data.txt"), pkgutil.get_data("package", "data.txt"))
if hasattr(resources, "files"):
    print(sorted(p.name for p in resources.files("package").iterdir() if p.name != "__pycache__"), type(resources.files("package")))
import package
reader = package.__loader__.get_resource_reader("package")
print(sorted(name for name in reader.contents() if name != "__pycache__"), reader.is_resource("data.txt"))
""",
        {**PACKAGE, "package/data.txt": "text"},
        shows="text",
    ),
    "metadata": case(
        """
import importlib.metadata as metadata
print(metadata.version("thing"), metadata.metadata("thing")["Name"], [str(f) for f in metadata.files("thing")])
print([e for e in metadata.distribution("thing").entry_points], metadata.requires("thing"))
entry = [e for e in metadata.distribution("thing").entry_points][0]
print(entry.load()())
""",
        {
            "thing-1.0.dist-info/METADATA": """\
Metadata-Version: 2.1
Name: thing
Version: 1.0
Requires-Dist: other
""",
            "thing-1.0.dist-info/entry_points.txt": """\
[console_scripts]
thing = thing:main
""",
            "thing-1.0.dist-info/RECORD": "thing.py,,\n",
            "thing.py": "def main(): return 'mained'\n",
        },
        shows="mained",
    ),
    "run-module": case(
        "",
        {
            **PACKAGE,
            "package/__main__.py": TELL
            + """\
import sys
print(sys.argv, __spec__, __file__, __package__, __name__, __loader__.__class__)
tell(sys.modules['package'])
""",
        },
        words=["-m", "package", "a"],
        shows="__main__",
    ),
    "run-module-of-library": case(
        "",
        words=[["-m", "json.tool"], ["-m", "timeit", "-n1", "-r1", "-h"], ["-m", "nothing"], ["-m", "package.nothing"]],
        files=PACKAGE,
        stdin="{}",
        shows="{}",
    ),
    "runpy": case(
        """\
import runpy, sys
print(sorted(k for k in runpy.run_module('package.inner', run_name='x')))
print(runpy.run_path('package/inner.py')['__file__'])
print(runpy.run_path('package')['Q'], sys.argv, sys.modules.get('__main__').__file__)
""",
        {**PACKAGE, "package/__main__.py": "Q = 5\n"},
        shows="Y",
    ),
    "source": case(
        """
import inspect, linecache, package.inner, plain, pkgutil
print(inspect.getsource(plain), inspect.getsourcefile(plain.f), inspect.getfile(plain), inspect.getsource(plain.f),
    inspect.getmodule(plain.f), inspect.getdoc(package.inner))
print(pkgutil.get_loader("plain") if hasattr(pkgutil, "get_loader") else None)
""",
        {
            **PACKAGE,
            "plain.py": """\
# comment

def f(a, b=1):
    'doc'
    return a
""",
        },
        shows="return a",
        env={"PYTHONWARNINGS": "ignore"},
    ),
    "walk": case(
        """\
import pkgutil, package
print(list(pkgutil.iter_modules(['.', 'package'])))
print([m.name for m in pkgutil.walk_packages(package.__path__, 'package.')])
print([type(i).__name__ for i in pkgutil.iter_importers() if type(i).__name__ != 'Finder'])
""",
        PACKAGE,
        shows="inner",
    ),
    "reload": case(
        r"""
import importlib, os, sys, plain, package, package.inner
before = plain.__dict__
print(importlib.reload(plain) is plain, plain.A)
open("plain.py", "w").write("A = 22\n")
importlib.reload(plain); print(plain.A, plain.__spec__, plain.__dict__ is before)
importlib.reload(package); importlib.reload(package.inner); print(package.inner.Y)
os.remove("plain.py")
try: importlib.reload(plain)
except ImportError as error: print(error)
""",
        {**PACKAGE, "plain.py": "A = 1\n"},
        between="echo 'A = 1' > plain.py",
        shows="22",
    ),
    "circular": case(
        """\
import one
print(one.X, one.two.Y)
try: import three
except ImportError as e: print(e)
""",
        {
            "one.py": """\
import two
X = two.Y
""",
            "two.py": """\
import one
Y = getattr(one, 'X', 'partial')
""",
            "three.py": "from four import A\n",
            "four.py": """\
from three import B
A = 1
""",
        },
        shows="partial",
    ),
    "threads": case(
        """
import threading, importlib, sys
errors = []
def load(number):
    try:
        for n in range(20): importlib.import_module("many%d" % ((n + number) % 20))
    except BaseException as error: errors.append(error)
threads = [threading.Thread(target=load, args=(n,)) for n in range(8)]
for t in threads: t.start()
for t in threads: t.join()
import gc
print(errors, sorted(n for n in sys.modules if n.startswith("many")), gc.isenabled(), gc.get_threshold())
""",
        # None imports one before it: of a circle, CPython itself now and then gives up in one thread (_DeadlockError).
        {f"many{n}.py": f"import many{n + 1 + n % 3} as other\nimport time; time.sleep(0.001)\nN = [{n}]\n" for n in range(20)}
        | {f"many{n}.py": f"N = [{n}]\n" for n in range(20, 23)},
    ),
    "lazy": case(
        """
import importlib.util, sys
spec = importlib.util.find_spec("plain")
loader = importlib.util.LazyLoader(spec.loader); spec.loader = loader
module = importlib.util.module_from_spec(spec); sys.modules["plain"] = module
loader.exec_module(module)
print(type(module)); print(module.A, type(module), module.__loader__)
factory = importlib.util.LazyLoader.factory(importlib.machinery.SourceFileLoader)
spec = importlib.util.spec_from_file_location("x", "plain.py", loader=factory("x", "plain.py"))
m = importlib.util.module_from_spec(spec)
spec.loader.exec_module(m)
print(m.A)
""",
        {
            "plain.py": """\
print('loaded')
A = 1
""",
        },
        shows="loaded",
    ),
    "failing": case(
        """
import sys, traceback
for name in "syntax", "raising", "nested", "nothing", "indent", "package.nothing", "plain.sub", "exits", "encoding", "null", "deleted":
    try: __import__(name)
    except BaseException: traceback.print_exc()
    print(name in sys.modules)
import raising
""",
        {
            "syntax.py": "def (\n",
            "raising.py": """\
def f():
    1 / 0
f()
""",
            "nested.py": "import raising\n",
            "indent.py": """\
if 1:
x
""",
            "package/__init__.py": "",
            "plain.py": "",
            "exits.py": "raise SystemExit(3)\n",
            "encoding.py": b"# coding: nowhere\n",
            "null.py": b"a = 1\x00\n",
            "deleted.py": "import sys; del sys.modules[__name__]\n",
        },
        shows="ZeroDivisionError",
    ),
    "replacing-itself": case(
        """\
import odd
print(odd, odd.V)
import odd2; print(odd2)
""",
        {
            "odd.py": """\
import sys
class M:
    V = 1
    def __repr__(self): return 'M'
sys.modules[__name__] = M()
""",
            "odd2.py": """\
import sys
sys.modules[__name__] = 5
""",
        },
    ),
    "dunder": case(
        """\
import pep562
print(pep562.anything, dir(pep562))
from pep562 import other; print(other)
from star import *; print(sorted(k for k in dir() if k[0] in 'ab'))
""",
        {
            "pep562.py": """\
def __getattr__(n):
    if n.startswith('__'): raise AttributeError(n)
    return n * 2
def __dir__(): return ['x']
""",
            "star.py": """\
__all__ = ['a']
a = b = 1
""",
        },
    ),
}
