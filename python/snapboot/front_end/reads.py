"""What the program reads of its environment and process while it boots, as far as only Python sees it, and who reads
it.

`snapboot freeze` makes inputs of these reads, and names the place that reads a withheld variable. The freezer
records reads through the C library. All of this is undone before the freeze. Most variables are shown to the program
only when it looks them up, so that an image does not contain the values of the others."""

import _imp
import posix
import sys

from . import dropped_reads, modules
from .channel import ALL_VARIABLES, EARLY, FACT, OF_FRONT_END, OF_PROGRAM, PHASE, VARIABLE, call
from .request import encode, read_file
from .start_form import HOST, SYSTEM


class Reads:
    """Records reads from construction until `stop()`.

    folder: the control directory. show: called with name and value of each variable that is shown on demand."""

    def __init__(self, folder, show):
        self._hidden, self._volatile = _on_demand(folder)
        self._folder = folder
        self._show = show
        self._names = {}  # (name, reader): place of the first read
        self._wholes = {}  # reader: place
        self._facts = {}  # (fact, number that it is of, reader): place
        self._early = {}  # (what, reader): place
        self.terminal = None  # as in the request
        self.system = {}  # what another host and kernel are called, as in the request
        self.more = None  # called for more variables when all are read: see evidence.py
        self.comparisons = None  # see watched_values.py
        self._written = set()
        self._functions = {}  # id of a function that notes: the original
        self._kept = []
        self._phase = OF_FRONT_END
        self._variables = Variables(posix.environ, self)
        self._put_in_place(posix.environ, self._variables)
        loaded = sys.modules.get("os")
        if loaded is not None:
            for name in ("getcwd", "getcwdb"):
                self.watch(loaded.__dict__, name, self._reads_folder)
            self.watch(loaded.__dict__, "uname", self._reads_names, self._names_of_system)
        # One of them loads each extension module.
        for name in ("exec_builtin", "exec_dynamic"):
            execute = _imp.__dict__[name]
            self.watch(_imp.__dict__, name, lambda frame, arguments: None, lambda module, execute=execute: self._executes(execute, module))
        self.tell_phase(OF_PROGRAM)

    def watch_values(self, comparisons):
        """Gives watched values to the program (watched_values.py)."""
        self.comparisons, plain = comparisons, self._variables.plain
        plain.update([(name, comparisons.watched(name, value)) for name, value in plain.items()])
        if HOST in self.system:
            self.system[HOST] = comparisons.watched(HOST, self.system[HOST])

    def tell_phase(self, who):
        """Tells the freezer, which records reads through the C library, who reads from now on. Returns who read
        before."""
        before, self._phase = self._phase, who
        call(PHASE, who)
        return before

    def stop(self, report, read_umask=False):
        """Removes the hooks and adds the recorded reads to the report.

        read_umask: whether the program set the umask only to read it."""
        self.tell_phase(OF_FRONT_END)
        self._put_in_place(self._variables, self._variables.plain)
        self._variables.noted = None
        for names in modules.all_names():
            for name in [name for name, value in names.items() if id(value) in self._functions]:
                names[name] = self._functions[id(names[name])]
        platform = sys.modules.get("platform")
        if getattr(platform, "_uname_cache", None) is not None:
            platform._uname_cache = None  # it holds the name of this host
        for (name, reader), place in self._names.items():
            report.add_event(VARIABLE, name, reader, place)
        for reader, place in self._wholes.items():
            report.add_event(ALL_VARIABLES, b"*", reader, place)
        if holds_temporary_files():
            report.add_event(FACT, "cwd", sys.modules["tempfile"].__file__, "tempfile")
        for (fact, of, reader), place in self._facts.items():
            if read_umask or fact != "umask":
                report.add_event(FACT, fact, reader, place, b"%d" % of)
        for (what, reader), place in self._early.items():
            report.add_event(EARLY, what, reader, place)

    def read(self, name):
        """Records that a variable is read or looked up."""
        if name not in self._written:
            if name in SIZES and dropped_reads.is_for_nothing(sys._getframe(3)):
                return
            reader = _reader()
            if reader is not None:
                self._reveal(name)
                # Code that reads all variables reads each by its name, too.
                if (name, reader) not in self._names and not (reader in self._wholes and self._is_part_of_all(reader)):
                    self._names[name, reader] = _place()

    def read_all(self):
        """Records that all variables, or all names, are read."""
        reader = _reader()
        if reader is not None:
            for name in [name for name in self._hidden if name not in self._volatile]:
                self._reveal(name)
            if reader not in self._wholes:
                self._wholes[reader] = _place()
            if self.more is not None:
                more, self.more = self.more(), None
                for name, value in more.items():
                    if name not in self._written:
                        if name in self._variables.plain:
                            posix.putenv(name, value)
                        self._variables.plain[name] = value

    def knows_start(self):
        """Returns whether code other than the interpreter has read a fact that other starts vary (evidence.py)."""
        read = {name for name, reader in self._names if reader != SITE}
        names = any(name in OF_A_START or self._variables.plain.get(name, b"")[:1] == b"/" for name in read)
        return names or bool(self._wholes) or any(fact in OTHERWISE for fact, _, _ in self._facts)

    def facts_read(self, names):
        """Returns those of these names (bytes; "cwd" is the current directory) that code other than the interpreter has
        read."""
        read = {name for name, reader in self._names if reader != SITE}
        if any(fact == "cwd" for fact, _, _ in self._facts):
            read.add(b"cwd")
        if any(fact == "kernel" for fact, _, _ in self._facts):
            read.update(name for name in SYSTEM if name != HOST)
        if any(fact == "hostname" for fact, _, _ in self._facts):
            read.add(HOST)
        return [name for name in names if name in read or self._wholes and name not in SYSTEM]

    def names_read(self):
        """Returns two sets: the names of variables that were read by name, and those of all that are set."""
        return {name for name, _ in self._names} | self._written, set(self._variables.plain) | set(self._hidden)

    def _is_part_of_all(self, reader):
        """Returns whether a read of a variable belongs to its reader's read of all: on the same line, or an item of a
        view."""
        frame = sys._getframe(4)
        for _ in range(3):
            if frame is not None and frame.f_code.co_name == "__iter__" and frame.f_code.co_filename in PASSING_ON:
                return True
            frame = frame and frame.f_back
        return self._wholes[reader] == _place(sys._getframe(3))

    def was_read_whole(self):
        """Returns whether code other than the interpreter has read all variables."""
        return bool(self._wholes)

    def write(self, name):
        """Records that a variable is set: later reads get the program's own value."""
        self._written.add(name)
        self._hidden.pop(name, None)

    def _reveal(self, name):
        """Sets a variable that is shown on demand."""
        place = self._hidden.pop(name, None)
        if place is not None:
            value = self._value(*place)
            posix.putenv(name, value)
            self._show(name, value)
            self._variables.plain[name] = value if self.comparisons is None else self.comparisons.watched(name, value)

    def _value(self, offset, size):
        """Returns a value that is shown on demand."""
        descriptor = posix.open(self._folder + b"/environment", posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            return posix.pread(descriptor, size, offset)
        finally:
            posix.close(descriptor)

    def _put_in_place(self, old, new):
        """Replaces one mapping by another wherever the environment is kept."""
        posix.environ = new
        loaded = sys.modules.get("os")
        for name in ("environ", "environb"):
            environment = getattr(loaded, name, None)
            if getattr(environment, "_data", None) is old:
                environment._data = new

    def watch(self, names, name, note, instead=None):
        """Calls `note` before the function of that name, with the caller's frame and the arguments. If `note` returns
        that the call does not count, the freezer ignores it, too. instead: called in place of the function."""
        original = names[name]
        called = instead or original
        is_method = hasattr(original, "__get__")
        distance = 1 if is_method else 2  # of the caller's frame

        def function(*args, **kwargs):
            if not note(sys._getframe(distance), args):
                return called(*args, **kwargs)
            phase = self.tell_phase(OF_FRONT_END)
            try:
                return called(*args, **kwargs)
            finally:
                self.tell_phase(phase)

        if not is_method:
            function = BuiltIn(original, function)
        # A cache may refer to it for longer than the module does.
        self._kept.append(function)
        self._functions[id(function)] = original
        names[name] = function

    def is_watch(self, value):
        """Returns whether a value wraps a watched function."""
        return id(value) in self._functions

    def _reads_folder(self, frame, _):
        if frame.f_globals.get("__name__") == "tempfile":
            return  # as the last of its candidates: see holds_temporary_files
        if _reader_from(frame) not in (None, MODULE_FINDER):
            self.fact("cwd", frame)

    def _reads_names(self, frame, _):
        """Records a call of `os.uname`, which returns the host's name among others. `platform` reads and caches all of
        them; code that takes only the system from it does not depend on the host, nor does code that picks another
        field at once. Another start shows whether the names of host and kernel have consequences (evidence.py)."""
        names = frame.f_globals
        self.fact("kernel", frame)
        if frame.f_code.co_name == "uname" and names.get("__name__") == "platform":
            if id(names["uname"]) not in self._functions:
                self.watch(names, "uname", self._reads_platform)
                self._reads_platform(frame.f_back, ())
        elif not _picks_another(frame):
            self.fact("hostname", frame)

    def _names_of_system(self):
        """Returns what `os.uname` returns, in a boot as another start with other names of host and kernel."""
        answer = [*posix.uname()]
        for name, value in self.system.items():
            answer[SYSTEM[name]] = value
        return posix.uname_result(answer)

    def _executes(self, execute, module):
        """Executes an extension module by this function of `_imp`, and watches the functions of `_socket` that return
        the host's name."""
        answer = execute(module)
        names = getattr(module, "__dict__", {})
        if names.get("__name__") == "_socket" and not self.is_watch(names.get("gethostname")):
            name_of_host = names["gethostname"]
            self.watch(names, "gethostname", self._reads_host, lambda: self.system.get(HOST, name_of_host()))
        return answer

    def _reads_host(self, frame, _):
        self.fact("hostname", frame)

    def _reads_platform(self, frame, _):
        """Records a call of `platform.uname`, or of a function in `platform` that picks one of its fields."""
        if frame.f_globals.get("__name__") != "platform" or frame.f_code.co_name == "node":
            self.fact("hostname", frame)

    def fact(self, fact, frame, of=0):
        """Records a read of a fact about machine, user or process. of: the number of a descriptor."""
        reader = _reader_from(frame)
        if reader is not None:
            self._facts.setdefault((fact, of, reader), _place(frame))

    def early(self, what, frame):
        """Records a read of something that differs in each start. frame: the reader, or None if unknown."""
        reader = _reader_from(frame) if frame is not None else ""
        if reader is not None:
            self._early.setdefault((what, reader), _place(frame) if frame is not None else "")

    def count_early(self):
        """Returns the number of reads that the next start may answer differently, and should rather make itself."""
        return len(self._early) + sum(fact in ("terminal", "window") and not self._is_bound(fact) for fact, _, _ in self._facts)

    def _is_bound(self, fact):
        """Returns whether the image serves only starts with the same answer. Sizes of terminals change."""
        return self.terminal is not None and (fact == "terminal" or fact == "window" and not self.terminal)


    def mark(self):
        """Returns the number of reads so far; see `since`."""
        return len(self._early), len(self._wholes), len(self._facts), len(self._names)

    def since(self, mark, learnt):
        """Returns the reads since `mark` that belong to a start, or to the program's state at that time, as phrases.

        learnt: knows harmless reads, and the variables that the program itself sets at some time."""
        early, wholes, facts, names = mark

        def is_harmless(what, reader):
            return any(harmless == what and reader.endswith(ending) for ending, harmless in learnt.harmless)

        found = ["reads %s (%s)" % (what, place) for (what, reader), place in _after(self._early, early) if not is_harmless(what, reader)]
        wholes = [place for reader, place in _after(self._wholes, wholes) if not is_harmless("*", reader)]
        found += ["reads the whole environment (%s)" % place for place in wholes]
        for (fact, _, reader), place in _after(self._facts, facts):
            if fact != "kernel" and not is_harmless(fact, reader) and not self._is_bound(fact):
                found.append("reads %s (%s)" % (FACTS.get(fact, fact), place))
        for (name, _), place in _after(self._names, names):
            # Code that runs after the program has set the variable reads the same value in any order.
            is_of_terminal = self.terminal is None and name in OF_TERMINALS
            if name in learnt.changed and name not in self._written or is_of_terminal:
                found.append("reads the variable %s (%s)" % (name.decode(errors="replace"), place))
        return found

    def count_written(self):
        """Returns the number of variables that the program has set."""
        return len(self._written)


class BuiltIn:
    """Wraps a function of C: a class that keeps it, as pathlib's of Python 3.10 does, must not turn it into a
    method. It says of itself that it is one, for libraries that take nothing else."""

    def __init__(self, original, function):
        self._original = original
        self._function = function

    @property
    def __class__(self):
        return type(self._original)

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self._original, name)


