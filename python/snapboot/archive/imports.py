"""Imports from the boot archive: where a module's file is, and its code.

Python's own loaders get what is found, and do the rest: after its import a module is as it would be without the archive.
"""

import _frozen_importlib
import _frozen_importlib_external as external
import _imp
import marshal
import posix
import sys

SOURCE_LOADER = external.SourceFileLoader
# Where the library may be, from this folder: where `make install` puts it, in the build of a source tree.
PLACES = ("/../../..", "/../../../target/release")
LIBRARY = "libsnapboot_python.so"
# With the compiler of regular expressions, from Python 3.11 on and before.
COMPILERS = ("re._compiler", "sre_compile")
# With the scanner of JSON.
JSON = "json.scanner"
# With parsers of YAML and TOML.
PARSERS = ("yaml", "tomllib._parser", "tomli._parser")
# Fewer modules are imported faster than what spares time with many.
MANY = 4


def built_in(name):
    """A module that is built into the interpreter. It is not registered in `sys.modules` where it was not before."""
    is_known = name in sys.modules
    module = __import__(name)
    if not is_known:
        del sys.modules[name]
    return module


class Importing:
    """The imports that are taking place, one inside another."""

    def __init__(self):
        self._gc = built_in("gc")
        self.isenabled, self.enable, self.disable = self._gc.isenabled, self._gc.enable, self._gc.disable
        self.depth = 0
        # How many modules were imported until the collector was asked for. None: it is not to be.
        self._modules = None
        self._collector = None
        # What is done with a module right after it was run, by the module's name.
        self.after = {}

    def is_going_on(self):
        """Whether a module is being imported."""
        return self.depth > 0

    def collect_less(self, make_collector):
        """Has collections held back where it is worth it. make_collector: makes the Collector, from the module `gc`."""
        self._modules = 0
        self._make_collector = make_collector

    def begin(self):
        """A module is about to be run."""
        self.depth += 1
        if self._modules is not None:
            self._modules += 1
            if self._modules == MANY:
                self._modules = None
                self._collector = self._make_collector(self._gc)
                self._collector.hold()
        elif self.depth == 1 and self._collector is not None:
            self._collector.hold()

    def end(self):
        """It has been run."""
        self.depth -= 1
        if self.depth == 0 and self._collector is not None:
            self._collector.give_back()


importing = Importing()


class Loader(SOURCE_LOADER):
    """The loader of a module whose code may be in the archive. It becomes an ordinary one once it has given the code."""

    def get_code(self, fullname):
        """See importlib.abc.InspectLoader."""
        source = self.__dict__.pop("_source")
        self.__class__ = SOURCE_LOADER
        code = None
        if fullname == self.name:
            # None of what a collection would walk over meanwhile is garbage.
            collects = importing.isenabled()
            importing.disable()
            try:
                code = source.load()
            finally:
                if collects:
                    importing.enable()
        if code is None:
            code = self.get_code(fullname)
            if code is not None:
                source.keep(marshal.dumps(code))
        return code

    def exec_module(self, module):
        """See importlib.abc.Loader."""
        importing.begin()
        try:
            _frozen_importlib._call_with_frames_removed(exec, self.get_code(module.__name__), module.__dict__)
            if self.name in importing.after:
                importing.after[self.name](module)
        finally:
            importing.end()


# What tells the class from the one that it stands for can be seen by nobody but who asks `is`.
Loader.__name__ = Loader.__qualname__ = SOURCE_LOADER.__name__
Loader.__module__ = SOURCE_LOADER.__module__
# Tracebacks leave out the frames of Python's own import system, which they know by its files.
Loader.exec_module.__code__ = Loader.exec_module.__code__.replace(
    co_filename=SOURCE_LOADER.exec_module.__code__.co_filename, co_name="exec_module"
)


