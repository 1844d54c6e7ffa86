"""Programs and libraries that have a part in imports themselves: whatever they change, no import fails for it."""

from . import case

# As import hooks of tracers do: asks the other finders, and changes what they have found.
HOOK = """
import sys
class Hook:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        for finder in sys.meta_path:
            if finder is not cls and finder is not Hook:
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    break
        else:
            return None
        if name in ("marked", "second"):
            change(spec)
        return spec
%s
sys.meta_path.insert(0, Hook)
import marked, second
print(marked.VALUE, second.VALUE, type(marked.__loader__).__name__, sorted(vars(marked.__loader__)))
"""
FILES = {"marked.py": "VALUE = 'aa'\n", "second.py": "VALUE = 'bb'\n"}


def hooked(change, **options):
    """A Case whose program changes the specs of two modules: the body of change(spec)."""
    body = "\n".join("    " + line for line in change.strip().splitlines())
    return case(HOOK % ("def change(spec):\n" + body), FILES, **options)


WRAPPED = """
def wrapper(*arguments, before=spec.loader.%s):
    print(%r, *[one if type(one) is str else type(one).__name__ for one in arguments][:1])
    return before(*arguments)
spec.loader.%s = wrapper
"""
CASES = {
    **{f"{name}-wrapped-on-the-loader": hooked(WRAPPED % (name, name, name), shows=name) for name in
        ("get_code", "exec_module", "create_module", "get_data", "path_stats", "source_to_code", "get_filename")},
    "get_code-wrapped-twice": hooked("".join(WRAPPED % ("get_code", name, "get_code") for name in ("outer", "inner")), shows="inner"),
    "loader-asked-for-code-beforehand": hooked("for _ in 1, 2: print(spec.loader.get_code(spec.name).co_filename[-9:])"),
    "loader-copied": hooked("import copy; spec.loader = copy.copy(spec.loader)"),
    "loader-copied-deeply": hooked("import copy; spec.loader = copy.deepcopy(spec.loader)"),
    "loader-pickled": hooked("import pickle; spec.loader = pickle.loads(pickle.dumps(spec.loader))"),
    "loader-of-another-class": hooked("""
import importlib.machinery as m
class Other(m.SourceFileLoader): pass
spec.loader.__class__ = Other
"""),
    "loader-with-another-path": hooked("spec.loader.path = spec.loader.path.replace('marked', 'second')", shows="bb bb"),
    "loader-in-a-proxy": hooked("""
class Proxy:
    def __init__(self, inner): self.inner = inner
    def __getattr__(self, name): return getattr(self.inner, name)
spec.loader = Proxy(spec.loader)
"""),
    "loader-whose-code-is-wrapped-by-a-class": hooked("""
import importlib.machinery as m
class Traced(m.SourceFileLoader):
    def get_code(self, name): print("traced", name); return super().get_code(name)
spec.loader = Traced(spec.name, spec.origin)
""", shows="traced"),
    "class-patched-after-the-search": hooked("""
import importlib.machinery as m
if not hasattr(m.SourceFileLoader, "patched"):
    before = m.SourceFileLoader.exec_module
    m.SourceFileLoader.exec_module = lambda self, module: (print("patched", module.__name__), before(self, module))[1]
    m.SourceFileLoader.patched = True
""", shows="patched marked"),
    "finder-of-files-replaced": case("""
import sys, importlib.machinery as m
class Other(m.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        print("asked for", name); return super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(m.PathFinder)] = Other
import marked
""", FILES, shows="asked for marked"),
    "finder-of-files-removed": case("""
import sys, importlib.machinery as m
sys.meta_path.remove(m.PathFinder)
try: import marked
except ImportError as error: print(error)
""", FILES, shows="No module"),
    "finder-right-before-that-of-files": case("""
import sys, importlib.machinery as m
class Before:
    @staticmethod
    def find_spec(name, path=None, target=None): print("before", name)
sys.meta_path.insert(sys.meta_path.index(m.PathFinder), Before)
import marked, second
""", FILES, shows="before second"),
    "finder-of-one-directory-patched": case("""
import sys, os
import marked
finder = sys.path_importer_cache[os.path.dirname(marked.__file__)]
before = finder.find_spec
finder.find_spec = lambda name, target=None: (print("directory", name), before(name, target))[1]
import second
""", FILES, shows="directory second"),
    "finders-in-proxies": case("""
import sys
class Proxy:
    def __init__(self, inner): self.inner = inner
    def find_spec(self, name, path=None, target=None): return self.inner.find_spec(name, path, target)
sys.meta_path[:] = [Proxy(one) for one in sys.meta_path]
import marked, second; print(marked.VALUE, second.VALUE)
""", FILES, shows="aa bb"),
    "module-replaces-itself-and-is-reloaded": case("""
import importlib, marked, second
print(marked.VALUE, type(marked).__name__)
print(importlib.reload(second).VALUE)
""", {**FILES, "marked.py": "import sys\nclass Me(type(sys)): VALUE = 'mine'\nsys.modules[__name__] = Me(__name__)\n"}, shows="mine Me"),
    "own-code-fails": case("""
import sys
for finder in sys.meta_path:
    search = vars(finder).get("find_spec") if hasattr(finder, "is_of_archive") else None
    if hasattr(search, "_find"):
        def fail(*arguments): raise KeyError("of the archive")
        search._find = fail
import marked, second; print(marked.VALUE, second.VALUE)
""", FILES, shows="aa bb"),
}  # fmt: skip
