"""The script that `snapboot archive build` runs in Python: fills the archive that SNAPBOOT_ARCHIVE names with data that imports may need,
without running the program.

Arguments: the program's main script (or ""), its directory, further directories. It writes lines for the command to standard output: `phase
TEXT` for the current action, `note TEXT` for a message to the person.
"""

import _imp
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Folders from which an installed program imports nothing, or that are not Python's.
OTHERS = {"__pycache__", "node_modules", "test", "tests"}


def modules_below(directory, seen):
    """Yields the directories at and below `directory` from which modules can be imported, each with its source files, in order.

    seen: real paths of directories that were listed before; the new ones are added.
    """
    for path, folders, names in os.walk(directory):
        real = os.path.realpath(path)
        if real in seen:
            folders[:] = []
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if name.isidentifier() and name not in OTHERS or is_on_path(path, name))
        yield path, sorted(name for name in names if name.endswith(".py") and name[:-3].isidentifier())


def is_on_path(path, name):
    """Returns whether it is a directory of sys.path, whatever its name: `site-packages`, `lib-dynload`."""
    return os.path.join(path, name) in sys.path


class Builder:
    """Fills the archive."""

    def __init__(self, names, native, send):
        """names: those of imports.py. native: the native part, with the archive open. send: called with a line for the command."""
        self._names = names
        self._native = native
        self._send = send
        self._skipped = 0

    def run(self, directories):
        """directories: absolute paths, in the order in which modules are looked for."""
        seen, sources = set(), []
        for directory in directories:
            for path, names in modules_below(directory, seen):
                self._native.list_directory(path)
                sources += [path + "/" + name for name in names]
        if self._native.is_on("code"):
            for number, source in enumerate(sources):
                if number % 100 == 0:
                    self._send("phase compiling %d of %d" % (number + 1, len(sources)))
                self._compile(source)
        if self._skipped:
            self._send("note %d files cannot be compiled and were left out" % self._skipped)
        self._send("phase writing the archive")
        return self._native.flush()

    def _compile(self, path):
        source = self._native.source_at(path)
        if source is None:
            return
        # A program that imports it will give it its own name, which the code does not contain.
        loader = self._names["serve"](self._names["SOURCE_LOADER"]("any", path), source)
        try:
            loader.get_code("any")
        except Exception:
            self._skipped += 1  # not Python of this version: the program may never import it


def compile_own_files():
    """Compiles the files that each start runs, if they can be written: in a container's lower layers no start could do it later."""
    import compileall
    import py_compile

    compileall.compile_dir(HERE, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def run(name):
    """Runs another module of this folder. Returns its namespace."""
    names = {"__name__": "snapboot.archive." + name, "__file__": HERE + "/" + name + ".py"}
    with open(names["__file__"], encoding="utf-8") as file:
        exec(compile(file.read(), names["__file__"], "exec"), names)
    return names


def main():
    """Returns an exit status, or why there is no archive."""
    command = os.fdopen(os.dup(1), "w", 1)
    os.dup2(2, 1)
    script, *directories = sys.argv[1:]
    own = [os.path.dirname(script)] if script else []
    sys.path.remove(HERE)
    # No compiled files may appear beside the sources.
    sys.dont_write_bytecode = True
    try:
        run("run/sitecustomize")["check_head"]()
    except ImportError as error:
        return "snapboot: there is no archive to fill: %s" % error
    names = run("imports")
    names["importing"].compiling = run("compiling")["Compiling"]
    native = names["load_library"](HERE)
    reason = native.open(script or sys.executable, names["description"](), _imp.extension_suffixes(), names["tag"](), main.__code__)
    if reason is not None:
        return "snapboot: there is no archive to fill: " + reason
    paths = [os.path.abspath(path) for path in own + sys.path + directories if os.path.isdir(path)]
    reason = Builder(names, native, lambda line: print(line, file=command)).run(paths)
    compile_own_files()
    return reason and "snapboot: the archive was not written: " + reason


if __name__ == "__main__":
    sys.exit(main())
