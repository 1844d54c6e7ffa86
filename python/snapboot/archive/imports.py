"""Imports from the boot archive: finds a module's file, and its code.

Python's own loaders get the result, and do the rest: after its import a module is as it would be without the archive.

The archive must not fail an import: `guard` calls all of its code during imports. If that raises, Python does the import, and the archive
is not used any more. A loader, a finder or a method that Python has not made is left to Python from the start.
"""

import _frozen_importlib
import _frozen_importlib_external as external
import _imp
import posix
import sys

_bootstrap = _frozen_importlib  # the name in Python's own loader, since debuggers show the line that calls it
SOURCE_LOADER = external.SourceFileLoader
# Paths of the library relative to this folder: after `make install`, and in the build of a source tree.
PLACES = ("/../../..", "/../../../target/release")
LIBRARY = "libsnapboot_python.so"
# Modules with the compiler of regular expressions, from Python 3.11 on and before.
COMPILERS = ("re._compiler", "sre_compile")
# Python's own import function that looks for a module in order to run it, two calls above a finder.
IMPORT = _frozen_importlib._find_and_load_unlocked.__code__
FINDING = _frozen_importlib._find_spec.__code__
OWN_FILE = external.cache_from_source.__code__.co_filename
# The module with the scanner of JSON.
JSON = "json.scanner"
# Modules with parsers of YAML and TOML.
PARSERS = ("yaml", "tomllib._parser", "tomli._parser")
# The module that finds installed distributions.
METADATA = "importlib.metadata"
# Fewer modules are imported faster than the time savers for many are set up.
MANY = 4
THAWED_PROGRAM = globals().get("THAWED_PROGRAM")  # returns the program of a thawed process; None in an ordinary start


def built_in(name):
    """Returns a module that is built into the interpreter. If it was not in `sys.modules` before, it is not registered there, and is
    created without an import search, which would take a tenth of the time of opening the archive."""
    if name in sys.modules:
        return sys.modules[name]
    module = _imp.create_builtin(_frozen_importlib.ModuleSpec(name, _frozen_importlib.BuiltinImporter))
    _imp.exec_builtin(module)
    # Before CPython 3.12 some modules register themselves.
    sys.modules.pop(name, None)
    return module


def at_exit(function, *arguments):
    """Calls the function after the program's exit handlers."""
    # Before CPython 3.10 each import of an unregistered module makes another list of handlers, which replaces this one. A thawed process
    # ends in its front end, which runs the handlers of a registered one.
    atexit = built_in("atexit") if sys.version_info >= (3, 10) and THAWED_PROGRAM is None else __import__("atexit")
    atexit.register(function, *arguments)


class Importing:
    """The imports in progress, one inside another."""

    def __init__(self):
        self._gc = built_in("gc")
        self.isenabled, self.enable, self.disable = self._gc.isenabled, self._gc.enable, self._gc.disable
        self.depth = 0
        # How many modules were imported before the collector is set up. None: it will not be.
        self._modules = None
        self._collector = None
        # Functions to call right after a module was executed, by the module's name; and modules that were being executed when a call was
        # requested.
        self.after = {}
        self.unfinished = []
        # Creates the method of a loader that compiles: see compiling.py.
        self.compiling = None

    def do_after(self, module, function):
        """Calls a function with a module that was executed; with one that is still being executed, when the next module begins."""
        if getattr(getattr(module, "__spec__", None), "_initializing", False):
            self.unfinished.append((module, function))
        else:
            function(module)

    def is_going_on(self):
        """Returns whether a module is being imported."""
        return self.depth > 0

    def collect_less(self, make_collector):
        """Delays collections if that is worth it. make_collector: creates the Collector from the module `gc`."""
        self._modules = 0
        self._make_collector = make_collector

    def begin(self):
        """A module is about to be executed."""
        self.depth += 1
        if self.unfinished:
            modules, self.unfinished = self.unfinished, []
            for module, function in modules:
                self.do_after(module, function)
        if self._modules is not None:
            self._modules += 1
            if self._modules == MANY:
                self._modules = None
                self._collector = self._make_collector(self._gc)
                self._collector.hold()
        elif self.depth == 1 and self._collector is not None:
            self._collector.hold()

    def end(self):
        """It has been executed."""
        self.depth -= 1
        if self.depth == 0 and self._collector is not None:
            self._collector.give_back()

    def has_run(self, name, module):
        """The module of that name has been executed without an error."""
        if name in self.after:
            self.after[name](module)

    def stop(self):
        """Restores collections to their state without the archive."""
        self._modules = None
        collector, self._collector = self._collector, None
        if collector is not None:
            collector.give_back()
            collector.bring_back()


