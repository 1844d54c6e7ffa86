"""Files of a checkout are the user's own, and are edited. A start after an edit thaws, too: from a second image, which holds the libraries
alone. What an installer has put into a checkout counts as everywhere."""

import json
import os
import time

import pytest
from common.languages import both

from .stores import Store

pytestmark = pytest.mark.sample(12)

# The script, a module, what an installer has put into the checkout, and a library that reads a file of the project or lists a folder.
PROGRAMS = {
    "python": {
        "app.py": "import json, library, reader, lister, own\nprint(1, own.VALUE, library.VALUE, reader.TEXT, lister.NAMES)\n",
        "own.py": "VALUE = 'a'\n",
        "site-packages/library.py": "VALUE = 1\n",
        "site-packages/reader.py": "import os\nTEXT = open(os.path.dirname(__file__) + '/../settings.txt').read().strip()\n",
        "site-packages/lister.py": "import os\nNAMES = sorted(os.listdir(os.path.dirname(__file__) + '/../data'))\n",
    },
    "ruby": {
        "app.rb": "require 'json'\nrequire 'library'\nrequire 'reader'\nrequire 'lister'\nrequire_relative 'own'\n"
        "puts [1, VALUE, LIBRARY, TEXT, NAMES].join(' ')\n",
        "own.rb": "VALUE = 'a'\n",
        "vendor/bundle/library.rb": "LIBRARY = 1\n",
        "vendor/bundle/reader.rb": "TEXT = File.read(File.join(__dir__, '../../settings.txt')).strip\n",
        "vendor/bundle/lister.rb": "NAMES = Dir.children(File.join(__dir__, '../../data')).sort\n",
    },
}


class Checkout:
    """A checkout with a program that has a store. It prints what its files say."""

    def __init__(self, folder, language):
        self.folder = folder / "project"
        installed = {"python": "site-packages", "ruby": "vendor/bundle"}[language.name]
        self.installed = self.folder / installed
        (self.folder / "data").mkdir(parents=True)
        self.installed.mkdir(parents=True)
        (self.folder / ".git").mkdir()
        # The first folder of each search path is the project's own.
        (self.folder / "lib").mkdir()
        variable = {"python": "PYTHONPATH", "ruby": "RUBYLIB"}[language.name]
        self.store = Store(folder, **{variable: f"{self.folder / 'lib'}:{self.installed}"})
        for name, source in PROGRAMS[language.name].items():
            (self.folder / name).write_text(source)
        self.write("settings.txt", "one")
        self.command = [language.program, next(iter(PROGRAMS[language.name]))]

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def edit(self, name, old, new):
        text = (self.folder / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def start(self):
        """Starts the program, which must print what an ordinary start does. Then waits for builders. Returns from which image it thawed:
        "program", "libraries", or None."""
        result = self.store.run(*self.command, cwd=self.folder)
        ordinary = self.store.snapboot("run", "--no-freeze", "--", *self.command, cwd=self.folder, log=False)
        assert (result.status, result.out) == (ordinary.status, ordinary.out), result
        self.store.wait()
        if "starting the ordinary way" in result.err:
            return None
        return "libraries" if "/libraries-" in result.err else "program"

    def make(self):
        """Has images made that hold what starts have reported."""
        for _ in range(4):
            self.start()
        assert self.start() == "program"

    def own_inputs(self, image):
        """The names of the files of the checkout on which an image depends, without what was installed there."""
        (path,) = self.store.place.glob(f"cache/*/{image}")
        inputs = json.loads(self.store.snapboot("inspect", "--json", path, log=False).out)["inputs"]
        paths = [row["path"] for row in inputs if not row["path"].startswith(str(self.installed))]
        return {os.path.relpath(path, self.folder) for path in paths if path.startswith(f"{self.folder}/")}


@both
def test_a_start_after_each_edit_thaws(tmp_path, language):
    checkout = Checkout(tmp_path, language)
    ending = checkout.command[1].partition(".")[2]
    checkout.make()
    edits = [
        lambda: checkout.edit(f"own.{ending}", "'a'", "'b'"),
        lambda: checkout.edit(f"app.{ending}", "1, ", "2, 3, "),
        lambda: checkout.write("settings.txt", "two"),
        lambda: checkout.write("data/new.txt", ""),
        lambda: (checkout.folder / "data/new.txt").unlink(),
        lambda: checkout.write(f"more.{ending}", "X = 1\n"),
        lambda: checkout.edit(f"own.{ending}", "'b'", "'c'  # longer"),
    ]
    for number, edit in enumerate(edits):
        edit()
        assert checkout.start() == "libraries", number
    # An error is that of the edited script as well.
    checkout.edit(f"app.{ending}", "2, 3, ", "2, 3, missing, ")
    checkout.start()
    checkout.edit(f"app.{ending}", "missing, ", "")
    (checkout.folder / f"own.{ending}").unlink()
    checkout.start()


@both
def test_a_checkout_that_nobody_edits_thaws_whole(tmp_path, language):
    checkout = Checkout(tmp_path, language)
    ending = checkout.command[1].partition(".")[2]
    checkout.make()
    assert {f"app.{ending}", f"own.{ending}"} <= checkout.own_inputs("1.img")
    assert not {name for name in checkout.own_inputs("libraries-1.img") if (checkout.folder / name).is_file()}


@both
def test_once_edits_pause_the_program_is_frozen_with_them(tmp_path, language):
    checkout = Checkout(tmp_path, language)
    script = checkout.command[1]
    checkout.make()
    checkout.edit(script, "1, ", "2, 3, ")
    assert checkout.start() == "libraries"
    assert checkout.start() == "libraries"
    past = time.time() - 3600
    os.utime(checkout.folder / script, (past, past))
    assert checkout.start() == "libraries"
    assert checkout.start() == "program"


@both
def test_an_image_of_the_program_leaves_what_was_edited_to_each_start(tmp_path, language):
    checkout = Checkout(tmp_path, language)
    checkout.make()
    for text in ("two", "three"):
        checkout.write("settings.txt", text)
        past = time.time() - 3600
        os.utime(checkout.folder / "settings.txt", (past, past))
        kind = checkout.start()
    assert kind == "program"


@both
def test_what_an_installer_changes_retires_an_image(tmp_path, language):
    checkout = Checkout(tmp_path, language)
    ending = checkout.command[1].partition(".")[2]
    checkout.make()
    library = str(checkout.installed.relative_to(checkout.folder) / f"library.{ending}")
    checkout.edit(library, "= 1", "= 2")
    assert not checkout.start()
    assert checkout.start() == "program"


@both
def test_a_new_own_file_in_the_place_of_a_library_counts(tmp_path, language):
    checkout = Checkout(tmp_path, language)
    ending = checkout.command[1].partition(".")[2]
    checkout.make()
    checkout.write(f"lib/library.{ending}", "VALUE = 7\n" if ending == "py" else "LIBRARY = 7\n")
    assert not checkout.start()
    checkout.start()


@both
def test_what_a_freeze_by_hand_makes_holds_all(tmp_path, language):
    checkout = Checkout(tmp_path, language)
    image = tmp_path / "app.img"
    frozen = checkout.store.snapboot("freeze", "-o", image, "--", *checkout.command, cwd=checkout.folder)
    assert frozen.status == 0, frozen
    inputs = [row["path"] for row in json.loads(checkout.store.snapboot("inspect", "--json", image, log=False).out)["inputs"]]
    assert any(path.endswith(checkout.command[1]) for path in inputs), inputs
