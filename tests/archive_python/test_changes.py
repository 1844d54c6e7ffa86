"""Each kind of change of a Python program between two starts, one at a time; then many at random. Never anything that is no longer true.

An ordinary start without compiled files shows what is true: with them Python takes a source of the same size and second for unchanged.
SNAPBOOT_STEPS says how long the walks are; the seed is printed, and SNAPBOOT_SEED repeats it.
"""

import os
import random
import shutil
import subprocess

import pytest
from common import support
from common.waiting import settle

from . import programs, starts

pytestmark = pytest.mark.sample(3)

STEPS = int(os.environ.get("SNAPBOOT_STEPS", "12"))
SOURCES = ["first", "third", "broken", "package/__init__", "package/inner", "package/other"]


def source_of(app, state):
    """A source that is there."""
    there = [path for path in (app / f"late/{name}.py" for name in SOURCES) if path.is_file()]
    return state.choice(there or [app / "main.py"])


def put(path, text, times=None):
    """Another file in the place of one, as most editors write."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    if times is not None:
        os.utime(new, ns=times)
    os.replace(new, path)


def toggled(text):
    return text.replace("aa", "bb") if "aa" in text else text.replace("bb", "aa")


def edit(app, state):
    path = source_of(app, state)
    path.write_text(path.read_text() + f"MARK = {state.randrange(10**6)}\n")
    return f"edit {path.name}"


def edit_same_size(app, state):
    path = source_of(app, state)
    path.write_text(toggled(path.read_text()))
    return f"edit {path.name} in its size"


def edit_same_size_and_times(app, state):
    path = source_of(app, state)
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    path.write_text(toggled(path.read_text()))
    os.utime(path, ns=times)
    return f"edit {path.name} in its size and times"


def replace(app, state):
    path = source_of(app, state)
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns) if state.random() < 0.5 else None
    put(path, toggled(path.read_text()), times)
    return f"replace {path.name}"


def swap(app, state):
    """Two modules change places, with all their times."""
    one, other = app / "late/package/inner.py", app / "late/package/other.py"
    if one.is_file() and other.is_file():
        os.rename(one, app / "late/package/swapping")
        os.rename(other, one)
        os.rename(app / "late/package/swapping", other)
    return "swap inner and other"


def touch(app, state):
    path = source_of(app, state)
    os.utime(path)
    return f"touch {path.name}"


def shadow(app, state):
    """A module that is found earlier, or goes away again."""
    name = state.choice(["first.py", "missing.py", "third.py", "json.py", "package.py", "re/__init__.py", "last/__init__.py"])
    path = app / "early" / name
    if path.exists():
        path.unlink()
        if "/" in name:
            shutil.rmtree(path.parent)
    elif not (path.parent if "/" in name else path).exists():
        starts.write(app, {f"early/{name}": "TEXT = 'shadow'\nTHIRD = JSONDecoder = 1\n"} if not name.startswith(("re",
            "json")) else {f"early/{name}": "raise ImportError('shadow')\n"})
    return f"shadow {name}"


def empty_folder(app, state):
    """A folder by a module's name, which is no part of it, or goes away again."""
    path = app / "early" / state.choice(["first", "package", "missing"])
    path.rmdir() if path.is_dir() and not any(path.iterdir()) else path.mkdir(exist_ok=True)
    return f"folder {path.name}"


def delete(app, state):
    path = app / "late" / state.choice(["first.py", "package/inner.py", "package/__init__.py", "third.py"])
    kept = path.with_suffix(".kept")
    if path.exists():
        os.rename(path, kept)
        return f"delete {path.name}"
    os.rename(kept, path)
    return f"bring back {path.name}"


def module_to_package(app, state):
    module, package = app / "late/third.py", app / "late/third"
    if module.exists():
        package.mkdir()
        os.rename(module, package / "__init__.py")
        return "third becomes a package"
    if package.exists():
        os.rename(package / "__init__.py", module)
        shutil.rmtree(package)
        return "third becomes a module"
    return "nothing"


