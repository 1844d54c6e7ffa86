"""Lazy imports, for those who have asked for them: `snapboot run --lazy`.

A module is imported lazily when it is known that its import changes nothing outside itself. So in the first start each import is done
where it stands, and what is learnt of a module is kept in the archive, for its source as it is. From the second start on the imports of
the main part are lazy, and those of modules that are known and imported all the same: their code is changed then, so much of it in a
start. An import of a module that is not known, or whose import has effects, is done where it stands.
"""

import _frozen_importlib_external as external
import marshal
import posix
import sys

# So much source (bytes) is changed in one start, the main part's not counted: it takes far longer than reading compiled files.
MOST = 1 << 19
IGNORE_COOKIE = 0x10  # PyCF_IGNORE_COOKIE: what -c is given is text, not a file
# The first releases of CPython 3.13 and later ones keep the source of -c for tracebacks.
CODE_IN_LINECACHE = sys.version_info >= (3, 13)


class Filter:
    """Which modules may be imported lazily."""

    def __init__(self, text):
        words = [word.strip() for word in text.split(",")]
        self._lazy = [word.split("*") for word in words if word and not word.startswith("!")]
        self._eager = [word[1:].split("*") for word in words if word.startswith("!")]

    def allows(self, name):
        """Whether that module may be. A pattern is for the modules inside a package, too."""
        names = [name]
        while "." in name:
            name = name.rpartition(".")[0]
            names.append(name)
        return not any_fits(self._eager, names) and (not self._lazy or any_fits(self._lazy, names))


def any_fits(patterns, names):
    """Whether one of the patterns fits one of the names."""
    return any(fits(pattern, name) for pattern in patterns for name in names)


def fits(pattern, name):
    """Whether a name has these parts, with anything between them."""
    if len(pattern) == 1:
        return name == pattern[0]
    first, *middle, last = pattern
    if not name.startswith(first) or not name.endswith(last) or len(name) < len(first) + len(last):
        return False
    at = len(first)
    for part in middle:
        at = name.find(part, at, len(name) - len(last))
        if at < 0:
            return False
        at += len(part)
    return True