class Variables:
    """The environment as a mapping of bytes that records reads."""

    def __init__(self, plain, noted):
        self.plain = plain
        self.noted = noted

    def __getitem__(self, name):
        self._read(name)
        return self.plain[name]

    def __contains__(self, name):
        self._read(name)
        return name in self.plain

    def get(self, name, default=None):
        self._read(name)
        return self.plain.get(name, default)

    def setdefault(self, name, default=None):
        self._read(name)
        return self.plain.setdefault(name, default)

    def pop(self, name, *default):
        self._read(name)
        return self.plain.pop(name, *default)

    def __setitem__(self, name, value):
        if self.noted is not None:
            self.noted.write(name)
        self.plain[name] = value

    def __delitem__(self, name):
        self._read(name)
        del self.plain[name]

    def update(self, *others, **names):
        for name, value in dict(*others, **names).items():
            self[name] = value

    def _read(self, name):
        if self.noted is not None:
            self.noted.read(name)

    def __getattr__(self, name):
        # All other methods of a dictionary read every variable.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._whole(), name)

    def __reduce__(self):
        return dict, (dict(self._whole()),)  # copies are ordinary

    def __iter__(self):
        return iter(self._whole())

    def __len__(self):
        return len(self._whole())

    def __eq__(self, other):
        return self._whole() == other

    def __repr__(self):
        return repr(self._whole())

    def _whole(self):
        if self.noted is not None:
            self.noted.read_all()
        return self.plain