class Search:
    """Finds modules, as a function of the arguments of `find_spec`."""

    def __init__(self, native):
        self._find = native.find
        self._source_at = native.source_at
        self.invalidate_caches = native.begin_round
        # Whoever adds one may want to see each directory.
        self._hooks = list(sys.path_hooks)

    def __call__(self, name, path=None, target=None):
        entries = sys.path if path is None else path
        if type(entries) is not list:
            entries = list(entries)
        found = self._find(
            name.rpartition(".")[2], entries, sys.path_importer_cache, external.FileFinder, sys.path_hooks == self._hooks
        )
        if found is None:
            return None
        if found is False:
            spec = external.PathFinder.find_spec(name, path, target)
            if spec is not None and type(spec.loader) is SOURCE_LOADER:
                source = self._source_at(spec.loader.path)
                if source is not None:
                    spec.loader.__class__ = Loader
                    spec.loader._source = source
            return spec
        if found.is_extension:
            loader = external.ExtensionFileLoader(name, found.path)
        else:
            loader = Loader(name, found.path)
            loader._source = found
        folder = found.folder
        spec = _frozen_importlib.ModuleSpec(name, loader, origin=found.path, is_package=folder is not None)
        spec._set_fileattr = True
        if folder is not None:
            spec.submodule_search_locations.append(folder)
        if sys.pycache_prefix is None:
            spec._cached = found.cached
        return spec


def load_library(folder):
    """The native part, as a module that is registered nowhere. Raises ImportError."""
    for place in PLACES:
        path = folder + place + "/" + LIBRARY
        try:
            posix.stat(path)
        except OSError:
            continue
        spec = _frozen_importlib.ModuleSpec("snapboot_python", None, origin=path)
        module = _imp.create_dynamic(spec)
        _imp.exec_dynamic(module)
        return module
    raise ImportError("%s was expected above %s; reinstall Snapboot" % (LIBRARY, folder))


def program():
    """A path that tells this program from others: its script's, or one that stands for a module or the interpreter itself."""
    name = sys.argv[0] if sys.argv else ""
    if name == "-m":
        words = getattr(sys, "orig_argv", ())
        following = words[words.index("-m") + 1 :] if "-m" in words else ()
        return sys.prefix + "/" + (following[0] if following else "python")
    if name in ("", "-c", "-"):
        return sys.prefix + "/python"
    return name if name.startswith("/") else posix.getcwd() + "/" + name


def description():
    """What code depends on besides its source."""
    parts = [sys.version, sys.implementation.cache_tag or "", "optimize %d" % sys.flags.optimize]
    own = description.__code__
    if hasattr(own, "co_positions") and all(position[2] is None for position in own.co_positions()):
        parts.append("no debug ranges")
    return " ".join(parts)


def tag():
    """What stands between a module's name and `pyc`; None where Python does not say it."""
    cache_tag = sys.implementation.cache_tag
    if cache_tag is None:
        return None
    level = sys.flags.optimize
    return ".%s.opt-%d." % (cache_tag, level) if level else ".%s." % cache_tag


def after(names, function):
    """Has a function called with each module of those names: now, or right after it is imported."""
    for name in names:
        importing.after[name] = function
        if name in sys.modules:
            function(sys.modules[name])


def finder(folder, run):
    """Opens the archive, or gets ready to make it. Returns what finds modules. Raises ImportError where there is no archive.

    run: runs another module of this folder, and returns its names.
    """
    native = load_library(folder)
    context = description()
    reason = native.open(program(), context, _imp.extension_suffixes(), tag())
    if reason is not None:
        raise ImportError(reason)
    if native.is_on("patterns"):

        def install_patterns(module):
            run(folder, "patterns")["Patterns"](native, context, importing.is_going_on).install(module)

        after(COMPILERS, install_patterns)
    if native.is_on("data"):
        pause = (importing.isenabled, importing.disable, importing.enable)
        after((JSON,), lambda module: native.serve_json(module, "json " + sys.version, pause))
        after(PARSERS, lambda module: run(folder, "data")["serve"](native, module, pause))
    if native.is_on("collector"):

        def make_collector(gc):
            collector = run(folder, "collector")["Collector"](gc, native, native.is_on("exit"))
            import atexit

            # What is registered first is called last.
            atexit.register(collector.end)
            return collector

        importing.collect_less(make_collector)
    return Search(native)
