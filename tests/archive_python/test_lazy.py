"""Lazy imports: programs do what they do without, whatever they import, and what they do not use is not imported."""

import itertools
import json
import os
import re

import pytest
from common import support

from . import starts

INTERPRETERS = starts.interpreters()
# One start learns, the next ones have lazy imports.
STARTS = 3

# Modules that programs below import. Each says so when it is run.
PACKAGE = {
    "tale/__init__.py": "import quiet\nquiet.note(__name__)\n",
    "tale/first.py": "import quiet\nquiet.note(__name__)\nVALUE = 1\ndef say(): return 'said'\nclass Kind: pass\n",
    "tale/second.py": (
        "import quiet\n"
        "from . import first\n"
        "from .first import VALUE as ONE, say\n"
        "quiet.note(__name__)\n"
        "def both(): return ONE, say(), first.VALUE\n"
    ),
    "tale/same.py": "import quiet\nquiet.note(__name__)\ndef same(): return 'a function'\n",
    "lone.py": "import quiet\nquiet.note(__name__)\nNAME = 'lone'\nFALSE = 0\n",
    "quiet.py": "NOTED = []\ndef note(name):\n    NOTED.append(name)\n",
}

# What each prints is the same with lazy imports and without.
SAME = {
    "import": "import lone\nprint(lone.NAME)",
    "import as": "import lone as it, tale.first as one\nprint(it.NAME, one.VALUE)",
    "dotted": "import tale.first\nimport tale.second\nprint(tale.first.VALUE, tale.second.both())",
    "from": "from tale.first import VALUE, say as speak\nprint(VALUE, speak())",
    "a value that is false": "from lone import FALSE\nprint([FALSE for _ in range(2)], FALSE or 'none')",
    "a module of a package": "from tale import second\nprint(second.both())",
    "used at once": (
        "from tale.first import Kind\n"
        "class Mine(Kind):\n"
        "    kind = Kind\n"
        "def f(it=Kind): return it\n"
        "print(Mine.__mro__, f(), Mine.kind)"
    ),
    "annotations": (
        "from tale.first import Kind\n"
        "def f(it: Kind) -> 'Kind': return it\n"
        "import typing\n"
        "print(typing.get_type_hints(f))"
    ),
    "annotations kept as text": (
        "from __future__ import annotations\n"
        "from tale.first import Kind\n"
        "def f(it: Kind): return it\n"
        "import typing\n"
        "print(f.__annotations__, typing.get_type_hints(f))"
    ),
    "data classes": (
        "from __future__ import annotations\n"
        "import dataclasses, typing\n"
        "from tale.first import Kind\n"
        "@dataclasses.dataclass\n"
        "class D:\n"
        "    kind: typing.ClassVar[Kind] = 1\n"
        "    n: int = 2\n"
        "print(D(), dataclasses.fields(D)[0].name)"
    ),
    "functions": (
        "import lone\n"
        "def f():\n"
        "    def g(): return [lone.NAME for _ in '1']\n"
        "    return g\n"
        "print(f()(), (lambda: lone.NAME)())"
    ),
    "local names": (
        "import lone\n"
        "def f(lone): return lone\n"
        "def g():\n"
        "    lone = 2\n"
        "    return lone\n"
        "print(f(1), g(), [lone for lone in 'a'], lone.NAME)"
    ),
    "bound again": "import lone\nlone = 3\nprint(lone)",
    "deleted": "import lone\ndel lone\ntry:\n    lone\nexcept NameError as error: print(error)",
    "global": "import lone\ndef f():\n    global lone\n    lone = 4\nf()\nprint(lone)",
    "globals()": "import lone\nprint(globals()['lone'].NAME, sorted(k for k in globals() if k[0] != '_'))",
    "vars()": "import lone\nprint(type(vars()['lone']), sorted(k for k, v in vars().items() if k[0] != '_'))",
    "eval": (
        "import lone\n"
        "print(eval('lone.NAME'), eval('it.NAME', {'it': lone}))\n"
        "exec('print(lone.NAME)')\n"
        "print(eval(compile('lone.NAME', '', 'eval')))"
    ),
    "strings": "import lone\nprint(f'{lone.NAME!r:>9}')",
    "a package's own name": "import shadow\nprint(shadow.same())",
    "from another module": (
        "import shadow\n"
        "from shadow import lone as one\n"
        "print(one.NAME, shadow.first.VALUE, vars(shadow)['second'].both())"
    ),
    "import *": "from shadow import *\nprint(lone.NAME, first.VALUE, same())",
    "dir": "import shadow\nprint([name for name in dir(shadow) if name[0] != '_'], hasattr(shadow, 'nothing'), hasattr(shadow, 'lone'))",
    "setting": "import shadow\nshadow.lone = 5\nprint(shadow.lone, shadow.get())",
    "a submodule that another has imported": "import other\nimport tale\nother.get\nprint(tale.first.VALUE)",
    "a missing module": "try:\n    import nowhere\nexcept ImportError as error:\n    print(error)",
    "a missing module, not caught": "import nowhere\n",
    "a circle": "import ring_a\nprint(ring_a.a(), ring_a.ring_b.b())",
    "an error in the program": "import lone\ndef f():\n    return (1 + lone.NAME +\n            lone.missing)\nf()",
    "exit": "import sys, lone\nprint(lone.NAME)\nsys.exit(3)",
    "reload": "import importlib, lone\nprint(importlib.reload(lone).NAME, importlib.reload(importlib.import_module('shadow')).get().NAME)",
    "conditions": "import sys\nif sys:\n    import lone\nelse:\n    from tale import lone\nprint(lone.NAME)",
    "in try": (
        "try:\n    import lone\nexcept ImportError:\n    lone = None\nfinally:\n    import tale.first\nprint(lone.NAME)"
    ),
    "__main__": (
        "import lone\n"
        "import __main__\n"
        "print(__main__.lone.NAME, __name__, __file__[-7:], __spec__, __loader__.__class__)"
    ),
    "at exit": "import atexit, lone\natexit.register(lambda: print(lone.NAME, '__file__' in globals()))",
    "threads": (
        "import threading, lone, tale.second\n"
        "ready = threading.Barrier(8)\n"
        "found = []\n"
        "def f():\n"
        "    ready.wait()\n"
        "    found.append((lone.NAME, tale.second.both()))\n"
        "all = [threading.Thread(target=f) for _ in range(8)]\n"
        "for t in all: t.start()\n"
        "for t in all: t.join()\n"
        "import quiet\n"
        "print(set(found), len(found), sorted(quiet.NOTED))"
    ),
    "pickle": "import pickle, tale.first\nprint(type(pickle.loads(pickle.dumps(tale.first.Kind()))))",
    "inspect": "import inspect, shadow\nprint(inspect.getsource(shadow.get), [n for n, v in inspect.getmembers(shadow) if n[0] != '_'])",
}
MODULES = {
    **PACKAGE,
    "shadow/__init__.py": (
        "import lone\nfrom tale import first, second\nfrom .same import same\ndef get(): return lone\n"
    ),
    "shadow/same.py": "def same(): return 'shadow'\n",
    "other.py": "import tale.first\ndef get(): return tale.first\n",
    "ring_a.py": "import ring_b\ndef a(): return ring_b.b()\n",
    "ring_b.py": "import ring_a\ndef b(): return ring_a.__name__\n",
}


