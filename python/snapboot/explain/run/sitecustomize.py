"""Records where the time of an ordinary start goes, for `snapboot explain`.

The folder of this file is on PYTHONPATH, so `site` imports it. It then removes itself, so that neither the program nor its children see it,
and runs the program's own `sitecustomize`. It records a list of spans that begin and end, which the last exit handler writes to the file
that SNAPBOOT_EXPLAIN names: entries that end with NUL, `begin=TIME KIND NAME` and `end=TIME DETAIL`, times in nanoseconds of the monotonic
clock. If SNAPBOOT_EXPLAIN_COUNT is set, system calls are counted from outside: then each entry passes its number to the kernel, as a
process group that cannot exist.

The parts of Python's import system are wrapped where Python itself looks them up at each import. A module that is already loaded is found
before that, at no cost. Each wrapper has the file name of the function that it wraps: tracebacks leave its frames out, and the boot archive
takes it for Python's own. No record is an object that the collector would count, or collections would happen elsewhere than in other
starts: they are a large part of some imports. And no function of this file is active while a module's body is executed: from 3.11 on
CPython maps its stack 16 KB at a time, and a body that calls functions right at such a boundary maps memory again and again, which one
frame more or less beneath it causes or prevents (8 of the 10 ms of one import).
"""

import _frozen_importlib as bootstrap
import _frozen_importlib_external as external
import gc
import posix
import sys
from _thread import get_ident
from time import perf_counter_ns as clock

OWN = "sitecustomize"
FILE = "SNAPBOOT_EXPLAIN"
COUNT = "SNAPBOOT_EXPLAIN_COUNT"
# No kernel gives a process so high a number.
FIRST_NUMBER = 1 << 30


def locking(lock, add, is_main, clock, watch):
    """Wraps the function that takes the lock of a module that is not loaded yet. watch: called with the first one."""
    is_first = True

    def __enter__(self):
        nonlocal is_first
        if not is_main():
            return lock(self)
        if is_first:
            is_first = False
            watch()
        add((clock(), "body", self._name))
        try:
            return lock(self)
        except BaseException:
            add((clock(), None, "failed"))
            raise

    return __enter__


def unlocking(unlock, add, is_main, clock):
    """Wraps the function that releases the lock: the module has been loaded, or there is an exception."""

    def __exit__(self, *raised):
        try:
            return unlock(self, *raised)
        finally:
            if is_main():
                add((clock(), None, "" if raised[0] is None else "failed"))

    return __exit__


def acquiring(acquire, add, is_main, clock, watch, held):
    """Wraps the method that takes a module's lock, where `_find_and_load` calls it (CPython 3.15). held: a list, to which it adds for
    each lock that the main thread takes the error that was being handled then, or None for a module that is already there."""
    is_first = True

    def recorded(self):
        nonlocal is_first
        if not is_main():
            return acquire(self)
        is_there = self.name in sys.modules
        if not is_there:
            if is_first:
                is_first = False
                watch()
            add((clock(), "body", self.name))
        try:
            taken = acquire(self)
        except BaseException:
            if not is_there:
                add((clock(), None, "failed"))
            raise
        held.append(None if is_there else (id(sys.exc_info()[1]),))
        return taken

    return recorded


def releasing(release, add, is_main, clock, held):
    """Wraps the method that releases it: the module has been loaded, or another error is being handled than when the lock was taken."""

    def recorded(self):
        try:
            return release(self)
        finally:
            before = held.pop() if held and is_main() else None
            if before is not None:
                add((clock(), None, "" if before == (id(sys.exc_info()[1]),) else "failed"))

    return recorded


def searching(find, add, is_main, clock, spans, meet):
    """Wraps the function that looks for a module. meet: called with the position in spans, and the class of the loader."""

    def _find_spec(name, path, target=None):
        if not is_main():
            return find(name, path, target)
        place = len(spans)
        add((clock(), "search", name))
        origin = ""
        try:
            spec = find(name, path, target)
            origin = getattr(spec, "origin", None) or ""
            meet(place, type(getattr(spec, "loader", None)))
            return spec
        finally:
            add((clock(), None, origin))

    return _find_spec


def reading(read, add, is_main, clock, kind="code"):
    """Wraps the function that reads its code. kind: of part."""

    def get_code(self, name):
        if not is_main():
            return read(self, name)
        add((clock(), kind, name))
        try:
            return read(self, name)
        finally:
            add((clock(), None, ""))

    return get_code


def linking(link, add, is_main, clock):
    """Wraps the function that loads a shared library."""

    def create_module(self, spec):
        if not is_main():
            return link(self, spec)
        add((clock(), "code", spec.name))
        try:
            return link(self, spec)
        finally:
            add((clock(), None, ""))

    return create_module


