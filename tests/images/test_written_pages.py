"""A thaw of Python does not write pages for nothing: what no program can end is immortal (front_end/immortal.py), the module that keeps the
lines of code is in the image (code_lines.py), and importers are not freed at the end (release.py).

That programs notice nothing of it is in the behaviour table (`dropped`, `code-lines`, `code-own-lines`).
"""

import subprocess

import pytest
from common import installed, pythons, support

pytestmark = pytest.mark.sample(2)

FRONT_END = "python/snapboot/front_end/"
COUNT = """
import sys
print(sum(int(line.split()[1]) for line in open("/proc/self/smaps") if line.startswith("Private_Dirty")))
"""
# Each makes the front end expect something else, or find another interpreter.
OTHERS = {
    "the count": ("WORD = object.__basicsize__ // 2\n", "WORD = object.__basicsize__\n"),
    "what is immortal": ('compile("a_name_of_the_front_end", "", "eval").co_names', "[object()]"),
    "the address": ("return id(things[0]), id(type(things[0]))\n", "return id(things), id(type(things[0]))\n"),
    "the build": ("not sys.abiflags and", 'sys.abiflags == "?" and'),
}


def with_immortal_objects():
    """The Pythons of this machine that have immortal objects, by version."""
    found = {}
    for path in pythons.candidates():
        asks = "import sys; print('%d.%d' % sys.version_info[:2], sys.version_info >= (3, 12) and not sys.abiflags)"
        told = subprocess.run([path, "-I", "-c", asks], capture_output=True, text=True)
        if told.returncode == 0 and told.stdout.split()[1] == "True":
            found[told.stdout.split()[0]] = str(path)
    return found


PYTHONS = with_immortal_objects()


@pytest.fixture(params=sorted(PYTHONS) or [None])
def python(request):
    if request.param is None:
        pytest.skip("there is no CPython 3.12 or later here")
    return PYTHONS[request.param]


def image_of(command, python, image, *options, env=None):
    bound = support.bound_to_variables(python)
    result = support.run([command, "freeze", "-o", image, *bound, *options, "--", python], env=env, log=False)
    assert result.status == 0, result
    return image


def test_a_thaw_writes_fewer_pages(python, tmp_path):
    command = installed.copy(tmp_path / "installation")
    own = image_of(command, python, tmp_path / "app.img")
    usual = int(support.thawed([own, "-c", COUNT]).out)
    for name, edit in OTHERS.items():
        top = tmp_path / name.replace(" ", "-")  # a list of preloaded libraries ends at a blank
        command = installed.copy(top)
        installed.edit(top, FRONT_END + "immortal.py", *edit)
        other = image_of(command, python, tmp_path / f"{name}.img")
        assert usual < 0.93 * int(support.thawed([other, "-c", COUNT]).out), name


# The objects that are immortal, and what the interpreter goes on to do with them.
USE = """
import _thread, builtins, gc, importlib.util, io, sys
print(all(sys.getrefcount(thing) > 1 << 28 for thing in (sys, builtins, vars(sys), len, io.TextIOWrapper)))
print(sys.getrefcount(object()) < 9, sys.getrefcount(importlib.util) < 1 << 28, sys.getrefcount(io) < 1 << 28)
gc.unfreeze()
for _ in range(3): gc.collect()
builtins.len, builtins.print, sys.intern = None, print, None
del builtins.len
builtins.open, sys.path_hooks[:] = None, []
class Writer(io.TextIOWrapper): pass
print([Writer(io.BytesIO()).encoding for _ in range(1000)][-1] is not None, len_is_gone())
for _ in range(3): gc.collect()
"""


def test_what_is_immortal_goes_on(python, tmp_path):
    image = image_of(support.SNAPBOOT, python, tmp_path / "app.img")
    gone = "def len_is_gone():\n    try: len\n    except NameError: return True\n"
    result = support.thawed([image, "-c", gone + USE])
    assert (result.status, result.out) == (0, "True\nTrue True True\nTrue True\n"), result


def test_the_module_that_keeps_lines_of_code_is_in_the_image(python, tmp_path):
    """Objects from before the freeze are not among those that the collector looks at."""
    image = image_of(support.SNAPBOOT, python, tmp_path / "app.img")
    code = "import gc, linecache, sys; print(sys.version_info < (3, 13) or all(thing is not linecache for thing in gc.get_objects()))"
    assert support.thawed([image, "-c", code]).out == "True\n"


# Counts when its only holder, `sys`, is all that is left. Folders of the search path have importers.
AT_THE_END = """
import io, sys
class Counting:
    def __del__(self, open=io.open):
        with open("/proc/self/smaps") as parts:
            print(sum(int(line.split()[1]) for line in parts if line.startswith("Private_Dirty")), flush=True)
sys.kept = Counting()
"""
FOLDERS, FILES = 40, 100


def test_importers_are_not_freed_at_the_end(python, tmp_path):
    """CPython 3.10 and 3.11 keep a copy of `sys`, and so do not free them either."""
    names = [f"package{number}" for number in range(FOLDERS)]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"import {name}.part\n")
        (tmp_path / name / "part.py").write_text("\n")
        for number in range(FILES):
            (tmp_path / name / f"a file that is listed {number}").touch()
    (tmp_path / "all_packages.py").write_text("".join(f"import {name}\n" for name in names))
    env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    written = []
    for name, edit in {"usual": None, "other": ("if all(type(importer) in IMPORTERS", "if not all(type(importer) in IMPORTERS")}.items():
        command = installed.copy(tmp_path / name)
        if edit:
            installed.edit(tmp_path / name, FRONT_END + "release.py", *edit)
        image = tmp_path / f"{name}.img"
        image_of(command, python, image, "--preload", "all_packages", env=env)
        written.append(int(support.thawed([image, "-c", AT_THE_END], env=env).out))
    assert written[0] + 100 < written[1], written