@pytest.fixture(params=sorted(INTERPRETERS), ids=lambda version: "python%d.%d" % version)
def python(request):
    """The path of an interpreter; the tests run for each."""
    return INTERPRETERS[request.param]


class Program(starts.Starts):
    """A program, and its starts with lazy imports."""

    def __init__(self, python, folder, files, **variables):
        folder = folder / "program"
        folder.mkdir()
        starts.write(folder, {**MODULES, **files})
        starts.settle()
        super().__init__(python, folder, **variables)

    def lazy(self, words=("main.py",), filter="*", log=False, **options):
        """The Result of a start with lazy imports."""
        more = {"SNAPBOOT_LAZY": filter, **({"SNAPBOOT_LOG": "1"} if log else {})}
        return self.with_archive(words, more, **options)

    def same(self, words=("main.py",), filter="*"):
        """Fails the test when starts with lazy imports do not do what an ordinary one does."""
        ordinary = self.ordinary(words)
        for number in range(1, STARTS + 1):
            started = self.lazy(words, filter)
            # What a start says that has failed.
            started.err = re.sub("^snapboot: this start had lazy imports.*\n", "", started.err, flags=re.MULTILINE)
            starts.same(ordinary, started, f"start {number} with lazy imports")
        return ordinary

    def noted(self, words=("main.py",), filter="*"):
        """What a program prints once it was learnt."""
        for _ in range(STARTS - 1):
            self.lazy(words, filter)
        return self.lazy(words, filter).out.split()


