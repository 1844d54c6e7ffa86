"""Regular expressions that are compiled while modules are imported: the archive holds the output of `re`'s compiler.

The arguments that it passes to `_sre` depend only on the pattern, its flags and the version of Python. To get them, a private copy of the
compiler compiles each new pattern a second time. A pattern with a warning is not kept, so that each start warns again. Nor are patterns of
a module that has made others in each start so far: from a set, for example, whose order differs.
"""

import _frozen_importlib_external as external
import marshal
import posix
import sys

# Modules that the private copy of the compiler needs copies of, too: they warn, or pass on.
PRIVATE = ("re._parser", "sre_parse")
# SRE_FLAG_LOCALE and SRE_FLAG_DEBUG of Python's own sre_constants.h: patterns for a locale, or printed ones.
SKIPPED_FLAGS = 4 | 128
# The number of starts in which a module's patterns are kept. One start may have been killed, or have made only some of them.
STARTS = 3


class Patterns:
    """The compiler of `re`, served from the archive."""

    def __init__(self, native, context, is_importing):
        """is_importing: returns whether a module is being imported. Patterns compiled later may be compiled only once."""
        self._native = native
        self._context = context
        self._is_importing = is_importing
        self._copy = None
        # Whether patterns are kept, by the file of the module that makes them.
        self._kept = {}

    def install(self, compiler):
        """Makes the functions of `re` use it. compiler: the module, just executed."""

        def keep(name, pattern, flags):
            if flags is not None and flags & SKIPPED_FLAGS:
                return
            if not self._is_kept(sys._getframe(1)):
                return
            if self._copy is None:
                self._copy = Copy(compiler)
            arguments = self._copy.compile(pattern, 0 if flags is None else flags)
            if arguments is not None and not arguments[0] & SKIPPED_FLAGS:
                self._native.store(name, marshal.dumps(arguments), self._context)

        compile = self._native.compile
        compiler.compile = compile(compiler.compile, compiler._sre.compile, self._context, self._is_importing, keep)

    def _is_kept(self, frame):
        """Returns whether the archive should get a new pattern made in that frame, or below a module's body."""
        while frame is not None and frame.f_code.co_name != "<module>":
            frame = frame.f_back
        if frame is None:
            return True
        path = frame.f_code.co_filename
        if path not in self._kept:
            self._kept[path] = self._begin(path)
        return self._kept[path]

    def _begin(self, path):
        """Records that this start makes new patterns. Returns whether it is one of the first starts that do."""
        try:
            status = posix.stat(path)
        except OSError:
            return True
        for number in range(STARTS):
            name = "patterns %d of %d %d " % (number, status.st_mtime_ns, status.st_size)
            name = name.encode() + path.encode("utf-8", "surrogateescape")
            if self._native.fetch(name, self._context) is None:
                self._native.store(name, b"made", self._context)
                return True
        return False


class Copy:
    """A copy of the compiler without effects and warnings."""

    def __init__(self, compiler):
        self._made = None
        self._warned = False
        self._modules = {}
        self._names = self._run(compiler.__spec__.name)

    def compile(self, pattern, flags):
        """Returns the arguments after the pattern that the compiler passes to `_sre.compile`; None if it has warned."""
        self._made, self._warned = None, False
        self._names["compile"](pattern, flags)
        return None if self._warned else self._made

    def _run(self, name):
        """Runs the module of that name once more. Returns its namespace."""
        if name not in self._modules:
            original = sys.modules[name].__spec__
            builtins = dict(vars(sys.modules["builtins"]), __import__=self._import)
            package = name.rpartition(".")[0]
            names = {"__name__": name, "__package__": package, "__builtins__": builtins}
            self._modules[name] = names
            loader = external.SourceFileLoader(name, original.origin)
            exec(loader.get_code(name), names)
        return self._modules[name]

    def _import(self, name, globals=None, locals=None, fromlist=(), level=0):
        if name == "_sre" and level == 0:
            return self._sre()
        if name == "warnings" and level == 0:
            return self._stand_in(warn=self._warn)
        if name in PRIVATE:
            return self._stand_in(**self._run(name))
        if level == 1 and not name:
            return self._stand_in(**{wanted: self._stand_in(**self._run("re." + wanted)) for wanted in fromlist})
        return __import__(name, globals, locals, fromlist, level)

    def _sre(self):
        sre = __import__("_sre")
        return self._stand_in(**dict(vars(sre), compile=self._make))

    def _make(self, pattern, *arguments):
        flags, code, *rest = arguments
        # The names of constants are for people.
        self._made = (int(flags), list(map(int, code)), *rest)

    def _warn(self, *_, **__):
        self._warned = True

    def _stand_in(self, **names):
        module = type(sys)(names.get("__name__", "stand_in"))
        module.__dict__.update(names)
        return module