def holds_temporary_files():
    """Returns whether the module `tempfile` has chosen the current directory, since no other is writable."""
    chosen = getattr(sys.modules.get("tempfile"), "tempdir", None)
    return chosen is not None and chosen == posix.getcwd()


def _after(entries, start):
    """Returns the entries of a dictionary without the first `start`."""
    return list(entries.items())[start:]


def _on_demand(folder):
    """Returns the variables that are shown on demand, and the names of those that a read of all leaves out."""
    hidden, volatile = {}, set()
    for entry in read_file(folder + b"/on_demand").split(b"\0")[:-1]:
        key, _, entry = entry.partition(b"=")
        offset, size, name = entry.split(b",", 2)
        hidden[name] = int(offset), int(size)
        if key == b"volatile":
            volatile.add(name)
    return hidden, volatile


def _reader():
    """Returns the file whose code reads, beyond `os`; None for the front end."""
    return _reader_from(sys._getframe(2))


def reader_and_place(frame):
    """Returns the file whose code reads, as `_reader_from`, and its FILE:LINE."""
    reader = _reader_from(frame)
    return reader, None if reader is None else _place(frame)


def _reader_from(frame):
    while frame is not None and frame.f_code.co_filename in PASSING_ON:
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename.startswith(FOLDER):
        return None
    name = frame.f_code.co_filename
    return SITE if name == LIBRARY + "site.py" else name  # as it is called where it is frozen