def rows():
    """Which program runs on which interpreter: all on the newest, every third on each other one (SNAPBOOT_PYTHONS=all: all)."""
    every = os.environ.get("SNAPBOOT_PYTHONS") == "all"
    return [
        pytest.param(version, name, id="python%d.%d-%s" % (*version, name))
        for version in sorted(INTERPRETERS)
        for number, name in enumerate(SAME)
        if every or version == max(INTERPRETERS) or number % 3 == version[1] % 3
    ]


@pytest.mark.parametrize(("python", "name"), rows(), indirect=["python"])
def test_programs_do_the_same(python, tmp_path, name):
    Program(python, tmp_path, {"main.py": SAME[name] + "\n"}).same()


NOTED = "\nimport quiet as q\nprint(*q.NOTED)\n"
# Programs, and the modules that are run.
RUN = {
    "nothing is used": ("import lone, tale.first\nfrom tale.second import both", []),
    "one is used": ("import lone, tale.first\nlone", ["lone"]),
    "a member is used": ("from tale.second import both\nboth", ["tale", "tale.second"]),
    "all members that are used": ("from tale.second import both\nboth()", ["tale", "tale.second", "tale.first"]),
    "in a function that is not called": ("import lone\ndef f(): return lone", []),
    "in a function that is called": ("import lone\ndef f(): return lone\nf()", ["lone"]),
    "in try": ("try:\n    import lone\nexcept ImportError: pass\nimport tale", ["lone"]),
    "in with": ("import contextlib\nwith contextlib.suppress(Exception):\n    import lone", ["lone"]),
    "in a function": ("def f():\n    import lone\nf()", ["lone"]),
    "in a class": ("class C:\n    import lone", ["lone"]),
    "import *": ("from lone import *", ["lone"]),
    "in another module": ("import shadow\nshadow.get", []),
    "read from another module": ("import shadow\nshadow.get()", ["lone"]),
    "names alone": ("import lone\n'lone' in globals()\n[n for n in globals()]\nglobals().update(a=1)", []),
}


@pytest.mark.parametrize("name", RUN)
def test_what_is_not_used_is_not_run(python, tmp_path, name):
    source, modules = RUN[name]
    assert Program(python, tmp_path, {"main.py": source + NOTED}).noted() == modules


FILTERS = {
    "*": ["tale", "tale.first"],
    "lone": ["tale", "tale.first", "tale.second"],
    "tale": ["lone", "tale", "tale.first"],
    "!lone": ["lone", "tale", "tale.first"],
    "!tale": ["tale", "tale.first", "tale.second"],
    "l*e,tale": ["tale", "tale.first"],
    "*,!tale.second": ["tale", "tale.second", "tale.first"],
    "nothing": ["lone", "tale", "tale.first", "tale.second"],
}


@pytest.mark.parametrize("filter", FILTERS)
def test_filter(tmp_path, filter):
    source = "import lone\nimport tale.first\nimport tale.second as other\ntale.first.VALUE" + NOTED
    program = Program(support.PYTHON, tmp_path, {"main.py": source})
    assert sorted(program.noted(filter=f"{filter},quiet" if filter[0] != "!" else filter)) == sorted(FILTERS[filter])


def test_ways_to_name_the_main_part(python, tmp_path):
    files = {
        "main.py": "import lone, sys" + NOTED + "print(sys.argv[1:])\n",
        "pack/__init__.py": "",
        "pack/__main__.py": "import lone" + NOTED,
    }
    files["folder/__main__.py"] = "import sys\nsys.path.insert(1, '.')\nimport lone" + NOTED
    program = Program(python, tmp_path, files)
    for words in (["main.py", "a"], ["-c", files["main.py"], "a"], ["-m", "main", "a"], ["-m", "pack"], ["folder"]):
        program.lazy(words)
        program.lazy(words)
        lines = program.lazy(words).out.splitlines()
        assert lines[0] == "", words
        assert lines[1:] == (["['a']"] if "a" in words else []), words


