"""From the interpreter's start to the program's main part, stage by stage."""

import gc
import posix
import sys

from . import (
    code_lines,
    fork,
    hooks,
    inputs,
    lost_threads,
    main_part,
    preload,
    process,
    process_state,
    session,
    times,
    trampoline,
)
from .command_line import Main
from .context import Context
from .early import Early
from .evidence import Evidence, shift_addresses
from .exit import FOLDER, Exit
from .importers import Importers
from .imports import leading_imports
from .muted_warnings import Mute
from .origins import Origins
from .process_attributes import ProcessAttributes
from .reads import Reads
from .recipes import Broken, Recipes, Refused
from .report import FREEZER_REFUSED, NOT_WRITTEN, PROGRAM_RAISED, USER_MISTAKE, Report, described
from .request import decode, encode, read_request
from .secret_values import Secrets
from .seeding import Seeding
from .settings_reads import SettingsReads
from .stdio import flush

if sys.version_info >= (3, 12):
    from . import immortal
else:
    immortal = None  # what is loaded without need is a part of each thaw


def run(load):
    """Boots the program that the request names and freezes it. Returns in the thawed process, ready for its main part.

    load: see loader.py.
    """
    # Never freed: freeing what a freeze leaves behind would cost the thawed process time.
    KEPT.append(Freeze(load))
    KEPT[-1].run()