importing = Importing()


class Guard:
    """Calls the archive's code in the middle of a program's imports."""

    # Whether there was an error: then Python imports without the archive.
    has_failed = False

    def call(self, function, *arguments):
        """Returns the function's result; None if it could not be called, or raised."""
        if self.has_failed:
            return None
        try:
            return function(*arguments)
        except Exception as error:
            self.give_up(error)
        return None

    def give_up(self, error):
        """Leaves everything that follows to Python."""
        self.has_failed = True
        try:
            importing.stop()
            if variable("SNAPBOOT_LOG") not in ("", "0"):
                sys.stderr.write("snapboot: the archive is left alone from here on: %s (%s)\n" % (error, type(error).__name__))
        except Exception:
            pass


guard = Guard()
# Attributes of a loader that do not affect its code: those that Python sets, and those that others wrap on a loader.
HARMLESS = {"name", "path", "get_code", "exec_module", "create_module"}


class Loader(SOURCE_LOADER):
    """The loader of a module whose code may be in the archive. It becomes an ordinary one once it is asked for the code."""

    def get_code(self, fullname):
        """See importlib.abc.InspectLoader."""
        source = guard.call(take_source, self, fullname)
        if source is None:
            return SOURCE_LOADER.get_code(self, fullname)
        code = guard.call(load, source, self.path)
        if code is not None:
            return code
        compiling = guard.call(importing.compiling, self)
        if compiling is None:
            return SOURCE_LOADER.get_code(self, fullname)
        self.source_to_code = compiling
        try:
            # Not through the loader's own attribute, which may lead back here.
            code = SOURCE_LOADER.get_code(self, fullname)
        finally:
            self.__dict__.pop("source_to_code", None)
        if code is not None and not compiling.has_warned:
            guard.call(lambda: source.keep(code, None if compiling.has_compiled else external.cache_from_source(self.path), self.path))
        return code

    def exec_module(self, module):
        """See importlib.abc.Loader."""
        if not is_usual():
            make_ordinary(self)
            return SOURCE_LOADER.exec_module(self, module)
        guard.call(importing.begin)
        try:
            code = self.get_code(module.__name__)
            if code is None:
                raise ImportError("cannot load module %r when get_code() returns None" % module.__name__)
            _bootstrap._call_with_frames_removed(exec, code, module.__dict__)
            guard.call(importing.has_run, self.name, module)
        finally:
            guard.call(importing.end)

    def __reduce_ex__(self, protocol):
        """See the module copy: a copy is ordinary."""
        make_ordinary(self)
        return self.__reduce_ex__(protocol)


# Each with the file that was found for it, by id: the loader itself shows nothing of the archive.
LOADERS = {}


def serve(loader, source):
    """Makes an ordinary loader get its code from the archive. source: the file that was found for it."""
    loader.__class__ = Loader
    LOADERS[id(loader)] = loader, source
    return loader


def make_ordinary(loader):
    """Turns a loader into what Python would have made. Returns the file that was found for it, or None."""
    if type(loader) is Loader:
        loader.__class__ = SOURCE_LOADER
    return LOADERS.pop(id(loader), (None, None))[1]


def take_source(loader, name):
    """Returns the file that the archive may have code for, and makes its loader ordinary; None: Python has to read it."""
    source = make_ordinary(loader)
    is_expected = source is not None and name == loader.name and loader.path == source.path and HARMLESS.issuperset(loader.__dict__)
    return source if is_expected and is_usual() else None


def load(source, path):
    """Returns the archived code of a file, or None. path: for the code's `co_filename`."""
    # A collection in between would find no garbage.
    collects = importing.isenabled()
    importing.disable()
    try:
        code = source.load(path)
        if code is not None:
            # As for compiled files: a folder may have been moved, with its archive.
            _imp._fix_co_filename(code, path)
        return code
    finally:
        if collects:
            importing.enable()


# Only `is` shows the difference between this class and the one that it replaces.
Loader.__name__ = Loader.__qualname__ = SOURCE_LOADER.__name__
Loader.__module__ = SOURCE_LOADER.__module__
# Tracebacks leave out the frames of Python's own import system, which they recognise by file name.
_imp._fix_co_filename(Loader.get_code.__code__, OWN_FILE)
_imp._fix_co_filename(Loader.exec_module.__code__, OWN_FILE)


def is_import(frame):
    """Returns whether the caller, in that frame, is Python's own import. A caller that only asks gets an ordinary loader."""
    if frame.f_code is not FINDING:  # the call that has opened the archive
        frame = frame.f_back
    return frame is not None and frame.f_code is FINDING and frame.f_back.f_code is IMPORT


