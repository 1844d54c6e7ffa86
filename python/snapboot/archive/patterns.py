"""Regular expressions that are compiled while modules are imported: what the compiler of `re` made of them lies in the archive.

What it passes to `_sre` depends on the pattern, its flags and the version of Python alone. To get hold of that, a pattern that the
archive does not have is compiled a second time, by a private copy of the compiler. A pattern that is warned of is not kept: each
start warns again. Nor is one of a module that has made others at each start so far: from a set, for example, whose order differs.
"""

import _frozen_importlib_external as external
import marshal
import posix
import sys

# The modules that a private copy of the compiler has copies of, too: they warn, or hand over.
PRIVATE = ("re._parser", "sre_parse")
# SRE_FLAG_LOCALE and SRE_FLAG_DEBUG of Python's own sre_constants.h: what is compiled for a locale, or printed.
SKIPPED_FLAGS = 4 | 128
# In so many starts what a module makes is kept. One may have been killed, or have made only some of it.
STARTS = 3


class Patterns:
    """The compiler of `re`, with the archive before it."""

    def __init__(self, native, context, is_importing):
        """is_importing: says whether a module is being imported. What a program compiles later it may compile only once."""
        self._native = native
        self._context = context
        self._is_importing = is_importing
        self._copy = None
        # Whether patterns are kept, by the file of the module that makes them.
        self._kept = {}

    def install(self, compiler):
        """Has the functions of `re` use it. compiler: the module, just run."""

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
        """Whether the archive is to have a new pattern that is made in that frame, or below a module's body."""
        while frame is not None and frame.f_code.co_name != "<module>":
            frame = frame.f_back
        if frame is None:
            return True
        path = frame.f_code.co_filename
        if path not in self._kept:
            self._kept[path] = self._begin(path)
        return self._kept[path]

    def _begin(self, path):
        """Notes that this start makes patterns that the archive does not have. Returns whether it is one of the first that do."""
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
    """A copy of the compiler that makes nothing and warns nobody."""

    def __init__(self, compiler):
        self._made = None
        self._warned = False
        self._modules = {}
        self._names = self._run(compiler.__spec__.name)

    def compile(self, pattern, flags):
        """What the compiler passes to `_sre.compile` behind the pattern; None where it has warned."""
        self._made, self._warned = None, False
        self._names["compile"](pattern, flags)
        return None if self._warned else self._made

    def _run(self, name):
        """Runs the module of that name once more. Returns its names."""
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