def test_standard_input_is_run_as_ever(tmp_path):
    program = Program(support.PYTHON, tmp_path, {})
    for _ in range(STARTS):
        result = program.lazy(["-"], input=b"import lone\nprint(lone.NAME)\n")
        assert (result.out, result.err) == ("lone\n", "")


# Statements of a module that change something outside it, and what is said of them.
EFFECTS = {
    "import os\nos.environ['TOLD'] = '1'": "changes variables of the environment",
    "import atexit\natexit.register(print)": "changes what is called at exit",
    "import codecs\ncodecs.register(lambda name: None)": "registers a codec",
    "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)": "changes a signal handler",
    "import warnings\nwarnings.simplefilter('error')": "changes the filters of warnings",
    "import logging\nlogging.getLogger().addHandler(logging.NullHandler())": "changes the root logger",
    "import sys\nsys.path_hooks.append(print)": "changes sys.path_hooks",
    "import sys\nsys.meta_path.append(object())": "changes sys.meta_path",
    "print('loud')": "writes to sys.stdout",
    "import quiet\nquiet.added = 1": "adds added to quiet",
    "import sys, quiet\nsys.modules['nick'] = quiet": "adds nick to sys.modules",
    "import quiet\nclass C: pass\nquiet.NOTED.append(C)": "is registered in quiet.NOTED",
    "import copyreg\ncopyreg.pickle(range, repr)": "changes how <class 'range'> is copied",
    "import collections.abc, quiet\ncollections.abc.Sized.register(type(quiet))": "registers <class 'module'> with",
    "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()": "changes the threads",
}


@pytest.mark.parametrize("source", EFFECTS)
def test_a_module_whose_import_has_effects_is_imported_where_it_stands(tmp_path, source):
    files = {
        "effect.py": source + "\n",
        "main.py": (
            "import quiet\n"
            "import effect\n"
            "import lone\n"
            "import sys\n"
            "print('effect' in sys.modules, 'lone' in sys.modules)\n"
        ),
    }
    program = Program(support.PYTHON, tmp_path, files)
    first = program.lazy(log=True)
    assert f"effect will be imported where it stands: it {EFFECTS[source]}" in first.err
    second = program.lazy(log=True)
    assert f"effect is imported where it stands: it {EFFECTS[source]}" in second.err
    assert "True False" in second.out
    assert "lone" not in second.err


def test_an_error_names_the_place_of_the_import(python, tmp_path):
    files = {
        "main.py": ("import lone\nfrom tale.first import nothing\n\ndef f():\n    return nothing\n\nprint(1)\nf()\n")
    }
    first = PACKAGE["tale/first.py"] + "import os\nif os.path.exists('flag'): nothing = 1\n"
    program = Program(python, tmp_path, {**files, "tale/first.py": first, "flag": ""})
    program.lazy()
    (program.folder / "flag").unlink()
    result = program.lazy()
    assert result.out == "1\n" and result.status == 1
    assert (
        "main.py, line 2, imports tale.first.nothing lazily, which failed when it was used; --lazy='!tale.first'"
        in result.err
    )
    assert "ImportError: cannot import name 'nothing' from 'tale.first'" in result.err
    assert re.search(r'main.py", line 5, in f\n    return nothing', result.err)
    assert "snapboot: this start had lazy imports." not in result.err.split("Traceback")[0]


def test_a_failed_import_is_tried_again(tmp_path):
    source = (
        "import late\n"
        "for _ in range(2):\n"
        "    try:\n"
        "        print(late.VALUE)\n"
        "    except ZeroDivisionError:\n"
        "        print('failed')\n"
    )
    late = "import os, quiet\nVALUE = 1\nif os.path.exists('flag') and getattr(quiet, 'fail', 1): quiet.__dict__['fail'] = 0; 1 / 0\n"
    program = Program(support.PYTHON, tmp_path, {"main.py": source, "late.py": late})
    program.lazy()
    starts.write(program.folder, {"flag": ""})
    assert program.lazy().out == "failed\n1\n"