# The methods that the archive replaces, in their state at Python's start, by class.
METHODS = [
    (SOURCE_LOADER, ("create_module", "exec_module", "get_code", "get_data", "get_filename", "path_stats", "source_to_code")),
    (external.FileFinder, ("__init__", "_fill_cache", "_get_spec", "find_spec")),
]
USUAL = [getattr(kind, name) for kind, names in METHODS for name in names]
PATH_FINDER = dict(vars(external.PathFinder))


def is_original():
    """Returns whether they are Python's own."""
    functions = USUAL + [getattr(value, "__func__", value) for value in PATH_FINDER.values() if isinstance(value, (classmethod,
        staticmethod))]
    return all(getattr(getattr(it, "__code__", None), "co_filename", OWN_FILE) == OWN_FILE for it in functions)


def usual_loaders():
    """Returns the `_loaders` of an unmodified finder of directories. Raises ImportError."""
    for hook in sys.path_hooks:
        if getattr(hook, "__module__", None) == "zipimport":
            continue  # slow to find out that a directory is no zip file
        try:
            finder = hook("/")
        except ImportError:
            continue
        expected = [(ending, loader) for loader, endings in external._get_supported_file_loaders() for ending in endings]
        if type(finder) is external.FileFinder and finder._loaders == expected:
            return finder._loaders
        break
    raise ImportError("something else imports modules from directories")


def is_usual():
    """Returns whether nobody has replaced methods of Python's own finders and loaders."""
    loader, finder = SOURCE_LOADER, external.FileFinder
    return [
        loader.create_module, loader.exec_module, loader.get_code, loader.get_data, loader.get_filename, loader.path_stats,
        loader.source_to_code, finder.__init__, finder._fill_cache, finder._get_spec, finder.find_spec,
    ] == USUAL and external.PathFinder.__dict__ == PATH_FINDER  # fmt: skip


class Search:
    """Finds modules, with the arguments of `find_spec`."""

    def __init__(self, native, own):
        """own: the finder on `sys.meta_path` that calls this."""
        # `snapboot explain` wraps the first and calls the second.
        self._find = native.find
        self.listen = native.listen
        self._own = own
        self._source_at = native.source_at
        self.invalidate_caches = native.begin_round
        self._loaders = usual_loaders()
        self._cache_tag = sys.implementation.cache_tag
        # A hook that somebody adds may want to see each directory.
        self._hooks = list(sys.path_hooks)

    def __call__(self, name, path=None, target=None):
        if guard.has_failed or not is_usual() or not self._stands_for_files():
            return None
        return guard.call(self._spec, sys._getframe(1), name, path, target)

    def _stands_for_files(self):
        """Returns whether Python's finder of files would be asked next."""
        before = None
        for finder in sys.meta_path:
            if before is self._own:
                return finder is external.PathFinder
            before = finder
        return False

    def _spec(self, frame, name, path, target):
        entries = sys.path if path is None else path
        if type(entries) is not list:
            entries = list(entries)
        found = self._find(
            name.rpartition(".")[2], entries, sys.path_importer_cache, external.FileFinder, self._loaders, sys.path_hooks == self._hooks
        )
        if found is None:
            return None
        if found is False:
            try:
                spec = external.PathFinder.find_spec(name, path, target)
            except Exception:
                return None  # Python asks again, and reports the error
            if spec is not None and type(spec.loader) is SOURCE_LOADER and is_import(frame):
                source = self._source_at(spec.loader.path)
                if source is not None:
                    serve(spec.loader, source)
            return spec
        if found.is_extension:
            loader = external.ExtensionFileLoader(name, found.path)
        else:
            loader = SOURCE_LOADER(name, found.path)
            if is_import(frame):
                serve(loader, found)
        folder = found.folder
        spec = _frozen_importlib.ModuleSpec(name, loader, origin=found.path, is_package=folder is not None)
        spec._set_fileattr = True
        if folder is not None:
            spec.submodule_search_locations.append(folder)
        # A program may change these while it runs.
        if sys.pycache_prefix is None and sys.implementation.cache_tag == self._cache_tag:
            spec._cached = found.cached
        return spec


def load_library(folder):
    """Returns the native part, as an unregistered module. Raises ImportError."""
    for place in PLACES:
        path = folder + place + "/" + LIBRARY
        if posix.access(path, posix.F_OK):
            check_whole(path)
            module = _imp.create_dynamic(_frozen_importlib.ModuleSpec("snapboot_python", None, origin=path))
            _imp.exec_dynamic(module)
            return module
    raise ImportError("%s was expected above %s; reinstall Snapboot" % (LIBRARY, folder))