def retarget(app, state):
    """A module is a link, which leads elsewhere with each change."""
    path, new = app / "late/first.py", app / "late/link.new"
    target = state.choice(["../elsewhere/first.py", "../elsewhere/second_first.py"])
    (app / "elsewhere/second_first.py").write_text("TEXT = 'second elsewhere'\n")
    new.symlink_to(target)
    os.replace(new, path)
    return f"first -> {target}"


def retarget_folder(app, state):
    late, one, other = app / "late", app / "late.1", app / "late.2"
    if not late.is_symlink():
        os.rename(late, one)
        shutil.copytree(one, other, symlinks=True)
        (other / "last.py").write_text("print('the other folder')\n")
    new = app / "late.new"
    new.symlink_to(state.choice([one.name, other.name]))
    os.replace(new, late)
    return f"late -> {os.readlink(late)}"


def folder_goes(app, state):
    early, gone = app / "early", app / "early.gone"
    if early.exists():
        shutil.rmtree(gone, ignore_errors=True)
        os.rename(early, gone)
        return "early goes"
    os.rename(gone, early)
    return "early comes back"


def break_source(app, state):
    path = source_of(app, state)
    text = path.read_text()
    path.write_text(text.replace("def (\n", "") if "def (\n" in text else text + "def (\n")
    return f"break or mend {path.name}"


def unreadable(app, state):
    """A folder in place of a source."""
    path = app / "late/package/other.py"
    if path.is_dir():
        path.rmdir()
    elif not path.exists():
        path.mkdir()
    else:
        path.unlink()
    if not path.exists():
        path.write_text("TEXT = 'aa again'\n") if state.random() < 0.5 else None
    return "other.py goes, is a folder or comes"


def extension(app, state):
    """A file that is no extension module, where one would be found first."""
    path = app / "late/first.so"
    path.unlink() if path.exists() else path.write_text("no library")
    return "first.so"


def sourceless(app, state):
    path = app / "early/missing.pyc"
    if path.exists():
        path.unlink()
    elif path.parent.exists():
        path.write_bytes(b"no code at all")
    return "missing.pyc"


def unrelated(app, state):
    (app / "late/notes.txt").write_text(str(state.random()))
    return "notes"


CHANGES = [
    edit, edit_same_size, edit_same_size_and_times, replace, swap, touch, shadow, shadow, empty_folder, delete, module_to_package, retarget,
    retarget_folder, folder_goes, break_source, unreadable, extension, sourceless, unrelated,
]  # fmt: skip


def changed(program, change, state, walk):
    """One step: a change, and starts that must be right; the second one starts from what the first one stored. Whether the program
    still comes to its end."""
    try:
        walk.append(change(program.folder, state))
    except FileNotFoundError:
        walk.append(f"{change.__name__} had nothing to change")
    if state.random() < 0.5:
        settle()
    return program.compared(["main.py"], "; ".join(walk)).status == 3


@pytest.mark.parametrize("change", dict.fromkeys(CHANGES), ids=lambda change: change.__name__)
def test_after_a_change(tmp_path, change):
    state, walk = random.Random(change.__name__), []
    program = programs.made(tmp_path, PYTHONDONTWRITEBYTECODE="1").warm(["main.py"])
    for _ in range(2):
        changed(program, change, state, walk)


@pytest.mark.parametrize("version", [(3, 8), (3, 11), max(starts.interpreters(), default=(3, 13))], ids="{0[0]}.{0[1]}".format)
def test_random_changes(tmp_path, version):
    if version not in starts.interpreters():
        pytest.skip("there is no Python %d.%d" % version)
    state, seed = support.seeded()
    walk, answered, unanswered = [seed], 0, 0
    program = programs.made(tmp_path, starts.interpreters()[version], PYTHONDONTWRITEBYTECODE="1").warm(["main.py"])
    for step in range(STEPS):
        if step % 15 == 14:
            program = programs.made(tmp_path / str(step), program.python, PYTHONDONTWRITEBYTECODE="1").warm(["main.py"])
            walk = [seed]
        # Some changes break the program until they are taken back.
        if changed(program, state.choice(CHANGES), state, walk):
            counts = program.counted(["main.py"])[1]
            # How much there is to ask for depends on the changes: a module that is shadowed imports no others.
            answered += counts["hits"]
            unanswered += counts["misses"] + counts["stale"]
    assert answered >= unanswered, f"{seed}: the archive had {answered} answers, and {unanswered} times none"


