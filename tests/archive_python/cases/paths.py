"""Where modules are looked for."""

from . import case

MARKED = {f"{folder}/marked.py": f"WHERE = {folder!r}\n" for folder in ("one", "two", "three")}
SHOW = "import marked; print(marked.WHERE, marked.__file__)\n"
EDITABLE = """
import sys
from importlib.machinery import PathFinder
from importlib.util import spec_from_file_location
MAPPING = {"edited": %r}
class EditableFinder:
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname in MAPPING:
            return spec_from_file_location(fullname, MAPPING[fullname] + "/__init__.py")
        return None
def install():
    sys.meta_path.append(EditableFinder)
"""
FINDER = """
import importlib.abc, importlib.machinery, importlib.util, sys
seen = []
class Finder2(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        seen.append((name, path))
        if name == "virtual":
            return importlib.util.spec_from_loader(name, Loader2())
class Loader2(importlib.abc.Loader):
    def create_module(self, spec): return None
    def exec_module(self, module): module.V = 'virtual'
"""
HOOK = """
import importlib.machinery as machinery, sys
class Loud(machinery.SourceFileLoader):
    def get_data(self, path):
        if path.endswith(".py"): print("data", path[-9:])
        return super().get_data(path)
    def source_to_code(self, data, path):
        return super().source_to_code(data.replace(b"WHERE", b"LOUD"), path)
    def path_stats(self, path): raise OSError
"""
CASES = {
    "PYTHONPATH-absolute-and-relative": case("import sys; print(sys.path)\n" + SHOW, MARKED,
        env={"PYTHONPATH": "nowhere:two:one"}, shows="two"),
    "PYTHONPATH-trailing-colon": case(
        "import sys, os; print(sys.path, os.environ['PYTHONPATH'])\n" + SHOW,
        MARKED,
        env={"PYTHONPATH": "three:"},
        shows="three",
    ),
    "PYTHONPATH-colon": case("import sys, os; print(sys.path, os.environ['PYTHONPATH'])\n", env={"PYTHONPATH": ":"}),
    "PYTHONPATH-leading-colon": case("import sys, os; print(sys.path, os.environ['PYTHONPATH'])\n", MARKED, env={"PYTHONPATH": ":one"}),
    "PYTHONPATH-twice": case(
        "import sys, os; print(sys.path, os.environ['PYTHONPATH'])\n" + SHOW,
        MARKED,
        env={"PYTHONPATH": "one::one/:one"},
    ),
    "PYTHONPATH-file": case("import sys; print(sys.path)\n" + SHOW, MARKED, env={"PYTHONPATH": "main.py:one:/dev/null"}),
    "sitecustomize": case(
        """\
import sys; print('main', 'sitecustomize' in sys.modules and sys.modules['sitecustomize'].__file__)
""",
        {
            "one/sitecustomize.py": "print('site', __file__, __name__)\n",
            "one/usercustomize.py": "print('user', __name__)\n",
        },
        env={"PYTHONPATH": "one"},
        shows="site",
    ),
    "sitecustomize-failing": case(
        "print('main')\n",
        {"one/sitecustomize.py": "1 / 0\n"},
        env={"PYTHONPATH": "one"},
        shows="ZeroDivision",
    ),
    "sitecustomize-missing-import": case("print('main')\n", {"one/sitecustomize.py": "import nowhere_at_all\n"}, env={"PYTHONPATH": "one"}),
    "sitecustomize-package": case(
        "import sitecustomize; print('main', sitecustomize)\n",
        {"one/sitecustomize/__init__.py": "print('site')\n"},
        env={"PYTHONPATH": "one"},
        shows="site",
    ),
    "sitecustomize-namespace": case(
        "import sys; print('main', 'sitecustomize' in sys.modules)\n",
        {"one/sitecustomize/x.py": ""},
        env={"PYTHONPATH": "one"},
    ),
    "path-changes": case(
        """\
import os, sys
sys.path.insert(0, os.path.abspath('two'))
""" + SHOW + "del sys.modules['marked']; sys.path.insert(0, os.path.abspath('one'))\n" + SHOW + """\
del sys.modules['marked']; sys.path[:2] = []
try:
    import marked
except ImportError as e: print(e)
sys.path.append('three')
""" + SHOW + """\
import pathlib; sys.path = tuple(sys.path)
del sys.modules['marked']
""" + SHOW + "sys.path = [b'one', pathlib.Path('one'), 'one']; del sys.modules['marked']\n" + SHOW,
        MARKED,
        shows="three",
    ),
    "cwd": case(
        """\
import os, sys
sys.path.insert(0, '')
for d in 'one', '../two', '../three':
    os.chdir(d); sys.modules.pop('marked', None)
    """ + SHOW + "",
        MARKED,
        shows="three",
    ),
    "cwd-gone": case(
        """\
import os, sys, tempfile
sys.path.insert(0, ''); d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)
try: import nowhere_at_all
except ImportError as e: print(e)
import colorsys; print(colorsys.__name__)
""",
    ),
    "relative-entries": case(
        """\
import sys
sys.path.insert(0, './one/../two//')
""" + SHOW + """\
del sys.modules['marked']
sys.path.insert(0, 'one/')
""" + SHOW + """\
del sys.modules['marked']
import os
sys.path.insert(0, os.getcwd() + '//three/.')
""" + SHOW,
        MARKED,
    ),
    "importer-cache": case(
        "import sys\n" + SHOW + """\
print(sorted(k.rpartition('/')[2] for k in sys.path_importer_cache if 'app' in k and k.endswith(('app', 'one', 'two'))),
    type(sys.path_importer_cache[sys.path[0]]).__name__)
""",
        {"marked.py": "WHERE = 'x'\n"},
    ),
    "zip": case(
        """\
import sys
sys.path.insert(0, 'z.zip')
import zipped, zipped.inner
print(zipped.__file__, zipped.__loader__, zipped.inner.__spec__, zipped.__path__)
import pkgutil; print(pkgutil.get_data('zipped', 'd.txt'))
""",
        prepare="""\
import zipfile
z = zipfile.ZipFile('z.zip', 'w')
z.writestr('zipped/__init__.py', 'import marked')
z.writestr('marked.py', 'import colorsys')
z.writestr('zipped/inner.py', 'A=1')
z.writestr('zipped/d.txt', 'data')
z.close()
""",
        shows="zipimporter",
    ),
    "pth": case(
        """\
import site, sys
site.addsitedir('sites')
print(sys.path[-1])
""" + SHOW,
        {
            **MARKED,
            "sites/a.pth": """\
../two
import sys; sys.pth = 1
""",
        },
        shows="two",
    ),
    "editable-finder": case(
        """\
import site; site.addsitedir('sites')
import edited, edited.inner; print(edited.__file__, edited.inner.__spec__, edited.__spec__)
""",
        {
            "sites/__editable__.pth": "import __editable___finder; __editable___finder.install()\n",
            "sites/__editable___finder.py": EDITABLE % "src/edited",
            "src/edited/__init__.py": "A = 1\n",
            "src/edited/inner.py": "B = 1\n",
        },
        shows="inner",
    ),
    "editable-pth": case(
        """\
import site; site.addsitedir('sites')
import edited, edited.inner; print(edited.__file__, edited.inner.__spec__)
""",
        {
            "sites/__editable__.pth": "../src\n",
            "src/edited/__init__.py": "A = 1\n",
            "src/edited/inner.py": "B = 1\n",
        },
        shows="inner",
    ),
    "finder-first": case(
        """\
import finder, sys
sys.meta_path.insert(0, finder.Finder2())
import virtual, marked, package.inner
print(finder.seen, virtual.V)
""",
        {"finder.py": FINDER, "marked.py": "", "package/__init__.py": "", "package/inner.py": ""},
        shows="virtual",
    ),
    "finder-last": case(
        """\
import finder, sys
sys.meta_path.append(finder.Finder2())
import virtual, marked
print(finder.seen, virtual.V)
try: import nope
except ImportError as e: print(e, finder.seen)
""",
        {"finder.py": FINDER, "marked.py": ""},
        shows="virtual",
    ),
    "finder-replaced": case(
        """\
import sys, importlib.machinery as m
sys.meta_path[:] = [f for f in sys.meta_path if f is m.BuiltinImporter or f is m.FrozenImporter]
try: import marked
except ImportError as e: print(e)
sys.meta_path.append(m.PathFinder)
""" + SHOW,
        {"marked.py": "WHERE=1"},
        env={"PYTHONWARNINGS": "ignore"},
        shows="No module",
    ),
    "meta-path-emptied": case(
        """\
import sys
sys.meta_path.clear()
try: import marked
except ImportError as e: print(e)
""",
        {"marked.py": "WHERE=1"},
    ),
    "path-hook-first": case(
        """\
import finder, sys, importlib.machinery as m
sys.path_hooks.insert(0, m.FileFinder.path_hook((finder.Loud, ['.py'])))
sys.path_importer_cache.clear()
import marked; print(marked.LOUD)
""",
        {"finder.py": HOOK, "marked.py": "WHERE=1\n"},
        shows="data",
    ),
    "path-hook-before-import": case(
        """\
import finder, sys, importlib.machinery as m, os
sys.path_hooks.insert(0, m.FileFinder.path_hook((finder.Loud, ['.py'])))
sys.path.insert(0, os.path.abspath('one'))
import marked; print(marked.LOUD)
""",
        {"finder.py": HOOK, **MARKED},
        shows="data",
    ),
    "importer-set": case(
        """\
import finder, sys, importlib.machinery as m
sys.path_importer_cache[sys.path[0]] = m.FileFinder(sys.path[0], (finder.Loud, ['.py']))
import marked; print(marked.LOUD)
""",
        {"finder.py": HOOK, "marked.py": "WHERE=1\n"},
        shows="data",
    ),
    "importer-subclass": case(
        """\
import sys, importlib.machinery as m
class F(m.FileFinder):
    def find_spec(self, name, target=None): print('asked', name); return super().find_spec(name, target)
sys.path_importer_cache[sys.path[0]] = F(sys.path[0], (m.SourceFileLoader, ['.py']))
import marked; print(marked.WHERE)
""",
        {"marked.py": "WHERE=1\n"},
        shows="asked",
    ),
    "importer-of-other-endings": case(
        """\
import sys, importlib.machinery as m
sys.path_importer_cache[sys.path[0]] = m.FileFinder(sys.path[0], (m.SourceFileLoader, ['.odd']))
import marked; print(marked.WHERE)
""",
        {"marked.odd": "WHERE='odd'\n", "marked.py": "WHERE=1\n"},
        shows="odd",
    ),
    "importer-none": case(
        """\
import sys
sys.path_importer_cache[sys.path[0]] = None
try: import marked
except ImportError as e: print(e)
""",
        {"marked.py": ""},
    ),
    "path-finder-patched": case(
        """\
import sys, importlib.machinery as m
old = m.PathFinder.find_spec
m.PathFinder.find_spec = classmethod(lambda cls, name, path=None, target=None: print('asked', name) or old(name, path, target))
import marked; print(marked.WHERE)
""",
        {"marked.py": "WHERE=1\n"},
        shows="asked",
    ),
    "loader-patched": case(
        """\
import sys, importlib.machinery as m
old = m.SourceFileLoader.get_code
def get_code(self, name): print('code', name); return old(self, name)
m.SourceFileLoader.get_code = get_code
import marked; print(marked.WHERE)
""",
        {"marked.py": "WHERE=1\n"},
        shows="code",
    ),
    "loader-exec-patched": case(
        """\
import sys, importlib.machinery as m
old = m.SourceFileLoader.exec_module
def exec_module(self, module): print('exec', module.__name__); return old(self, module)
m.SourceFileLoader.exec_module = exec_module
import marked; print(marked.WHERE)
""",
        {"marked.py": "WHERE=1\n"},
        shows="exec",
    ),
    "loader-data-patched": case(
        """\
import sys, importlib.machinery as m
old = m.SourceFileLoader.get_data
def get_data(self, path): print('data', path[-10:]); return old(self, path)
m.SourceFileLoader.get_data = get_data
old2 = m.SourceFileLoader.source_to_code
m.SourceFileLoader.source_to_code = lambda self, data, path, **k: old2(self, data + b'\\nPATCHED = 1\\n', path, **k)
import marked; print(marked.PATCHED)
""",
        {"marked.py": "WHERE=1\n"},
        between="rm -rf __pycache__",
        shows="data",
    ),
    "file-finder-patched": case(
        """\
import sys, importlib.machinery as m
old = m.FileFinder.find_spec
m.FileFinder.find_spec = lambda self, name, target=None: print('asked', name) or old(self, name, target)
import marked; print(marked.WHERE)
""",
        {"marked.py": "WHERE=1\n"},
        shows="asked",
    ),
    "import-patched": case(
        """\
import builtins
old = builtins.__import__
def imp(name, *a, **k): name[0] == '_' or print('import', name); return old(name, *a, **k)
builtins.__import__ = imp
import marked; print(marked.WHERE)
""",
        {
            "marked.py": """\
import colorsys
WHERE=1
""",
        },
        shows="colorsys",
    ),
    "invalidate": case(
        """\
import importlib, sys
print([f.invalidate_caches() for f in sys.meta_path if hasattr(f, 'invalidate_caches') and f.__class__.__name__ == 'Finder'][:0])
importlib.invalidate_caches()
""" + SHOW,
        {"marked.py": "WHERE=1"},
    ),
    "case-and-endings": case(
        """\
import sys
names = 'Marked', 'marked.py', 'mark', 'with space', 'folder', 'li.nk', 'empty'
for name in *names, 'back\\\\slash', 'nul\\0', '', 'ünï', 'sub/marked', '..marked', 'sur\\udce4':
    try: m = __import__(name); print(ascii(name), m.__spec__.origin and ascii(m.__file__))
    except BaseException as e: print(ascii(name), type(e).__name__, ascii(str(e)))
""",
        {
            "marked.py": "",
            "with space.py": "",
            "folder/x.txt": "",
            "empty.py": "",
            "back\\slash.py": "",
            "ünï.py": "",
            "sub/marked.py": "",
        },
    ),
    "links": case(
        """\
import linked, folder_link.inner, dangling_user
print(linked.__file__, folder_link.__path__, folder_link.inner.__file__)
for name in 'dangling', 'loop', 'to_folder':
    try: m = __import__(name); print(m)
    except ImportError as e: print(e)
""",
        {"real.py": "", "real/__init__.py": "", "real/inner.py": "", "dangling_user.py": ""},
        prepare="""\
import os
os.symlink('real.py', 'linked.py')
os.symlink('real', 'folder_link')
os.symlink('nowhere.py', 'dangling.py')
os.symlink('loop.py', 'loop.py')
os.symlink('real', 'to_folder.py')
""",
        shows="folder_link",
    ),
    "odd-files": case(
        """\
for name in 'pipe', 'dirpy', 'pyc_only', 'both', 'unreadable', 'nofolder':
    try: m = __import__(name); print(name, m.__spec__)
    except BaseException as e: print(name, type(e).__name__, e)
""",
        {"dirpy.py/x": "", "both.py": "", "both/__init__.py": "", "unreadable.py": "A = 1"},
        prepare="""\
import os, py_compile
open('pyc_only.py', 'w').write('A=1')
py_compile.compile('pyc_only.py', 'pyc_only.pyc')
os.remove('pyc_only.py')
os.mkdir('nofolder')
os.symlink('loop', 'loop')
""",
        shows="pyc_only",
    ),
    "package-and-file": case(
        """\
import thing; print(thing.__file__)
import other; print(other.__path__ if hasattr(other, '__path__') else other.__file__)
""",
        {"one/thing.py": "", "thing/__init__.py": "", "thing.py": "", "other/x.txt": "", "other.py": ""},
    ),
    "path-extended": case(
        """\
import package, os
package.__path__.append(os.path.abspath('more'))
import package.extra; print(package.extra.__file__)
package.__path__ = ['more']; import package.other; print(package.other.__spec__)
from pkgutil import extend_path; import spread.a, spread.b
""",
        {
            "package/__init__.py": "",
            "more/extra.py": "",
            "more/other.py": "",
            "spread/__init__.py": "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n",
            "spread/a.py": "",
            "one/spread/__init__.py": "",
            "one/spread/b.py": "",
        },
        env={"PYTHONPATH": "one"},
        shows="extra",
    ),
    "extension": case(
        """\
import _ctypes, _json, sys, _heapq, mmap
for m in _ctypes, mmap: print(m.__name__, m.__spec__, getattr(m, '__file__', None), m.__loader__)
""",
        shows="_ctypes",
    ),
}