class Freeze:
    """One freeze, from the request to the report, and the steps after the thaw."""

    def __init__(self, load):
        self.modules = load.modules
        self.context = Context()
        self.exit = Exit()
        self.importers = Importers()
        self.report = Report()
        self.folder = self.context.environment.own[b"SNAPBOOT_FREEZE_DIR"]
        self.request = read_request(self.folder)
        lost_threads.RESTARTED.update(self.request.restarted_threads)
        self.broken = self.recipes = None
        try:
            self.recipes = Recipes(self.request, load)
            process_state.HARMLESS_PATCHES.update(*(recipe.harmless_patches for recipe in self.recipes.all))
        except Broken as error:
            self.broken = str(error)
        self.seeding = Seeding(self.recipes)
        self.attributes = ProcessAttributes()
        self.origins = Origins(self.folder, self.attributes) if self.request.origins else None
        self.mute = Mute(self.request.boot_only)
        self.front_end = hooks.FrontEnd(self._freeze_point, self.recipes)
        self.running = False
        self.at = None  # the FreezeAt of a request with `at`
        self.watching = None, None  # the program's trace and profile functions
        self.early = None
        self.settings_reads = None
        self.secrets = Secrets(self.request.secrets, posix.environ)
        self.context.evidence = Evidence(self.request)
        self.shift = shift_addresses(self.request.shifts_addresses) if self.request.shifts_addresses else None
        self.reads = Reads(self.folder, self._show)
        self.reads.terminal = self.request.terminal
        self.reads.system = {name: decode(value) for name, value in self.request.system.items()}
        if self.request.watches_values:
            from .watched_values import Comparisons  # here, since what is loaded without need is a part of each thaw

            self.reads.watch_values(Comparisons(self.context.evidence.here))
        if self.request.more_variables:
            self.reads.more = self.context.evidence.more_variables
        self.reads.attributes = self.attributes
        self.reading = True
        if self.request.profile is not None:
            from .load_report import LoadReport  # the same

            self.exit.load_report = LoadReport(self.request)
        archive = self.request.archive or self.context.environment.own.get(b"SNAPBOOT_ENABLED")
        if archive is not None:
            from .boot_archive import BootArchive  # the same

            self.exit.archive = BootArchive(decode(archive), self.request, self.context, self.exit.load_report)

    def _show(self, name, value):
        """Sets a variable that the program has looked up."""
        self.context.environment.show(name, value)
        self.context.evidence.show(name, value)
        self.secrets.show(name, value)

    def run(self):
        """See the function."""
        if self.broken is not None:
            self._end(USER_MISTAKE, self.broken)
        self.mute.begin()
        hooks.install(self.front_end)
        main = self.context.begin(self.request)
        self.recipes.begin(self.reads)
        self.early = Early(self.reads, self.request, self.recipes)
        self.settings_reads = SettingsReads(self.reads, self.context.settings)
        self.early.watch_main()
        try:
            main_part.check_syntax(main, self.context.prepared)
        except SyntaxError as error:
            self._raised(error, NEVER_STARTS)
        try:
            preload.load_preloads(self.request.preload, self.report if main.kind == "script" else None)
            self._check_attributes()
            source, package = self._source_of(main)
            if source is not None:
                self._load(leading_imports(source), package)
            self.running = bool(self.request.at) or source is not None and b"freeze_point" in encode(source)
            if not self.running:
                self._load_learnt(source)
        except (preload.UnknownPreload, preload.NoMainPart) as error:
            self._end(USER_MISTAKE, str(error))
        except BaseException as error:
            self._raised(error)
        if self.running:
            if self.request.at:
                from .freeze_at import FreezeAt  # see above

                self.at = FreezeAt(self.request.at, self._freeze_point)
            self._start(main, self._never_reached)
        else:
            for hook in ("before_freeze", *self.recipes.hooks_before()):
                if source is not None and encode(hook) in encode(source):
                    self.report.add("warning", DEAD_HOOK % hook)
            self._freeze()
            self._start(self._thawed(), self.exit.leave)

    def _load(self, imports, package):
        """Runs the imports as far as possible. Returns whether all of them ran."""
        left = preload.load_imports(imports, package, self.folder, self.importers, self.reads)
        if left and getattr(left[0], "name", ""):
            self.report.add("left", left[0].name)
        return not left

    def _load_learnt(self, source):
        """Imports the modules and compiles the patterns of training runs, and does the one-time work that a recipe names."""
        if self.request.learnt or self.request.warm_up:
            from .learnt import Learnt  # see above

            learnt = Learnt(self.request, source, self.recipes)
            learnt.load(self.folder, self.importers, self.reads)
            learnt.report_to(self.report)
        if self.request.patterns:
            from . import patterns  # see above

            self.report.add("patterns", str(patterns.load(self.request.patterns)))

    def _source_of(self, main):
        """Returns the source of the main part and its package, as far as they are known before the thaw."""
        if main.kind == "code":
            return main.value, None
        prepared = self.context.prepared
        if prepared is not None:
            if prepared.is_left or not prepared.is_package:
                return prepared.source, None
            return preload.module_source("__main__")
        if main.kind == "module":
            return preload.module_source(main.value) if self._load([preload.Packages(main.value)], None) else (None, None)
        return None, None

    def _freeze_point(self):
        """Freezes deep in the program's own call stack."""
        if sys.modules["_thread"].get_ident() != self.thread:
            raise RuntimeError("snapboot.freeze_point() must be called in the main thread")
        if self.at is not None:
            try:
                self._load_learnt(None)
            except BaseException as error:
                self._raised(error)
        self._freeze()
        self._thawed()
        _watch(*self.watching)
        if self.exit.rehearses:
            self.exit.leave([None])

    thread = sys.modules["_thread"].get_ident()

    def _freeze(self):
        """Freezes. Returns in the thawed process only."""
        self._check_attributes()
        try:
            self.front_end.run_before()
        except Refused as error:
            self._end(USER_MISTAKE, str(error))
        except BaseException as error:
            self._raised(error)
        # The program's trace and profile functions must not see the front end's next steps.
        self.watching = sys.gettrace(), sys.getprofile()
        _watch(None, None)
        self._guard(self._settle)
        if self.request.evidence == "other" or self.request.compares_secrets:
            self._end(fork.WRITTEN)
        self.front_end.state = "thawed"
        try:
            status = fork.freeze()
        except Exception as error:
            self.front_end.state = "freezing"
            self._unexpected(error)
        if status is not None:
            self._end(*fork.outcome(status))

    def _settle(self):
        """Does everything before the freeze, in a function of its own: a thaw would otherwise free its variables."""
        code_lines.prepare(self.request.main, self.context.path_entry)
        self._stop_reads()
        self.mute.end()
        self.importers.stop()
        if self.exit.load_report is not None and self.request.script:
            from .which import find_programs  # see above

            find_programs(self.request.script)
        if self.seeding.is_blind:
            self._end(USER_MISTAKE, BLIND)
        self.context.settle(self.seeding, self.recipes, self.importers, self.settings_reads.bound)
        self.settings_reads.report_to(self.report)
        self.settings_reads = None
        self.seeding = None
        self.report.add("runtime", "CPython %d.%d.%d" % sys.version_info[:3])
        for name in self.request.preload:
            self.report.add("preloaded", name)
        for thread in lost_threads.lost():
            self.report.add("thread", thread)
        for warning in self.context.randomness.warnings():
            self.report.add("repeats", warning)
        for kind, name in times.kept(self.folder):
            self.report.add(kind, name)
        for path in inputs.loaded_files(self.request.script):
            if not (self.request.leaves_script and path == self.request.script):
                self.report.add("loaded", path)
        for key, value in self.importers.entries(self.context.own_folder()):
            self.report.add(key, value)
        self.importers = None
        if self.origins is not None:
            for origin in self.origins.found():
                self.report.add("fd_origin", origin)
            for origin in self.origins.made():
                self.report.add("made_origin", origin)
        flush("stdout", "stderr", "__stdout__", "__stderr__")
        gc.collect()
        self.exit.settle()
        self.attributes.repeats = any(name[0] == "+" for name in self.attributes.changed())
        if self.exit.archive is not None:
            self.exit.archive.settle()
        if self.request.evidence != "other":
            self._settle_secrets()
        self.context.evidence.settle(self.context, self.reads, self.report)
        if self.request.evidence == "other":
            return
        self._warm_up()
        gc.collect()
        gc.freeze()
        if immortal is not None:
            immortal.settle(self.modules)

    def _settle_secrets(self):
        """Finds where the program keeps its secrets, and writes down its other contents, in a child that may load modules for that."""
        own, kept = self.context.environment.own_objects()
        for problem in self.secrets.settle(own, set(map(id, kept.values()))):
            self.report.add("secret_kept", problem)
        self.context.secrets = self.secrets
        if not self.secrets.values:
            return
        if self.request.compares_secrets:
            for what in self.secrets.derived(self.folder, own):
                self.report.add("derived", what)
            self.secrets.write_texts(self.folder, own)
            return
        fork.in_child(lambda: self.secrets.write_texts(self.folder, own))

    def _warm_up(self):
        """Lets the interpreter look up each attribute and method that a thaw uses, and specialise the code. Otherwise each thaw would do
        that, in a third of its time. Call this last, since other code overwrites the same caches."""
        for _ in range(WARM_UPS):
            self.context.warm_up()
            self.exit.warm_up()
        for thing in (self, self.context, self.exit, self.exit.release, self.front_end):
            for name in [*type(thing).__dict__, *thing.__dict__]:
                getattr(thing, name)
        for kind in trampoline.KINDS:
            for name in kind.__dict__:
                getattr(kind, name)

    def _thawed(self):
        """Turns the thawed process into the new one. Returns its main part."""
        arguments, environment = process.started_with()
        try:
            main = self.context.renew(arguments, environment)
        except main_part.Fallback as reason:
            self.context.fall_back(reason)
        except Exception as error:
            self._unexpected(error)
        rehearsal = self.context.environment.data.get(b"SNAPBOOT_REHEARSE")
        if rehearsal is not None:
            # `snapboot freeze` measures which pages a thaw touches from here to its end, without running any of the program.
            self.exit.rehearses = True
            self.exit.is_confined = rehearsal == b"confined"
            return Main("code", "pass", ["-c"])
        if self.exit.load_report is not None:
            self.exit.load_report.begin(self.context.environment.data)
        # The interpreter must still find its script relative to the directory it was started in.
        if self.attributes.repeats and (main.kind != "script" or self.context.prepared is not None):
            self._repeat_attributes()
        spans = self.exit.spans = self.context.spans
        try:
            self.front_end.run_after(spans)
        except BaseException as error:
            self.exit.leave_now(error)
        if spans is not None:
            spans.step("main", "__main__")
        return main

    def _repeat_attributes(self):
        """Repeats the boot's changes to the kernel's attributes of this process, before the program sees them."""
        self.attributes.repeats = False
        name = self.attributes.repeat()
        if name is not None:
            self.context.fall_back("this start cannot change its %s as the program did when it was frozen" % name)

    def _check_attributes(self):
        """Ends the freezing process if the program has made a change that a thaw cannot repeat: the process may no longer be able to read
        its own files."""
        if self.attributes.refused():
            self._end(FREEZER_REFUSED)

    def _start(self, main, leave):
        try:
            module = self.context.main_module()
            self.exit.session = not self.exit.rehearses and session.is_wanted(main)
            if self.exit.session:
                call = session.call_of(module)
            else:
                self.exit.inspected = not self.exit.rehearses and session.follows()
                call = main_part.call_of(main, module, self.context.prepared)
                # Not in other starts: a reference to these names would keep their values alive to the end.
                if self.exit.inspected and main.kind == "script" and call.__globals__ is module.__dict__:
                    self.exit.script_names = module.__dict__
        except main_part.Fallback as reason:
            if self.running:
                self._end(USER_MISTAKE, "the script cannot be compiled; run it the ordinary way to see why")
            self.context.fall_back(reason)
        if self.attributes.repeats and not self.running and not self.exit.rehearses:
            self._repeat_attributes()
        self.exit.from_file = main.kind in ("script", "stdin")
        trampoline.Trampoline(call, leave)
        if self.watching != (None, None):
            _watch(*self.watching)
        if self.at is not None:
            self.at.begin()

    def _never_reached(self, holder):
        """Called when the main part has ended: expected in the thawed process; while freezing, it ended before its freeze point."""
        if self.front_end.state == "thawed":
            return self.exit.leave(holder)
        error = holder.pop()
        if self.at is not None and (error is None or isinstance(error, SystemExit)):
            self._end(USER_MISTAKE, self.at.never_reached())
        if error is not None:
            self._raised(error, "the program ended before it came to %s" % (" or ".join(self.request.at) or "snapboot.freeze_point()"))
        self._end(
            USER_MISTAKE,
            "the program ended without calling snapboot.freeze_point(), which its main part mentions. Expected the program to make "
            "that call with the given arguments; move the call, or remove it to freeze before the main part",
        )

    def _guard(self, call):
        """Calls a function. An error in the front end's own code must not look like an error of the program."""
        try:
            call()
        except Exception as error:
            self._unexpected(error)

    def _unexpected(self, error):
        """Handles an error in the front end's own code: reports it while freezing; in a thawed process, starts the program the ordinary
        way. Never returns."""
        text = described(error)
        if self.front_end.state == "thawed":
            self.context.fall_back("unexpected " + text)
        self.report.add("unexpected", text)
        self._end(USER_MISTAKE)

    def _raised(self, error, text=None):
        """Shows an error that the program's own code raised while it booted, as Python does, and ends."""
        self._check_attributes()
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith(FOLDER):
            trace = trace.tb_next
        sys.__excepthook__(type(error), error.with_traceback(trace), trace)
        self._end(PROGRAM_RAISED, text)

    def _stop_reads(self):
        if self.reading:
            self.reading = False
            if self.early is not None:
                self.settings_reads.stop()
                self.recipes.end(self.report)
                self.early.stop(self.report)
                self.context.learn(self.early)
                if self.context.title.shows_arguments() and self.at is None:
                    self.reads.early("its command line (getproctitle)", None)
                if self.early.knows_name:
                    self.report.add("compared", "the name of the script, as it is given")
            self.reads.stop(self.report, self.early is not None and self.early.read_umask())
            self.context.environment.was_read = self.reads.was_read_whole()

    def _end(self, status, error=None):
        """Ends the freezing process without the program's exit handlers: they would undo what is in the image."""
        self._stop_reads()
        if not sys.flags.no_site:
            self.report.add("site", "1")
        if error is not None:
            self.report.add("error", error)
        for name in self.attributes.changed():
            self.report.add("attribute", name[1:])
        try:
            self.report.write(self.folder)
        except OSError:
            status = NOT_WRITTEN
        flush("stdout", "stderr", "__stdout__", "__stderr__")
        posix._exit(status)


def _watch(trace, profile):
    sys.settrace(trace)
    sys.setprofile(profile)


KEPT = []
# CPython 3.11 and later specialise code after about ten runs.
WARM_UPS = 16
NEVER_STARTS = "it has a syntax error, which ends each of its starts"
BLIND = "who seeds random numbers cannot be seen, since the methods of random.Random are not those of CPython's own module"
DEAD_HOOK = (
    "the main part mentions %s, but it runs after the freeze, and a hook that it registers is never called. "
    "Register it in a module that --preload names, or call snapboot.freeze_point() behind it"
)