class Lazy:
    """Lazy imports of this process."""

    def __init__(self, text, folder, run, native, context):
        """text: the filter. folder, run: where the other modules lie, and what runs one. context: of code and of what is learnt."""
        self._filter = Filter(text)
        self._folder = folder
        self._run = run
        self._native = native
        self._context = context
        self._told = set()
        self._tells = posix.environ.get(b"SNAPBOOT_LOG", b"") not in (b"", b"0")
        self._known = {}  # for each module whether it may be imported lazily
        self._effects = None
        self._left = MOST
        self._begun = []  # names of modules that are watched, and the errors that were being handled
        self._compile = None
        self.names = names = run(folder, "lazy_names")["Names"](self._is_lazy)
        builtins = sys.modules["builtins"].__dict__
        builtins["__snapboot_eager__"] = names.eager
        builtins["__snapboot_load__"] = names.load
        builtins["__snapboot_unloaded__"] = names.unloaded
        builtins["__snapboot_arguments__"] = names.arguments
        builtins["__snapboot_reveal__"] = names.reveal
        typing = sys.modules.get("typing")
        if typing is not None:
            # A .pth file may have imported it before the archive was open: then its code is as it was.
            typing.__dict__["eval"] = names.evaluate
        native.run_main(self.main)

    # For the loader, whose frames these calls are to be known as: tracebacks leave them out.

    def is_to_change(self, name, size):
        """Whether code is to be changed that the archive does not have. size: of the module's source (bytes)."""
        if self._left <= 0 or self._effect(name) is None:
            return False
        self._left -= size
        return True

    def changed(self, loader, code, made_from):
        """The code of a module with lazy imports, and the file besides its source that it was made from."""
        other = self._changed(lambda: loader.get_data(loader.path), loader.path)
        return (code, made_from) if other is None else (other, None)

    def begin(self, name):
        """A module is about to be run."""
        if self._effect(name) is None:
            if self._effects is None:
                process_state = self._process_state()
                self._effects = self._run(self._folder, "lazy_effects")["Effects"](process_state["State"])
            self._effects.begin(name)
            self._begun.append((name, sys.exc_info()[1]))

    def end(self, name, source):
        """It has been run, or could not. source: its file, as it was found."""
        if self._begun and self._begun[-1][0] == name:
            error = self._begun.pop()[1]
            found = ", ".join(self._effects.end())
            if sys.exc_info()[1] is error:
                self._native.store(key_of(name), found.encode("utf-8", "replace"), self._context, source)
                if found:
                    self._tell("%s will be imported where it stands: it %s" % (name, found))
            if not self._begun:
                self._effects.stop()
                self._effects = None
        self.names.has_been_run(name)

    def forget(self):
        """What has just been changed is no effect of a module."""
        if self._effects is not None:
            self._effects.forget()

    def hint(self):
        """To be called at exit. Says what may be wrong, if the program has failed and names were loaded late."""
        has_failed = (getattr(sys, "last_exc", None) or getattr(sys, "last_type", None)) is not None
        if self.names.loaded and has_failed and sys.stderr is not None:
            sys.stderr.write(
                "snapboot: this start had lazy imports. If the program does not fail without --lazy, SNAPBOOT_LOG=1 tells what is not"
                " lazy; --lazy='!NAME' has the module NAME imported where it stands\n"
            )

    def is_main(self, frame):
        """Whether the frame is that of a search for the main part of `python -m`."""
        if frame.f_code.co_name != "find_spec":
            return False
        frame = frame.f_back
        while frame is not None and frame.f_code.co_name in ("_get_module_details", "_get_main_module_details"):
            frame = frame.f_back
        return frame is not None and frame.f_code.co_name == "_run_module_as_main"

    # For the main part.

    def main(self, event, value):
        """The code and the names of the main part that is about to be run, or None: Python has to run it. See audit.rs."""
        if sys.flags.inspect or sys.flags.interactive or posix.environ.get(b"PYTHONINSPECT"):
            return None
        module = sys.modules.get("__main__")
        names = module.__dict__
        try:
            code = self._script(value) if event == "cpython.run_file" else self._text(value)
        except Exception:
            return None
        if code is None:
            return None
        if event == "cpython.run_file":
            names["__file__"] = value
            names["__cached__"] = None
            names["__loader__"] = external.SourceFileLoader("__main__", value)
        elif CODE_IN_LINECACHE:
            import linecache

            key = code if hasattr(linecache, "_interactive_cache") else "<string>"
            linecache._register_code(key, value, "<string>")
        return code, names

    def _script(self, path):
        absolute = path if path.startswith("/") else posix.getcwd() + "/" + path
        source = self._native.source_at(absolute)
        if source is None:
            return None
        code = source.load(path)
        if code is None or code.co_filename != path:
            with open(path, "rb") as file:
                text = file.read()
            if path.endswith(".pyc") or text[:2] == external.MAGIC_NUMBER[:2]:
                return None
            code = self._changed(lambda: text, path)
            if code is not None:
                source.keep(code, None, path)
        return code

    def _text(self, text):
        key = b"-c " + text.encode()
        known = self._native.fetch(key, self._context)
        if known is not None:
            return marshal.loads(known)
        code = self._changed(lambda: text, "<string>", IGNORE_COOKIE)
        if code is not None:
            self._native.store(key, marshal.dumps(code), self._context)
        return code

    # Underneath.

    def _changed(self, source, path, flags=0):
        try:
            if self._compile is None:
                self._compile = self._run(self._folder, "lazy_code")["compile_lazily"]
            return self._compile(source(), path, flags)
        except Exception:
            return None  # what it is, Python says

    def _is_lazy(self, full, member):
        known = self._known.get(full)
        if known is None:
            known = self._known[full] = self._may_be(full)
        if not known or not member:
            return known
        # What is imported from a package may be a module in it, and is one if the package is there without it.
        clean = self._has_no_effect("%s.%s" % (full, member))
        return clean is not False and (clean or full not in sys.modules)

    def _may_be(self, full):
        if not self._filter.allows(full):
            return False
        name, found = full, True
        while name and found:
            # What a module changes that is loaded is done.
            found = name in sys.modules or self._has_no_effect(name) is True
            name = name.rpartition(".")[0]
        return found

    def _has_no_effect(self, name):
        """None: not known."""
        effect = self._effect(name)
        if effect is None:
            return None
        if effect:
            self._tell("%s is imported where it stands: it %s" % (name, effect.decode()))
        return not effect

    def _effect(self, name):
        """What the import of a module has changed outside it, in words (bytes). None: not known."""
        return self._native.fetch(key_of(name), self._context)

    def _tell(self, text):
        if self._tells and text not in self._told:
            self._told.add(text)
            # Not by sys.stderr, which is watched.
            posix.write(2, ("snapboot: lazy imports: %s\n" % text).encode("utf-8", "backslashreplace"))

    def _process_state(self):
        """What training runs of the front end look at, too."""
        folder = self._folder.rpartition("/")[0] + "/front_end"
        original = sys.modules["builtins"].__import__

        def import_(name, globals=None, locals=None, fromlist=(), level=0):
            if level == 1:
                stand_in = type(sys)(name)
                stand_in.__dict__.update(self._run(folder, name))
                return stand_in
            return original(name, globals, locals, fromlist, level)

        return self._run(
            folder, "process_state", __builtins__=dict(sys.modules["builtins"].__dict__, __import__=import_)
        )


def key_of(name):
    """What is known of a module is in the archive under this name."""
    return b"module " + name.encode("utf-8", "surrogatepass")
