"""The languages, for tests whose cases hold for both: how a preload and a main part are written down and run."""

import dataclasses
import pathlib
import shutil

import pytest

from . import support


@dataclasses.dataclass(frozen=True)
class Language:
    """A runtime, the ending of its files, and how it prints the constant of a preload."""

    name: str
    program: str
    ending: str
    show: str

    def write(self, folder, source, name="boot"):
        """Write a preload that sets VALUE. Returns the environment that finds it, and its path."""
        path = pathlib.Path(folder) / (name + self.ending)
        path.write_text(source + "\n")
        extra = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"} if self.name == "python" else {}
        return support.environment(**extra), path

    def preload(self, name="boot"):
        """What --preload says for it."""
        return name if self.name == "python" else "./" + name

    def argv(self, image, name="boot"):
        """Run an image so that it prints VALUE of the preload, for a fallback too."""
        load = f"import {name}; from {name} import *" if self.name == "python" else f"require './{name}'"
        return [image, "-c" if self.name == "python" else "-e", f"{load}\n{self.show}"]


PYTHON = Language("python", support.PYTHON, ".py", "print(VALUE)")
RUBY = Language("ruby", support.RUBY or shutil.which("ruby") or "ruby", ".rb", "puts VALUE")

both = pytest.mark.parametrize(
    "language", [PYTHON, pytest.param(RUBY, marks=support.needs_ruby)], ids=lambda language: language.name
)


def names(table):
    """The names of a table whose rows begin with a language, with what those in Ruby need."""
    return [pytest.param(name, marks=support.needs_ruby) if table[name][0] is RUBY else name for name in table]