def check_whole(path):
    """Raises ImportError if a library was cut off: the process would crash. Its section headers come last, see elf(5)."""
    with open(path, "rb", 0) as file:
        header, size = file.read(64), posix.fstat(file.fileno()).st_size
    sections, each, count = (int.from_bytes(header[at:end], "little") for at, end in ((40, 48), (58, 60), (60, 62)))
    if len(header) < 64 or header[:4] != b"\x7fELF" or size < sections + each * count:
        raise ImportError("%s is not whole; reinstall Snapboot" % path)


def program():
    """Returns a path that identifies this program: its script's, or one that stands for a module or the interpreter itself."""
    if THAWED_PROGRAM is not None:
        return THAWED_PROGRAM()
    name = sys.argv[0] if sys.argv else ""
    if name == "-m":
        words = getattr(sys, "orig_argv", ())
        following = words[words.index("-m") + 1 :] if "-m" in words else ()
        return sys.prefix + "/" + (following[0] if following else "python")
    if name in ("", "-c", "-"):
        return sys.prefix + "/python"
    return name if name.startswith("/") else posix.getcwd() + "/" + name


def description():
    """Returns what code depends on besides its source."""
    parts = [sys.version, sys.implementation.cache_tag or "", "optimize %d" % sys.flags.optimize]
    if _imp.check_hash_based_pycs != "default":
        parts.append("check hashes " + _imp.check_hash_based_pycs)
    own = description.__code__
    if hasattr(own, "co_positions") and all(position[2] is None for position in own.co_positions()):
        parts.append("no debug ranges")
    return " ".join(parts)


def tag():
    """Returns the text between a module's name and `pyc`; None if Python does not provide it."""
    cache_tag = sys.implementation.cache_tag
    if cache_tag is None:
        return None
    level = sys.flags.optimize
    return ".%s.opt-%d." % (cache_tag, level) if level else ".%s." % cache_tag


def after(names, function):
    """Calls a function with each module of those names: now, or right after its import."""
    for name in names:
        importing.after[name] = function
        if name in sys.modules:
            guard.call(importing.do_after, sys.modules[name], function)


def variable(name):
    """Returns the value that the process was started with; empty if it is not set."""
    return posix.environ.get(name.encode(), b"").decode("utf-8", "backslashreplace")


def finder(own, folder, run):
    """Opens the archive, or prepares to create it. Returns the finder of modules. Raises ImportError if there is no archive.

    own: the finder on `sys.meta_path`. run: runs another module of this folder, and returns its namespace.
    """
    if not is_original():
        raise ImportError("something has replaced what imports modules before the archive could be opened")
    native = load_library(folder)

    def first_compiling(loader):
        importing.compiling = run(folder, "compiling")["Compiling"]
        return importing.compiling(loader)

    importing.compiling = first_compiling
    context = description()
    reason = native.open(program(), context, _imp.extension_suffixes(), tag(), finder.__code__)
    if reason is not None:
        raise ImportError(reason)
    own.flush = native.flush
    if own.when_calm is not None:
        native.when_calm(own.when_calm)
    if variable("SNAPBOOT_LOG") not in ("", "0"):
        run(folder, "messages")["name_unknown_switches"](variable)
    if variable("SNAPBOOT_STATS") == "1":
        at_exit(run(folder, "messages")["print_counts"], native)
    if native.is_on("patterns"):

        def install_patterns(module):
            run(folder, "patterns")["Patterns"](native, context, importing.is_going_on).install(module)

        after(COMPILERS, install_patterns)
    if native.is_on("data"):
        pause = (importing.isenabled, importing.disable, importing.enable)
        after((JSON,), lambda module: native.serve_json(module, "json " + sys.version, pause))
        after(PARSERS, lambda module: run(folder, "data")["serve"](native, module, pause))
        if own.has_opened is not None:
            own.has_opened()
    if native.is_on("metadata"):

        def install_entry_points(module):
            native.serve_entry_points(module.Distribution, lambda: run(folder, "metadata")["functions"](native, module, context))

        after((METADATA,), install_entry_points)
    if native.is_on("collector"):

        def make_collector(gc):
            collector = run(folder, "collector")["Collector"](gc, native, native.is_on("exit"), THAWED_PROGRAM is not None)
            if collector.sets_aside:  # the handler registered first is called last
                at_exit(guard.call, collector.end)
            return collector

        importing.collect_less(make_collector)
    return Search(native, own)
