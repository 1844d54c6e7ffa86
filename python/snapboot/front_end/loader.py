"""Loads the front end's modules, which are the files beside this one.

They are not registered in `sys.modules`, so the program finds there only what it would find in an ordinary start. For the same reason they
import only built-in modules and modules that the interpreter loads anyway at its start.
"""


def loader(folder):
    """Returns a function that loads a module of `folder` by name. Relative imports in such a module are private, all others ordinary."""
    import builtins
    import marshal
    import posix
    import sys

    modules = {}
    # A freeze boots several times: the first boot leaves its compiled code there.
    folder_of_freeze = posix.environ.get(b"SNAPBOOT_FREEZE_DIR")
    private = dict(builtins.__dict__)
    set_lazy_imports = getattr(sys, "set_lazy_imports", None)

    def read(path):
        descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            return posix.read(descriptor, posix.fstat(descriptor).st_size)
        finally:
            posix.close(descriptor)

    def code_of(name, path, text):
        known = folder_of_freeze + b"/front_end." + name.encode() if folder_of_freeze else None
        try:
            if known:
                return marshal.loads(read(known))
        except OSError:
            pass
        # Without docstrings: a thaw touches fewer pages.
        code = compile(read(path) if text is None else text, path, "exec", dont_inherit=True, optimize=2)
        if known:
            unfinished = b"%s.%d" % (known, posix.getpid())
            try:
                descriptor = posix.open(unfinished, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o600)
                posix.write(descriptor, marshal.dumps(code))
                posix.close(descriptor)
                posix.rename(unfinished, known)
            except OSError:
                pass  # the next boot compiles it again
        return code

    def load(name, text=None):
        """text: where it is no file, but a recipe's code."""
        if name not in modules:
            path = folder + "/" + name + ".py"
            module = modules[name] = type(sys)("snapboot.front_end." + name)
            module.__file__ = path
            module.__builtins__ = private
            # Where all imports are lazy (CPython 3.15), these must not be: the private modules could not be found later.
            lazy = sys.get_lazy_imports() if set_lazy_imports else None
            if lazy == "all":
                set_lazy_imports("normal")
            try:
                exec(code_of(name, path, text), module.__dict__)
            finally:
                if lazy == "all":
                    set_lazy_imports(lazy)
        return modules[name]

    def import_privately(name, globals=None, locals=None, fromlist=(), level=0):
        if level == 0:
            return __import__(name, globals, locals, fromlist, 0)
        if name:
            return load(name)
        package = type(sys)("snapboot.front_end")
        package.__dict__.update((wanted, load(wanted)) for wanted in fromlist)
        return package

    private["__import__"] = import_privately
    load.modules = modules
    return load


def start(folder):
    """Freezes the program that the request names. Returns in the thawed process, ready to run the program."""
    import sys

    known = set(sys.modules)
    load = loader(folder)
    freeze_run = load("freeze_run")
    for name in set(sys.modules) - known:
        del sys.modules[name]
    # Never freed after the thaw: freeing them would cost the new process time.
    freeze_run.KEPT += [sys._getframe(1).f_code, sys._getframe(2).f_code, folder]
    del known
    freeze_run.run(load)


if __name__ == "__main__":
    start(__file__.rpartition("/")[0])