def _place(frame=None):
    """Returns FILE:LINE of the innermost frame outside the standard library, or else of the innermost frame."""
    frame = frame or sys._getframe(2)
    first = None
    while frame is not None:
        name = frame.f_code.co_filename
        if name not in PASSING_ON and not name.startswith(FOLDER):
            first = first or (name, frame.f_lineno)
            if name == "<string>" and frame.f_back is not None and "fullname" in frame.f_back.f_locals:
                return frame.f_back.f_locals["fullname"]  # a line of a .pth file, which `site` executes
            if name[:1] != "<" and (not name.startswith(LIBRARY) or "/site-packages/" in name):
                return "%s:%d" % (name, frame.f_lineno)
        frame = frame.f_back
    return "%s:%d" % first


def _picks_another(frame):
    """Returns whether the line that calls `os.uname` keeps only another field than the host's name:
    `os.uname().release`."""
    try:
        source = read_file(encode(frame.f_code.co_filename))
        line = source.split(b"\n")[frame.f_lineno - 1]
    except (OSError, IndexError, ValueError):
        return False
    calls = line.split(b"uname()")[1:]
    return bool(calls) and all(rest.startswith(OTHER_NAMES) for rest in calls)


FOLDER = __file__.rpartition("/")[0] + "/"
LIBRARY = sys.modules["encodings"].__file__.rpartition("/encodings/")[0] + "/"  # which is loaded before all others
# All reads pass through these files.
PASSING_ON = (FOLDER + "reads.py", "<frozen os>", "<frozen posixpath>", "<frozen _collections_abc>")
PASSING_ON += tuple(LIBRARY + name for name in ("os.py", "posixpath.py", "pathlib.py", "_collections_abc.py"))
# It makes paths of the file names in code objects, such as "<frozen os>", only to look for a module with that path.
MODULE_FINDER = LIBRARY + "inspect.py"
# The names in messages of the facts recorded here.
FACTS = {"cwd": "the current directory", "hostname": "the name of the host", "terminal": "what its terminal is"}
FACTS["window"] = "the size of its terminal"
# The facts that other starts vary.
OTHERWISE = ("cwd", "hostname", "kernel", "terminal", "window")
SIZES = (b"COLUMNS", b"LINES")
# Variables that other starts vary besides those that contain paths (crates/freeze boot_inputs/start_facts.rs,
# programs/everyday.rs).
OF_A_START = frozenset(
    (b"HOME", b"PATH", b"USER", b"LOGNAME", b"LANG", b"LC_ALL", b"LANGUAGE")
    + (b"XDG_CACHE_HOME", b"XDG_CONFIG_HOME", b"XDG_DATA_HOME", b"XDG_STATE_HOME")
)
SITE = "<frozen site>"
# They differ from terminal to terminal.
OF_TERMINALS = (b"COLUMNS", b"LINES", b"TERM", b"COLORTERM", b"TERM_PROGRAM")
OTHER_NAMES = (b".sysname", b".release", b".version", b".machine", b"[0]", b"[2]", b"[3]", b"[4]", b"[-1]")
