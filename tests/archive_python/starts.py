"""Starts one program the ordinary way and with the boot archive of CPython, on each interpreter at hand, and compares them."""

import atexit
import difflib
import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from common import pythons, support
from common.waiting import settle

RUN = support.ROOT / "python/snapboot/archive/run"


@functools.cache
def interpreters():
    """(major, minor) -> path of an interpreter: pyenv's, else those on the PATH."""
    found = {}
    for path in [*pythons.candidates(), support.PYTHON]:
        code = "import sys; print(*sys.version_info[:2], getattr(sys, 'abiflags', '') + '.')"
        told = subprocess.run([path, "-I", "-c", code], capture_output=True, text=True)
        words = told.stdout.split()
        if told.returncode == 0 and words[2] == "." and (int(words[0]), int(words[1])) in pythons.VERSIONS:
            found[int(words[0]), int(words[1])] = os.path.realpath(path)
    return found


@functools.cache
def image_of(python):
    """An image of an interpreter alone in an environment that is enabled, and the variables that its starts have.

    An ordinary start with these variables has no archive as long as SNAPBOOT_ARCHIVE is not set.
    """
    folder = pathlib.Path(tempfile.mkdtemp(prefix="snapboot-enabled-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "enabled").mkdir()
    path = RUN / "sitecustomize.py"
    code = f"names = {{'__name__': 'snapboot.archive.run', '__file__': {str(path)!r}}}\n"
    code += "exec(open(names['__file__']).read(), names)\n"
    code += "if {b'SNAPBOOT_ARCHIVE', b'SNAPBOOT_FREEZE_DIR'} & {*names['posix'].environ}: names['switch_on_here']()\n"
    (folder / "enabled/sitecustomize.py").write_text(code)
    variables = {"PYTHONPATH": str(folder / "enabled")}
    image = support.frozen(folder / "bare.img", [python], env=support.environment(**variables), cwd=folder)
    return image, variables


class Starts:
    """A program in a folder, an archive of its own, and the two ways to start it."""

    def __init__(self, python, folder, archive=None, **variables):
        """python: the interpreter. variables: further ones of all starts."""
        self.python, self.folder, self.variables = python, pathlib.Path(folder), variables
        self.place = self.folder.parent / (self.folder.name + ".archives")
        self.place.mkdir(mode=0o700, exist_ok=True)
        self.archive = archive or self.place / "boot.archive"

    def ordinary(self, words, **options):
        """The Result of an ordinary start with these arguments."""
        return self._run(words, support.environment(**self.variables), options)

    def with_archive(self, words, more=None, **options):
        """The Result of a start with the archive; `more` are variables."""
        env = support.environment(**self.variables)
        before = env.get("PYTHONPATH")
        env["PYTHONPATH"] = os.fspath(RUN) if before is None else f"{RUN}:{before}"
        env["SNAPBOOT_ARCHIVE"] = os.fspath(self.archive)
        return self._run(words, {**env, **(more or {})}, options)

    def not_thawed(self, words, **options):
        """The Result of the ordinary start that `thawed` takes the place of: it has the same variables, and so the same `sys.path`."""
        return self._run(words, support.environment(**{**self.variables, **image_of(self.python)[1]}), options)

    def thawed(self, words, more=None, **options):
        """The Result of a start from an image of the interpreter alone, whose process has the archive; `more` are variables."""
        image, variables = image_of(self.python)
        env = support.environment(**{**self.variables, **variables}, SNAPBOOT_ARCHIVE=os.fspath(self.archive))
        return support.run([image, *words], env={**env, **(more or {})}, log=False, **{"cwd": self.folder, **options})

    def _run(self, words, env, options):
        return support.run([self.python, *words], env=env, log=False, **{"cwd": self.folder, **options})

    def compared(self, words, what="", times=2, **options):
        """Start both ways, `times` with the archive. Fails the test when they differ. Returns the ordinary Result."""
        ordinary = self.ordinary(words, **options)
        for number in range(1, times + 1):
            same(ordinary, self.with_archive(words, **options), f"{what}, start {number} with the archive")
        return ordinary

    def warm(self, words, **options):
        """Start with the archive until it has what the program imports."""
        settle()
        self.ordinary(words, **options)
        self.compared(words, "filling the archive", **options)
        return self

    def counted(self, words, **options):
        """Start with the archive, which tells what it did. Returns the Result, and counts by 'hits', 'misses', 'stale'."""
        result = self.with_archive(words, {"SNAPBOOT_STATS": "1"}, **options)
        told = re.search(r"^snapboot: (\d+) hit, (\d+) miss, (\d+) stale, (\d+) revalidated.*\n", result.err, re.MULTILINE)
        numbers = map(int, told.groups()) if told else [0] * 4  # it ended before the archive was opened
        result.err = result.err.replace(told[0], "") if told else result.err
        return result, dict(zip(("hits", "misses", "stale", "revalidated"), numbers, strict=True))


def same(ordinary, started, what):
    """Fails the test when a start with an archive did not do what an ordinary one does."""
    seen = [(result.status, normal(result.out), normal(result.err)) for result in (ordinary, started)]
    if seen[0] != seen[1]:
        lines = [f"status {status}\n{out}{err}".splitlines() for status, out, err in seen]
        raise AssertionError("\n".join([f"{what}:", *difflib.unified_diff(*lines, "ordinary", "with the archive", lineterm="")]))


def normal(text):
    """A program's output without what differs between two ordinary starts."""
    text = re.sub(r"\b0x[0-9a-f]{6,}\b", "ADDRESS", text)
    # Who looks at the frames of imports sees a line of another file in one of them.
    return re.sub(r'(_bootstrap_external>(?:", line |\())\d+', "\\1N", text)


def write(folder, files):
    """Write files, a dict of paths and texts (or bytes); a text None makes a folder."""
    for name, text in files.items():
        path = pathlib.Path(folder) / name
        (path if text is None else path.parent).mkdir(parents=True, exist_ok=True)
        if text is not None:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
