"""Loads the modules that the program needs, so that they are in the image."""

import posix
import sys

from .channel import FACT
from .stdio import flush


class UnknownPreload(Exception):
    """Raised for a name in --preload without a module. Its text says what was looked for, where, and what to do."""


class NoMainPart(Exception):
    """Raised if there is no module for `python -m`, or no `__main__` in a folder or archive. Its text says so as UnknownPreload's does."""


def load_preloads(names, report=None):
    """Imports the modules that the user named; for MODULE:FUNCTION, also calls the function. Raises UnknownPreload, or whatever a module or
    function raises.

    report: records the arguments that may lead to another module of that name, if the program may be one that looks for modules in the
    current directory by itself; None for any other program.
    """
    for name in names:
        name, _, function = name.partition(":")
        try:
            __import__(name)
        except ModuleNotFoundError as error:
            if error.name is None or not (name + ".").startswith(error.name + "."):
                raise
            if report is None or not _load_from_here(name, report):
                raise UnknownPreload(_explain(name, error.name)) from None
        if function:
            call(name, function)


def call(name, function):
    """Calls a function of a loaded module. Raises UnknownPreload, or whatever the function raises."""
    found = sys.modules[name]
    for part in function.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise UnknownPreload("--preload %s:%s: module %s has no such function. Check its spelling." % (name, function, name))
    found()


def _load_from_here(name, report):
    """Imports a module of the current directory, as servers and task queues do that get their application as an argument: they put that
    directory first on sys.path. Returns False when there is none."""
    first = name.partition(".")[0]
    try:
        here = posix.getcwd()
    except OSError:
        return False
    places = (first, first + ".py")
    if first in sys.modules or here in sys.path or not any(_exists(here + "/" + place) for place in places):
        return False
    sys.path.insert(0, here)
    try:
        __import__(name)
    finally:
        sys.path.remove(here)
    for argument in LEAD_ELSEWHERE:
        report.add("guard", argument)
    # In another directory the program would find another module.
    report.add_event(FACT, "cwd", "--preload", "--preload " + name)
    return True


def _exists(path):
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


# Options of these programs that name another directory for the application.
LEAD_ELSEWHERE = ("--chdir*", "--app-dir*", "--pythonpath*", "--workdir*", "-c*", "--config*")


def _explain(name, missing):
    message = "--preload %s: there is no module %r" % (name, missing)
    if not all(part.isidentifier() for part in name.split(".")):
        return message + ". Expected the name of a module, as `import` takes it, such as json or xml.etree."
    return "%s in %s (searched by %s). Check its spelling, install it there, or leave it out of --preload." % (
        message,
        _places(),
        sys.executable or "this interpreter",
    )


def _places():
    return ", ".join(entry or "the current directory" for entry in sys.path)


class Packages:
    """The packages that contain the module. Reading its source imports them: an import like those of _imports."""

    guarded = False

    def __init__(self, module):
        self.module = module

    def run(self, _):
        """Imports them. A syntax error or a missing module is left to the code that reads the source."""
        try:
            module_source(self.module)
        except (SyntaxError, NoMainPart):
            pass


def load_imports(imports, package, folder, importers, reads):
    """Runs the first imports of the main part, as far as they have no visible effects. Returns the remaining imports.

    imports: a list of Import. package: the package to which relative ones are relative. folder: the control directory (bytes). importers
    and reads: the Importers and the Reads that watch.

    The first import that fails, prints, starts a thread, ends the process, or reads what differs in each start must run at each start. It
    and all imports after it are left to the program. A child finds out which one that is, so this process stays clean.
    """
    marks = _try_in_child(imports, package, folder, importers, reads) if imports else []
    for one, good in zip(imports, marks):
        if good:
            one.run(package)
    return imports[len(marks) :]


def _try_in_child(imports, package, folder, importers, reads):
    """Lets a child run the imports. Returns, for those without visible effects, whether they succeeded."""
    from .trial_imports import in_child

    passed, tell = posix.pipe()
    in_child(lambda: _run_in_child(imports, package, folder, tell, importers, reads), folder, importers, reads)
    posix.close(tell)
    # A process started by an import may hold the other end open for ever: read only what is there.
    posix.set_blocking(passed, False)
    try:
        marks = posix.read(passed, 65536)
    except BlockingIOError:
        marks = b""
    posix.close(passed)
    return [mark == GOOD[0] for mark in marks]


def _run_in_child(imports, package, folder, tell, importers, reads):
    from .lost_threads import lost
    from .making import TEMPORARY, Making
    from .trial_imports import Output, SeenOutside

    early = reads.count_early()
    reads.attributes.look()
    made = []
    making = Making(made)
    output = Output(folder, reads.terminal)
    seen_outside = SeenOutside(folder, importers)
    for one in imports:
        mark = GOOD
        try:
            one.run(package)
        except ImportError:
            if not one.guarded:
                raise
            mark = GUARDED
        flush("stdout", "stderr")
        making.look()
        making.clean_up()
        if output.size() or seen_outside.events() or reads.count_early() > early or TEMPORARY in made or lost():
            return
        # Such an import forbids a freeze; each thaw repeats its other changes.
        if any(name[0] == "-" for name in reads.attributes.look()):
            return
        posix.write(tell, mark)


# The child's result for an import: it succeeded; it failed, and the program is prepared for that.
GOOD = b"+"
GUARDED = b"-"


def module_source(name):
    """Returns the source of the module that `python -m name` runs, and its package. Imports the parent packages, as `python -m` does.

    Returns (None, None) if there is no source, or something else fails: the thawed program will report that. Raises SyntaxError and
    NoMainPart, with which every start would end.
    """
    import runpy

    try:
        if name == "__main__":
            found, spec, _ = runpy._get_main_module_details(NoMainPart)
        else:
            found, spec, _ = runpy._get_module_details(name, NoMainPart)
        return spec.loader.get_source(found), spec.parent
    except SyntaxError:
        raise
    except NoMainPart as error:
        said = str(error).rstrip(".")
        if name == "__main__":
            raise NoMainPart(said + NO_FOLDER) from None
        raise NoMainPart("-m %s: %s" % (name, said) + NO_MODULE % (_places(), sys.executable or "this interpreter")) from None
    except Exception:
        return None, None


NO_FOLDER = ". Each start would end with that. Expected a script, or a directory or archive that has a __main__.py in it."
NO_MODULE = (
    " (looked in %s). Each start would end with that. Check the spelling, install the module for %s, or freeze in the directory "
    "where the command works."
)
