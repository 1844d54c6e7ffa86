"""Everything that a thawed process must learn about itself, and must forget about the process that was frozen."""

import _signal
import posix
import sys

from . import process, references
from .command_line import parse
from .early import umask
from .environment import IGNORED, Environment
from .explained import begin
from .importers import folder_of, shadows
from .main_part import Fallback, Prepared, as_file, new_main_module, script_name
from .python_path import PythonPath
from .randomness import Randomness
from .request import decode, encode
from .search_path import IS_SAFE, first_entry, importer_of
from .settings import Settings
from .stdio import Streams
from .title import Title


class Context:
    """Prepared while freezing, so that little work is left after the thaw."""

    def __init__(self):
        """Create this first, before the program can change anything."""
        self.environment = Environment()
        self.streams = Streams()
        self.title = Title()
        # A freeze in the background runs with SIGINT ignored. The image must not inherit that.
        if _signal.getsignal(_signal.SIGINT) == _signal.SIG_IGN:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)

    def begin(self, request):
        """Makes the interpreter look as it would in `request`'s command, with its fixed arguments and nothing more."""
        self.request = request
        self.settings = Settings(self.streams, self.environment, request)
        self.arguments = request.argv
        self.parts = []  # of sys.argv: see Early
        self.recipes = ()  # those that renew something
        self.spans = None  # see explained.py
        self.secrets = None  # see secret_values.py
        self.executable = request.argv[0] if request.argv[0].startswith("/") else sys.executable
        main = parse(request.argv[request.main_index :])
        folder = __file__.rpartition("/")[0]
        if not IS_SAFE:
            del sys.path[0]  # that folder, resolved
        for path in [path for path in sys.path_importer_cache if path.startswith(folder)]:
            del sys.path_importer_cache[path]
        new_main_module()
        self.prepared = None
        self.path_entry = first_entry(main)
        if request.main == "script":
            self.prepared = Prepared(main.value, request.script)
            if self.prepared.is_package:
                self.path_entry = self.prepared.filename
            else:
                as_file(sys.modules["__main__"].__dict__, self.prepared.filename, None)
        if self.path_entry is not None:
            sys.path.insert(0, self.path_entry)
        self.python_path = PythonPath(self.path_entry)
        self.own_arguments = list(main.argv)
        self._set_arguments(main, request.argv)
        return main

    def own_folder(self):
        """The folder of the entry of `sys.path` that every thaw computes anew, if nothing else in the path leads there; or None."""
        if self.path_entry is None or self.prepared is not None:
            return None
        folder = folder_of(self.path_entry)
        return None if any(folder_of(path) == folder for path in sys.path if path is not self.path_entry) else folder

    def settle(self, seeding, recipes, importers, bound):
        """Records how the program has left things. Call right before the freeze.

        seeding: the Seeding that watched the boot. recipes: the Recipes. importers: the Importers that watched. bound: see Settings.settle.
        """
        self.looked_up, self.looked_up_folder = {}, None
        if self.path_entry is not None and self.prepared is None:
            self.looked_up_folder = folder_of(self.path_entry)
            self.looked_up = importers.looked_up_in(self.looked_up_folder)
        self.python_path.settle(importers, self.request.folder)
        self.environment.settle()
        self.streams.settle()
        self.settings.settle(bound)
        self.title.settle()
        self.randomness = Randomness(seeding, recipes)
        self.recipes = recipes.renewing
        self.user_site = _user_site()
        self.logging = sys.modules.get("logging")
        # None where no module has loaded it.
        self.main_thread = getattr(sys.modules.get("threading"), "_main_thread", None)

    def learn(self, early):
        """Records what the program knows of this start. early: the Early that watched the boot."""
        # A list that the program holds may have to stay in use instead of the interpreter's own.
        self.known_name = sys.argv[0] if early.knows_name and sys.argv else None
        self.known_main = sys.modules["__main__"] if early.knows_main else None
        self.umask = None if early.read_umask() else umask()
        self.parts = early.parts

    def warm_up(self):
        """See freeze_run.Freeze. Runs the parts of `renew` that change nothing in this process."""
        process.started_with()
        parse(["-c", "pass"])
        self.environment.renew([name + b"=" + value for name, value in posix.environ.items()])
        self.streams.renew()
        self.randomness.renew()
        self._renew_main_thread()

    def renew(self, arguments, environment):
        """Adapts everything to the new process, given its arguments and environment as lists of bytes.

        Returns its Main. Raises Fallback.
        """
        self.arguments = arguments = list(map(decode, arguments))
        main = parse(arguments[self.request.main_index :])
        if main is None:
            raise Fallback("these options need an ordinary start of the interpreter")
        if self.request.at and main.argv != self.own_arguments:
            raise Fallback("the image was frozen at %s, and the program was called by another name" % " or ".join(self.request.at))
        if self.known_name is not None and main.argv[0] != self.known_name:
            raise Fallback("the program has read the name that it was called by, and this start uses another name")
        if self.umask is not None:
            posix.umask(self.umask)
        if self.prepared is not None:
            own_names = self.request.argv[self.request.main_index], self.request.script
            self.prepared = self.prepared.named(main.value, main.value not in own_names)
        if self.secrets is not None:
            self.secrets.renew(environment)
        for number in self.environment.renew(environment, self.settings):
            _signal.signal(number, _signal.SIG_IGN)
        if self.environment.explained is not None:
            self.spans = begin(self.environment.explained)
        if self.environment.python_path != self.python_path.value:
            self.python_path.renew(self.environment.python_path, self.evidence.folder_if_read())
        if self.user_site is not None:
            self._renew_user_site()
        if self.prepared is None:  # or else the script is the same
            self._renew_path(main)
        if not self.request.at:  # or else they are the same, and the program may have changed them
            self._set_arguments(main, arguments)
        if self.spans is not None:
            self.spans.step("context", "standard streams")
        try:
            self.streams.renew()
        except IsADirectoryError:
            raise Fallback("a standard stream is a directory") from None
        except OSError:
            raise Fallback("a standard stream is closed") from None
        for recipe in self.recipes:
            try:
                recipe.renew()
            except Exception as error:
                raise Fallback("the recipe for %s failed to renew its state: %r" % (recipe.name, error)) from None
        if b"SNAPBOOT_REHEARSE" not in self.environment.data:  # the rehearsal is confined and cannot write this
            try:
                self.title.renew()
            except OSError:
                raise Fallback("the title of the process cannot be set") from None
        if self.spans is not None:
            self.spans.step("context", "random state")
        self.randomness.renew()
        self._renew_main_thread()
        if self.spans is not None:
            self.spans.step("context", "current directory, times")
        try:
            self.evidence.renew(self.environment.data)
        except OSError:
            raise Fallback("the current directory, which the program has read, is gone") from None
        if self.logging is not None:
            now = sys.modules["time"]
            self.logging._startTime = now.time_ns() if LOGGING_COUNTS_NANOSECONDS else now.time()
        return main

    def main_module(self):
        """Returns the `__main__` in which the main part will run.

        It is a new one, since the garbage collector ignores frozen objects; or the old one if somebody holds that already.
        """
        module = sys.modules["__main__"]
        return module if sys.getrefcount(module) > references.OWN_MODULE + 1 else new_main_module()

    def fall_back(self, reason):
        """Starts the command the ordinary way, in this process. Never returns.

        reason: why, shown with SNAPBOOT_LOG; crates/launcher fallback.rs and context.rb use the same words.
        """
        # Passes on the environment that the process was started with, without the changes of the boot.
        environment = dict(entry.split(b"=", 1) for entry in reversed(process.started_with()[1]) if b"=" in entry)
        environment.pop(IGNORED, None)
        if b"SNAPBOOT_REHEARSE" in environment:  # a rehearsal by `snapboot freeze`: run nothing of the program
            posix.write(2, b"snapboot: %s\n" % encode(str(reason)))
            posix._exit(125)
        if environment.get(b"SNAPBOOT_LOG", b"0") not in (b"", b"0"):
            try:
                posix.write(2, b"snapboot: %s; starting the ordinary way\n" % encode(str(reason)))
            except OSError:
                pass  # nobody can read the message
        for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # ignored by the interpreter, and an exec keeps that
            _signal.signal(number, _signal.SIG_DFL)
        try:
            arguments = [encode(argument) for argument in self.arguments]
            posix.execve(self.executable, arguments, {name: environment[name] for name in reversed(environment)})
        except OSError as error:
            posix.write(2, b"snapboot: cannot run %s: %s\n" % (encode(self.executable), str(error).encode()))
        posix._exit(127)

    def _renew_main_thread(self):
        # After a fork, threading keeps the thread's old kernel id.
        if hasattr(self.main_thread, "_set_native_id"):
            self.main_thread._set_native_id()

    def _set_arguments(self, main, arguments):
        # In place, since modules may hold references to these lists.
        sys.argv[:] = main.argv
        if KEEPS_ORIGINAL:
            sys.orig_argv[:] = arguments
        for part, name, way in self.parts:
            whole = getattr(sys, name)
            for index in way:
                whole = whole[index]
            part[:] = whole

    def _renew_path(self, main):
        """Replaces the boot's entry of `sys.path` with that of the new main part."""
        entry = first_entry(main)
        if main.kind == "script":
            name = script_name(main.value, None)
            if importer_of(name) is not None:
                entry = name
        if self.looked_up and entry is not None:
            self._check_shadows(entry)
        old = self.path_entry
        if entry == old:
            return
        path = sys.path
        for index, present in enumerate(path):
            if present is old:
                path[index : index + 1] = [] if entry is None else [entry]
                return
        if old is None:
            path.insert(0, entry)

    def _check_shadows(self, entry):
        """Raises Fallback if the new entry's folder has a module that would have been found before a loaded one."""
        try:
            folder = folder_of(entry)
        except FileNotFoundError:
            return  # a deleted current directory has no modules
        try:
            found = shadows(folder, self.looked_up, folder == self.looked_up_folder)
        except OSError:
            importer = importer_of(entry)
            found = next((name for name in self.looked_up if importer is not None and importer.find_spec(name)), None)
        if found is not None:
            raise Fallback("stale: %s in the directory of the program would be found first" % found)

    def _renew_user_site(self):
        """Renews the per-user site-packages, which follow HOME."""
        site, folder = self.user_site
        base = _home(self.environment.data) + "/.local"
        if site.USER_BASE == base:
            return
        new = base + site.USER_SITE[len(site.USER_BASE) :]
        try:
            posix.stat(new)
        except OSError:
            if site.USER_SITE not in sys.path:
                site.USER_BASE, site.USER_SITE = base, new
                return
        raise Fallback("HOME leads to other packages of the user")


def _home(variables):
    """Returns what `os.path.expanduser` substitutes for a leading `~/`."""
    if b"HOME" in variables:
        return decode(variables[b"HOME"]).rstrip("/")
    import pwd  # as `expanduser` does

    try:
        return pwd.getpwuid(posix.getuid()).pw_dir.rstrip("/")
    except KeyError:
        return "~"


def _user_site():
    """Returns the module `site` and its per-user folder, if that is in use and depends on HOME."""
    site = sys.modules.get("site")
    if site is None or not site.ENABLE_USER_SITE or posix.environ.get(b"PYTHONUSERBASE"):
        return None
    return site, site.USER_SITE


KEEPS_ORIGINAL = hasattr(sys, "orig_argv")
LOGGING_COUNTS_NANOSECONDS = sys.version_info >= (3, 13)
