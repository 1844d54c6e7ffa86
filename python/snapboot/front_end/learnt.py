"""Loads modules that training runs have imported late, lazily or inside functions, if it makes no difference when they are loaded.

A module may be loaded early if its import is nothing but an import. The program itself must import a module that reads data of one start,
prints, fails, or changes the process for everybody: the program may never reach that import, or reach it in another state. The same goes
for each module that imports such a one. Forked children find out which modules these are, so this process stays clean: each child imports
all modules that are not known to be left out, and records the effects of each import, nested ones included. Once a child finds nothing new,
this process runs the same imports.
"""

import posix
import sys

from . import process_state, times
from .channel import fields, record
from .making import Making
from .module_attributes import Attributes
from .report import as_bytes, to_bytes, write_file
from .request import decode, read_file
from .stdio import flush
from .trial_imports import Output, SeenOutside, in_child


def as_importlib(method):
    """Makes a method look like part of the importer: code that looks for the importing frame, such as a warning, skips it."""
    return type(method)(method.__code__.replace(co_filename="<frozen importlib._bootstrap>"), method.__globals__)


class LeftOut(BaseException):
    """Raised where a left-out module is imported. No program catches it by name."""


class Learnt:
    """The modules of a profile.

    files: the file of each module, by name, in the order of the imports. always: the modules that every run has loaded. changed: names of
    variables (bytes) that the program has set in a run. harmless: pairs of a path's end and what that file may read of a start, since it
    keeps nothing of it. main: the source of the main part, or None where it may be any. recipes: the Recipes, which do what `warm_up`
    names.
    """

    def __init__(self, request, main, recipes):
        self.main = main
        self.recipes = recipes
        self.files = request.learnt
        self.always = request.always
        self.changed = frozenset(request.changed)
        self.harmless = request.harmless
        self.warm_up = request.warm_up
        # The first boot has tried the imports.
        self.is_later_boot = request.evidence in ("other", "again") or request.compares_secrets
        self.left_out = {}  # the reason, by module name
        self.loaded = []

    def load(self, folder, importers, reads):
        """Imports the modules, and does the one-time work. folder: the control directory (bytes). importers and reads: the Importers and
        the Reads that watch."""
        known = folder + b"/left_out"
        if self.is_later_boot:
            self.left_out.update(_read_left_out(known))
        self._load(folder, importers, reads)
        if not self.is_later_boot:
            _write_left_out(known, self.left_out)

    def _load(self, folder, importers, reads):
        for _ in range(MAX_PASSES):
            names = [name for name in self.files if name not in sys.modules and name not in self.left_out]
            work = [name for name in self.warm_up if name not in self.left_out]
            if not names and not work:
                return
            # Later boots use the result of the first.
            found = {} if self.is_later_boot else self._try_in_child(names, work, folder, importers, reads)
            if not found:
                for name in names:
                    __import__(name)
                for name in work:
                    self.recipes.warm_up(name)
                self.loaded = names
                return
            self.left_out.update(found)
        self.left_out.update((name, "what it imports could not be separated from what must be left out") for name in names + work)

    def report_to(self, report):
        """Adds the loaded modules to the report, and those left out with the reason."""
        for name in self.loaded:
            report.add("learnt", name)
        for name, why in self.left_out.items():
            report.add_record("left_out", name, why)

    def _try_in_child(self, names, work, folder, importers, reads):
        """Lets a child import the modules and do the work. Returns which modules must be left out, and why."""
        result = folder + b"/rehearsed"

        def run():
            trial = Trial(self, reads, folder, importers)
            try:
                trial.run(names, work)
            finally:
                trial.making.clean_up()
                _write_left_out(result, trial.found)

        in_child(run, folder, importers, reads)
        try:
            found = _read_left_out(result)
            posix.unlink(result)
        except FileNotFoundError:
            last = decode(read_file(folder + b"/trying"))
            return {last: "ends the process" if last in self.warm_up else "its import ends the process"}
        return found


def _write_left_out(path, left_out):
    """Writes a file with the modules left out, and the reasons."""
    write_file(path, to_bytes([("left_out", record(as_bytes(name), as_bytes(why))) for name, why in left_out.items()]))


