"""The script on which `snapboot freeze` starts the interpreter, with -S, to learn what `site` reads: of the environment, of the process, of
what differs in each start.

Before any front end, `site` runs code that is not the interpreter's: lines of .pth files, sitecustomize, usercustomize. It runs here once
more, in a process that is thrown away. Its reads, the modules that it looked for, and the names of the variables that it sets or removes
(`site_variable`, for environment.py), are written to the file `site` of the control directory. The argument is the kind of main part, as in
the request.
"""

import posix
import sys

_FOLDER = __file__.rpartition("/")[0]
if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[0]  # that folder
_loader = {"__name__": "snapboot.front_end.loader"}
with open(_FOLDER + "/loader.py", encoding="utf-8") as _file:
    exec(compile(_file.read(), _file.name, "exec"), _loader)
_load = _loader["loader"](_FOLDER)
_directory = posix.environ.pop(b"SNAPBOOT_FREEZE_DIR")
posix.unsetenv(b"SNAPBOOT_FREEZE_DIR")
_report = _load("report").Report()


class _Searched:
    """Finds nothing, and records the names."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if "." not in name:
            _report.add("searched", name)


class _Request:
    """What Early asks of a request."""

    main = sys.argv.pop()
    at = ()


class _NoRecipes:
    """What Early asks of recipes: none makes up for what is read here."""

    @staticmethod
    def renew_look(frame, of):
        return False


sys.meta_path.insert(0, _Searched)
# `site` imports it first of all. Its functions are watched.
import os  # noqa: E402, F401

_reads = _load("reads").Reads(_directory, lambda name, value: None)
_early = _load("early").Early(_reads, _Request, _NoRecipes)
_before = dict(os.environ._data)
try:
    import site

    site.main()
finally:
    _early.stop(_report)
    for _, name, _ in _early.parts:
        _reads.early("a part of sys.%s" % name, None)
    _reads.stop(_report, _early.read_umask())
    _after = os.environ._data
    for _name in {*_before, *_after}:
        if _before.get(_name) != _after.get(_name):
            _report.add("site_variable", _name)
    _report.write(_directory, "site")