def opening(open, add, is_main, clock, watch):
    """Wraps a method of the finder that opens the boot archive and has no argument then. watch: called when it is open."""

    def recorded():
        if not is_main():
            return open()
        add((clock(), "archive", "opening the boot archive"))
        try:
            open()
            watch()
        finally:
            add((clock(), None, ""))

    return recorded


def finding(find, spans):
    """Wraps the function that looks for a module in the boot archive. Tells the Spans whether it was there."""

    def found(tail, entries, importers, finder, loaders, usual):
        source = find(tail, entries, importers, finder, loaders, usual)
        if spans.is_main():
            spans.answered = bool(source)
        return source

    return found


def archive():
    """Returns the finder of the boot archive, or None."""
    return next((finder for finder in sys.meta_path if hasattr(finder, "is_of_archive")), None)


def take_out(folder):
    """Undoes everything this file has caused. Returns the file to write to, None in a second interpreter of the process, and whether system
    calls are counted."""
    import os

    own, _, before = os.environ.get("PYTHONPATH", "").partition(os.pathsep)
    if own == folder:
        if before:
            os.environ["PYTHONPATH"] = before
        else:
            del os.environ["PYTHONPATH"]
    sys.path.remove(folder)
    sys.path_importer_cache.pop(folder, None)
    del sys.modules[OWN]
    return os.environ.pop(FILE, None), os.environ.pop(COUNT, None) is not None


def shown(path):
    """Returns a path of either type as text."""
    return path.decode("utf-8", "surrogateescape") if isinstance(path, bytes) else str(path)


def entries_of(path):
    """Returns how many entries the file already has."""
    try:
        with open(path, "rb") as file:
            return file.read().count(b"\0")
    except OSError:
        return 0


