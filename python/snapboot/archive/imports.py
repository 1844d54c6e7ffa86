"""Imports from the boot archive: where a module's file is, and its code.

Python's own loaders get what is found, and do the rest: after its import a module is as it would be without the archive.
"""

import sys

import _frozen_importlib
import _frozen_importlib_external as external
import _imp
import marshal
import posix

SOURCE_LOADER = external.SourceFileLoader
# Where the library may be, from this folder: where `make install` puts it, in the build of a source tree.
PLACES = ("/../../..", "/../../../target/release")
LIBRARY = "libsnapboot_python.so"


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
        self.depth = 0
        self.collector = None
        self.patterns = None
        self.compilers = ()
        gc = built_in("gc")
        self.isenabled, self.enable, self.disable = gc.isenabled, gc.enable, gc.disable

    def is_going_on(self):
        """Whether a module is being imported."""
        return self.depth > 0


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
        outermost = importing.depth == 0
        if outermost and importing.collector is not None:
            importing.collector.hold()
        importing.depth += 1
        try:
            _frozen_importlib._call_with_frames_removed(exec, self.get_code(module.__name__), module.__dict__)
            if self.name in importing.compilers:
                importing.patterns.install(module)
        finally:
            importing.depth -= 1
            if outermost and importing.collector is not None:
                importing.collector.give_back()


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
    code = compile("x", "", "eval")
    parts = [sys.version, sys.implementation.cache_tag or "", "optimize %d" % sys.flags.optimize]
    if hasattr(code, "co_positions") and next(code.co_positions())[2] is None:
        parts.append("no debug ranges")
    return " ".join(parts)


def tag():
    """What stands between a module's name and `pyc`; None where Python does not say it."""
    cache_tag = sys.implementation.cache_tag
    if cache_tag is None:
        return None
    level = sys.flags.optimize
    return ".%s.opt-%d." % (cache_tag, level) if level else ".%s." % cache_tag


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
        names = run(folder, "patterns")
        importing.patterns = names["Patterns"](native, context, importing.is_going_on)
        importing.compilers = names["COMPILERS"]
        for name in importing.compilers:
            if name in sys.modules:
                importing.patterns.install(sys.modules[name])
    if native.is_on("collector"):
        collector = run(folder, "collector")["Collector"](built_in("gc"), native, native.is_on("exit"))
        importing.collector = collector
        import atexit

        # What is registered first is called last.
        atexit.register(collector.end)
    return Search(native)