def test_who_fails_learns_how_to_find_the_culprit(tmp_path):
    program = Program(support.PYTHON, tmp_path, {"main.py": "import lone\nlone\n1 / 0\n"})
    program.lazy()
    assert "--lazy='!NAME'" in program.lazy().err
    assert "--lazy" not in program.with_archive(["main.py"]).err


def test_edited_modules(tmp_path):
    program = Program(
        support.PYTHON, tmp_path, {"main.py": ("import lone\nfrom tale.second import both\nprint(lone.NAME, both())\n")}
    )
    program.same()
    for number in itertools.count(2):
        starts.settle()
        starts.write(
            program.folder, {"lone.py": f"import json, tale.first\nNAME = json.dumps({10**number}), tale.first.VALUE\n"}
        )
        starts.write(
            program.folder,
            {"main.py": f"import lone\nfrom tale.first import VALUE\nprint(lone.NAME, VALUE, {number})\n"},
        )
        program.same()
        if number == 4:
            break


def test_a_module_that_is_given_an_effect(tmp_path):
    """It has to be imported, although nobody uses it: what was known of it was known of another source."""
    program = Program(support.PYTHON, tmp_path, {"main.py": "import lone\nprint('done')\n"})
    assert program.noted() == ["done"]
    starts.write(program.folder, {"lone.py": "import atexit\natexit.register(print, 'last words')\n"})
    for _ in range(STARTS):
        starts.settle()
        assert program.lazy().out == "done\nlast words\n"


def changed(program):
    """The files whose code with lazy imports is in the archive."""
    done = support.run([support.SNAPBOOT, "archive", "list", "--json", program.archive], log=False)
    names = [entry["name"] for entry in json.loads(done.out)["entries"] if entry["kind"] == "code"]
    return {name.rpartition("/")[2] for name in names if name.startswith(str(program.folder.resolve()))}


def test_a_start_changes_so_much_code(tmp_path):
    """The one that learns only that of the main part, each other one half a megabyte of what it has to import."""
    large = "# %s\nimport lone\n" % ("x" * 300_000)
    files = {f"large{number}.py": large for number in range(4)}
    main = "".join(f"import {name[:-3]}\n{name[:-3]}\n" for name in files)
    program = Program(support.PYTHON, tmp_path, {"main.py": main, **files})
    for known in (0, 2, 4):
        program.lazy()
        assert changed(program) == {"main.py", *sorted(files)[:known]}


def test_code_with_and_without_is_never_mixed_up(tmp_path):
    program = Program(support.PYTHON, tmp_path, {"main.py": "import shadow" + NOTED})
    for _ in range(STARTS):
        assert program.lazy().status == 0
        assert program.with_archive(["main.py"]).out.split() == ["lone", "tale", "tale.first", "tale.second"]
    assert program.lazy().out == "\n"


def test_the_command(tmp_path):
    program = Program(
        support.PYTHON,
        tmp_path,
        {"main.py": "import os, lone, tale" + NOTED + "print(os.environ.get('SNAPBOOT_LAZY'))\n"},
    )
    env = support.environment(SNAPBOOT_ARCHIVE=str(program.archive))

    def run(*words):
        return support.run([support.SNAPBOOT, "run", *words], env=env, log=False, cwd=program.folder)

    command = ["--", program.python, "main.py"]
    assert run("--lazy", *command).out == "lone tale\nNone\n"
    assert run("--lazy", *command).out == "\nNone\n"
    assert run("--lazy=!lone", *command).out == "lone\nNone\n"
    # Python itself says so, as without --lazy.
    for words in ([program.python, "missing.py"], [program.python, "--version"], [program.python, "--nonsense"], ["./missing"]):
        plain, lazy = (run(*options, "--", *words) for options in ([], ["--lazy"]))
        assert (plain.status, plain.out, plain.err) == (lazy.status, lazy.out, lazy.err)
        assert "--lazy" not in lazy.err and (lazy.status != 0) == (words[-1] != "--version")
    for other in (["/bin/true"], [program.python, "-S", "main.py"], [program.python, "-I", "main.py"]):
        refused = run("--lazy", "--", *other)
        assert refused.status == 2 and f"and {other[0]} is none" in refused.err, refused


def test_interrupted_as_ever(python, tmp_path):
    source = (
        "import os, signal, lone\nprint(lone.NAME, flush=True)\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass\n"
    )
    Program(python, tmp_path, {"main.py": source}).same()