class Spans:
    """The records of this process' main thread."""

    def __init__(self, path, counts):
        """path: the file to write to. counts: whether system calls are counted from outside."""
        self.path, self.counts, self.process = path, counts, posix.getpid()
        main, spans = get_ident(), []
        first = entries_of(path) if counts else 0

        def add_and_count(span):
            try:
                posix.getpgid(FIRST_NUMBER + first + len(spans) // 3)
            except OSError:
                pass
            spans.extend(span)

        def collect(phase, _):
            if get_ident() == main:
                add((clock(), "collector", "garbage collection") if phase == "start" else (clock(), None, ""))

        self.add = add = add_and_count if counts else spans.extend
        self.is_main = lambda: get_ident() == main
        self.spans, self.collect, self.is_open = spans, collect, False
        self.is_written = False
        # Classes of loaders that were already wrapped.
        self.met = set()
        # Whether the boot archive answered the last search.
        self.answered = False

    def watch(self):
        """Records imports and collections from now on. The first import starts recording its parts: a start may have none."""
        gc.callbacks.append(self.collect)
        for owner in filter(None, (posix, sys.modules.get("os"))):
            for name in ("_exit", "abort"):
                setattr(owner, name, self.recording_end(getattr(owner, name)))
            for name in ("execv", "execve"):
                setattr(owner, name, self.recording_end(getattr(owner, name), executes=True))
        if "_ModuleLockManager" in bootstrap._find_and_load.__code__.co_names:
            lock = bootstrap._ModuleLockManager
            self.wrap(lock, "__enter__", lambda *parts: locking(*parts, self.watch_imports))
            self.wrap(lock, "__exit__", unlocking)
        else:
            lock, held = bootstrap._ModuleLock, []
            self.wrap(lock, "acquire", lambda *parts: acquiring(*parts, self.watch_imports, held))
            self.wrap(lock, "release", lambda *parts: releasing(*parts, held))

    def watch_imports(self):
        """See watch."""
        self.wrap(external.ExtensionFileLoader, "create_module", linking)
        # An open archive has already seen these unmodified, and would not serve anything any more.
        if "find_spec" not in getattr(archive(), "__dict__", ()):
            self.wrap(bootstrap, "_find_spec", lambda *parts: searching(*parts, self.spans, self.meet))
            self.wrap(external.SourceLoader, "get_code", reading)
            self.wrap(external.SourcelessFileLoader, "get_code", reading)

    def meet(self, place, kind):
        """Records a loader that gets the code of sources by itself, as the boot archive's does."""
        if self.answered:
            self.answered = False
            self.spans[place + 1] = "lookup"
        if kind not in self.met:
            self.met.add(kind)
            if issubclass(kind, external.SourceLoader) and "get_code" in kind.__dict__ and kind is not external.SourceLoader:
                # Work that it leaves to Python is a part of it.
                is_of_archive = kind.__module__ == external.SourceLoader.__module__
                self.wrap(kind, "get_code", lambda *parts: reading(*parts, "stored" if is_of_archive else "code"))

    def watch_archive(self):
        """Records the opening of the boot archive, and its answers, if there is one that is still to be opened."""
        finder = archive()
        if finder is not None:
            self.wrap(finder, "open", lambda *parts: opening(*parts, lambda: self.watch_opened(finder)))

    def watch_opened(self, finder):
        """See watch_archive."""
        search = finder.__dict__.get("find_spec")
        if hasattr(search, "listen"):
            search._find = finding(search._find, self)
            search.listen(self.record_answer)

    def record_answer(self, name, took):
        """Records another answer of the boot archive, and its duration in nanoseconds."""
        if self.is_main():
            now = clock()
            self.add((now - took, "data", name))
            self.add((now, None, ""))

    def wrap(self, owner, attribute, wrapper):
        """Wraps a function."""
        before = getattr(owner, attribute)
        wrapped = wrapper(before, self.add, self.is_main, clock)
        wrapped.__code__ = wrapped.__code__.replace(co_filename=before.__code__.co_filename)
        setattr(owner, attribute, wrapped)

    def recording_end(self, end, executes=False):
        """Wraps a function that ends the process without its exit handlers, or executes another program: writes the records first. Takes
        that back if the process goes on."""

        def ending(*arguments, **named):
            was_written, size, is_open = self.is_written, len(self.spans), self.is_open
            end_of_file = self.write(shown(arguments[0]) if executes and arguments else None, ends_early=True)
            try:
                return end(*arguments, **named)
            finally:
                if self.is_written and not was_written:
                    del self.spans[size:]
                    self.is_written, self.is_open = False, is_open
                    gc.callbacks.append(self.collect)
                    posix.truncate(self.path, end_of_file)

        return ending

    def step(self, kind, name, begun=None):
        """Ends the previous step, if any, and begins one."""
        if self.is_open:
            self.add((clock(), None, ""))
        self.is_open = True
        self.add((clock() if begun is None else begun, kind, name))

    def write(self, executed=None, ends_early=False):
        """Ends the last step, and writes all of them. executed: the program that the process executes. ends_early: steps may still be open.
        Returns the position in the file."""
        if posix.getpid() != self.process or self.is_written:
            return 0  # a forked child
        self.is_written = True
        if ends_early:
            kinds = self.spans[1::3]
            for _ in range(len(kinds) - 2 * kinds.count(None)):
                self.add((clock(), None, ""))
            self.is_open = False
        self.step("other", "measuring: writing")
        gc.callbacks.remove(self.collect)
        entries = [
            "begin=%d %s %s\0" % (time, kind, name) if kind else "end=%d %s\0" % (time, name)
            for time, kind, name in zip(*[iter(self.spans)] * 3)
        ]
        descriptor = posix.open(self.path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC, 0o600)
        if executed is not None:
            entries.append("executed=%s\0" % executed)
        begin = posix.fstat(descriptor).st_size
        text = "".join(entries).encode("utf-8", "surrogateescape")
        while text:
            text = text[posix.write(descriptor, text) :]
        if self.counts:
            self.add((0, None, ""))
        posix.write(descriptor, b"end=%d \0" % clock())
        posix.close(descriptor)
        return begin


def watch_ordinary(path, counts, begun):
    """Records times from now on, up to the last exit handler. begun: when this file was begun. Returns the Spans."""
    import atexit

    spans = Spans(path, counts)
    spans.step("other", "measuring: setting up", begun)
    register, unregister = atexit.register, atexit.unregister
    ended = []

    def ending():
        if posix.getpid() == spans.process and not ended:
            ended.append(True)
            spans.step("exit", "exit handlers")

    def register_and_end_first(function, *arguments, **named):
        register(function, *arguments, **named)
        # The handler registered last is called first.
        unregister(ending)
        register(ending)
        return function

    # The handler registered first is called last.
    register(spans.write)
    register(ending)
    atexit.register = register_and_end_first
    spans.watch()
    spans.step("main", "__main__")
    return spans


def watch_thawed(path):
    """Does the same in a thawed process, whose front end reports its steps. path: to be appended to. Returns the Spans."""
    begun = clock()
    counts = posix.environ.pop(COUNT.encode(), None) is not None
    if "os" in sys.modules:
        sys.modules["os"].environ._data.pop(COUNT.encode(), None)
    posix.unsetenv(COUNT)
    spans = Spans(path, counts)
    spans.step("other", "measuring: setting up", begun)
    spans.watch()
    spans.step("context", "search path, arguments")
    return spans


def start():
    """Called because `site` imports this file."""
    begun = clock()
    path, counts = take_out(__file__.rpartition("/")[0])
    spans = None
    if path is not None and sys.version_info >= (3, 8):
        spans = watch_ordinary(path, counts, begun)
    try:
        import sitecustomize  # noqa: F401
    finally:
        if spans is not None:
            spans.watch_archive()


if __name__ == OWN:
    start()