def test_harmless_changes_leave_it_of_use(tmp_path):
    program = programs.made(tmp_path, PYTHONDONTWRITEBYTECODE="1").warm(["main.py"])
    for change in (touch, unrelated):
        change(program.folder, random.Random(1))
        settle()
        program.compared(["main.py"], change.__name__)
        _, counts = program.counted(["main.py"])
        assert counts["hits"] > 10 and not counts["misses"] + counts["stale"], (change.__name__, counts)


def test_compiled_files_change(tmp_path):
    """What lies in __pycache__ may go, be damaged or be written by others: the sources are what counts."""
    program = programs.made(tmp_path).warm(["main.py"])
    cache = program.folder / "late/__pycache__"
    ordinary = program.ordinary(["main.py"])
    for spoil in ("rm -rf {0}", "touch {0}/*", "mkdir {0}.kept; mv {0}/* {0}.kept", "for f in {0}/*; do echo > $f; done",
        "rm -rf {0}; echo > {0}"):
        subprocess.run(spoil.format(cache), shell=True)
        starts.same(ordinary, program.with_archive(["main.py"]), spoil)
        starts.same(ordinary, program.with_archive(["main.py"]), spoil)


@pytest.mark.parametrize("policy", ["content", "trust"])
def test_policies(tmp_path, policy):
    program = programs.made(tmp_path, PYTHONDONTWRITEBYTECODE="1", SNAPBOOT_ARCHIVE_POLICY=policy).warm(["main.py"])
    (program.folder / "late/first.py").write_text("TEXT = 'bb first'\n")
    out = program.with_archive(["main.py"]).out
    assert ("bb first" in out) == (policy == "content"), out


def test_options_share_an_archive(tmp_path):
    """Starts with other options take nothing that another compiled."""
    program = programs.made(tmp_path)
    (program.folder / "main.py").write_text(programs.MAIN.replace("sys.exit(3)", "import odd; print(odd.f())"))
    (program.folder / "late/odd.py").write_text("def f():\n    'doc'\n    return f.__doc__, __debug__, list(f.__code__.co_lines())\n")
    settle()
    for _ in range(2):
        for options in ([], ["-O"], ["-OO"], ["-X", "no_debug_ranges"], ["-X", "dev"], ["-X", "utf8"], ["-b"], ["-d"]):
            program.compared([*options, "main.py"], str(options), times=1)


MOVES = {
    "chdir": "os.chdir({!r})",
    "fchdir": "os.fchdir(os.open({!r}, os.O_RDONLY))",
    "ctypes": "__import__('ctypes').CDLL(None).chdir({!r}.encode())",
}


@pytest.mark.parametrize("version", [(3, 8), (3, 11), (3, 13)], ids="{0[0]}.{0[1]}".format)
@pytest.mark.parametrize("move", MOVES)
def test_the_working_directory_changes(move, version, tmp_path):
    """Modules below the empty entry of sys.path are those of where the process is."""
    python = starts.interpreters().get(version) or pytest.skip("there is no Python %d.%d" % version)
    names = ["alpha", "beta", "gamma"]
    starts.write(tmp_path, {f"{place}/{name}.py": f"print({place!r})" for place in ("here", "there") for name in names})
    code = ["import os, sys, colorsys, sched, filecmp, tabnanny, wave"]
    for place in ("there", "here", "there"):
        code += [f"import {name}; del sys.modules[{name!r}]" for name in names]
        code.append(MOVES[move].format(str(tmp_path / place)))
    program = starts.Starts(python, tmp_path / "here")
    settle()
    result = program.compared(["-c", "\n".join([*code, "import beta"])], times=3)
    assert result.out.split() == ["here"] * 3 + ["there"] * 3 + ["here"] * 3 + ["there"], result