def _read_left_out(path):
    """Returns the contents of such a file. Raises OSError."""
    return dict(map(decode, fields(entry.partition(b"=")[2])) for entry in read_file(path).split(b"\0")[:-1])


class Trial:
    """The work of a child: it imports the modules, does the work, and records the effects of each. Changes this process for good."""

    def __init__(self, learnt, reads, folder, importers):
        self.learnt = learnt
        self.reads = reads
        self.folder = folder
        self.found = {}  # the reason why a module must be left out, by name
        self.events = []  # forbidden effects, in their order
        self._output = Output(folder, reads.terminal)
        self._printed = 0
        self._mark = reads.mark()
        self._state = process_state.State(reads.count_written)
        reads.attributes.look()
        self._attributes = Attributes(learnt.files, learnt.always, learnt.main, reads.is_watch)
        self.making = Making(self.events)
        self._seen_outside = SeenOutside(folder, importers)
        self._importing = []
        self._importlib = sys.modules["_frozen_importlib"]
        self._find_and_load = self._importlib._find_and_load
        self._importlib._find_and_load = self._watched

    def run(self, names, work):
        """Imports all modules, does the work, and fills `found`."""
        conflicts = {}
        for name in names:
            if name in sys.modules or name in self.found:
                continue
            write_file(self.folder + b"/trying", name.encode())
            try:
                __import__(name)
            except BaseException:
                self.found.setdefault(name, "cannot be imported by itself")
            conflicts.update(self._attributes.conflicts(self.learnt.left_out))
        if not self.found:
            self.found.update(conflicts)
        for name in work if not self.found else ():
            self._try(name)
        if not self.found:
            self._find_what_is_kept(names)

    def _try(self, name):
        write_file(self.folder + b"/trying", name.encode())
        self._look()
        begun = len(self.events)
        try:
            self.learnt.recipes.warm_up(name)
        except BaseException as error:
            self.events.append("fails (%s)" % type(error).__name__)
        self._look()
        if len(self.events) > begun:
            self.found[name] = self.events[begun]

    @as_importlib
    def _watched(self, name, import_, **options):
        """Replaces the function that finds and loads a module for an import statement. options: CPython 3.15 says which are lazy."""
        if name in self.learnt.left_out or name in self.found:
            self.events.append("imports " + name)
            raise LeftOut(name)
        if name not in self.learnt.files:
            return self._find_and_load(name, import_, **options)
        self._look()
        self._importing.append(name)
        begun = len(self.events)
        try:
            module = self._find_and_load(name, import_, **options)
            origin = getattr(getattr(module, "__spec__", None), "origin", None)
            if origin != self.learnt.files[name]:
                self.events.append("is found in another place: %s" % origin)
            return module
        except BaseException as error:
            if len(self.events) == begun:
                self.events.append("its import fails (%s)" % type(error).__name__)
            raise
        finally:
            self._look()
            self._importing.pop()
            if len(self.events) > begun:
                self.found[name] = self.events[begun]
                # For each module that imports it, this reason is enough.
                self.events[begun:] = ["imports " + (self._root(name))]

    def _root(self, name):
        """Returns the module that causes the problem."""
        why = self.found.get(name, "")
        return why[len("imports ") :] if why.startswith("imports ") else name

    def _look(self):
        """Adds the effects since the last look to the events."""
        flush("stdout", "stderr")
        printed = self._output.size()
        if printed != self._printed:
            self._printed = printed
            self.events.append("prints")
        self.making.look()
        self.events += self._seen_outside.events()
        self.events += self.reads.since(self._mark, self.learnt)
        self._mark = self.reads.mark()
        changes = self._state.changes()
        if not self._importing or self._importing[-1] not in self.learnt.always:
            self.events += changes
        else:
            # As far as known, the program makes this change in each of its starts.
            self.events += [change for change in changes if change.endswith(process_state.OF_A_START)]
        # The kernel's attributes: the program may read them before it changes them.
        self.events += ["changes its " + name[1:] for name in self.reads.attributes.look()]

    def _find_what_is_kept(self, names):
        """Finds modules that keep the time of their import, or the process number."""
        for _, kept in times.kept(self.folder):
            name = kept
            while name and name not in names:
                name = name.rpartition(".")[0]
            if name:
                self.found.setdefault(name, "keeps the time of its import, or the pid")


# Programs usually need three or four.
MAX_PASSES = 12
