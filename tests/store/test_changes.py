"""What changes from start to start: an input that has retired an image is left to each start in the next one, with what loads it."""

import json

import pytest
from common.languages import PYTHON, both

from .stores import Store, is_thawed

pytestmark = pytest.mark.sample(12)

PROGRAMS = {
    "python": {
        "app.py": "import json, helper, reader\nprint(reader.TEXT, helper.X, seen := __import__('seen').KIND)\n",
        "reader.py": "import settings\nTEXT = settings.VALUE * 2\n",
        "settings.py": "import pathlib\nVALUE = pathlib.Path(__file__).with_name('settings.txt').read_text().strip()\n",
        "helper.py": "X = 1\n",
        "seen.py": "import os\nKIND = os.environ.get('KIND')\n",
    },
    "ruby": {
        "app.rb": "require 'json'\nrequire_relative 'helper'\nrequire_relative 'reader'\nrequire_relative 'seen'\n"
        "puts \"#{TEXT} #{X} #{KIND}\"\n",
        "reader.rb": "require_relative 'settings'\nTEXT = VALUE * 2\n",
        "settings.rb": "VALUE = File.read(File.join(__dir__, 'settings.txt')).strip\n",
        "helper.rb": "X = 1\n",
        "seen.rb": "KIND = ENV['KIND']\n",
    },
}


class Changing:
    """A program of a store that reads a file and a variable while it loads."""

    def __init__(self, folder, language, **variables):
        self.store = Store(folder, **variables)
        self.settings = folder / "settings.txt"
        self.command = self.store.write_program(language, PROGRAMS[language.name])

    def run(self, **env):
        """What a start prints, and whether it thawed; then waits for builders."""
        result = self.store.run(*self.command, env={**self.store.env, **env})
        self.store.wait()
        return result.out.strip(), is_thawed(result)

    def make(self):
        """Has an image made, that holds what starts have told."""
        for _ in range(4):
            self.run()

    def notes(self):
        return " ".join(note for row in self.store.list() for note in row["notes"])


@both
def test_a_file_that_has_retired_an_image_is_left_to_each_start(tmp_path, language):
    program = Changing(tmp_path, language, KIND="a")
    program.settings.write_text("one")
    program.make()
    assert program.run() == ("oneone 1 a", True)
    program.settings.write_text("two")
    assert program.run() == ("twotwo 1 a", False), "the first time nobody knows"
    for text in ("three", "four", "five"):
        program.settings.write_text(text)
        assert program.run() == (f"{text}{text} 1 a", True)
    assert str(program.settings) in program.notes()


@both
def test_what_appears_and_goes_is_left_to_each_start(tmp_path, language):
    program = Changing(tmp_path, language, KIND="a")
    source, kind = ("settings.py", "import os\nVALUE = str(os.path.exists(__file__ + '.x'))\n"), "True"
    if language.name == "ruby":
        source, kind = ("settings.rb", "VALUE = File.exist?(__FILE__ + '.x').to_s.capitalize\n"), "True"
    (tmp_path / source[0]).write_text(source[1])
    place = tmp_path / (source[0] + ".x")
    program.make()
    assert program.run() == ("FalseFalse 1 a", True)
    place.write_text("")
    assert program.run() == (f"{kind}{kind} 1 a", False)
    place.unlink()
    assert program.run() == ("FalseFalse 1 a", True)
    place.write_text("")
    assert program.run() == (f"{kind}{kind} 1 a", True)


@both
def test_a_variable_with_a_new_value_each_time_is_left_to_each_start(tmp_path, language):
    program = Changing(tmp_path, language)
    program.settings.write_text("one")
    for number in range(12):
        shown, thawed = program.run(KIND=f"kind-{number}")
        assert shown == f"oneone 1 kind-{number}"
    assert thawed, program.store.list()
    assert len(program.store.list()) <= 4
    assert "KIND" in program.notes()


def test_what_nearly_all_loads_stays_in_the_image(tmp_path):
    program = Changing(tmp_path, PYTHON, KIND="a")
    (tmp_path / "app.py").write_text("import settings, decimal, http.client, sqlite3, xml.dom.minidom, asyncio\nprint(settings.VALUE)\n")
    program.settings.write_text("one")
    program.make()
    (image,) = [row["path"] for row in program.store.list()]
    loaded = json.loads(program.store.snapboot("inspect", "--json", image, log=False).out)["loaded"]
    for text in ("two", "three"):
        program.settings.write_text(text)
        assert program.run() == (text, False)
        assert program.run() == (text, True)
    assert json.loads(program.store.snapboot("inspect", "--json", image, log=False).out)["loaded"] > loaded * 0.9
    assert str(program.settings) not in program.notes()


def test_list_says_why_a_command_has_several_images(tmp_path):
    program = Changing(tmp_path, PYTHON)
    program.settings.write_text("one")
    for kind in ("a", "b"):
        for _ in range(3):
            program.run(KIND=kind)
    rows = program.store.list(env={"KIND": "a"})
    assert len(rows) == 2 and all("2 images, because the program boots differently depending on KIND" in row["notes"] for row in rows), rows


@both
def test_the_script_itself_is_in_the_image(tmp_path, language):
    program = Changing(tmp_path, language, KIND="a")
    program.settings.write_text("one")
    program.make()
    script = program.command[1]
    for number in (2, 3):
        script.write_text(script.read_text() + f"{'print' if language.name == 'python' else 'puts '}({number})\n")
        shown = "\n".join(["oneone 1 a", *map(str, range(2, number + 1))])
        assert program.run() == (shown, False)
        assert program.run() == (shown, True)
    assert str(script) not in program.notes()
