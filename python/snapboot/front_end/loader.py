"""The loader of the front end's modules, which are the files beside this one.

They are loaded without being registered in `sys.modules`, so that the program finds there only what it would find in an
ordinary start. For the same reason they import nothing but what the interpreter has loaded anyway at its start, and what is
built into it.
"""


def loader(folder):
    """Returns what loads a module of `folder` by its name; relative imports in it are private, all others ordinary."""
    import builtins
    import marshal
    import posix
    import sys

    modules = {}
    # A freeze boots several times: the first boot leaves there what it has compiled.
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
        # Without docstrings: what lies in between is what a thaw has to touch.
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
            # Where all imports are to be lazy (CPython 3.15), these are not: nobody would find the private ones later.
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
    return load


def start(folder):
    """Freezes the program that the request names. Returns in the thawed process, with the program about to be run."""
    import sys

    known = set(sys.modules)
    load = loader(folder)
    freeze_run = load("freeze_run")
    for name in set(sys.modules) - known:
        del sys.modules[name]
    # Not to be freed after the thaw: that would only cost the new process time.
    freeze_run.KEPT += [sys._getframe(1).f_code, sys._getframe(2).f_code, folder]
    del known
    freeze_run.run(load)


if __name__ == "__main__":
    start(__file__.rpartition("/")[0])
