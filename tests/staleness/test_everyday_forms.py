"""Starts whose facts have another form than in the boot: in `/`, in HOME, below HOME, with HOME=/. One image serves those in which a boot
came to the same state."""

import pytest
from common import support
from common.languages import PYTHON, both

pytestmark = pytest.mark.sample(4)

NAME = "kept_texts"  # no folder of that name is in `/`, where Python looks for it
KEEPS = {
    "python": """
import atexit, os
HOME, FOLDER = os.environ["HOME"], os.getcwd()
atexit.register(lambda value: None, [FOLDER])  # no module leads to this list
VALUE = [HOME, FOLDER, os.path.join(HOME, ".config"), os.path.abspath("setup.cfg"), {"cache": os.path.join(HOME, "c")}, os.sep]
""",
    "ruby": """
HOME, FOLDER = ENV["HOME"], Dir.pwd
VALUE = [HOME, FOLDER, File.join(HOME, ".config"), File.expand_path("setup.cfg"), { cache: File.join(HOME, "c") }, File::SEPARATOR]
""",
}
# What a shell's prompt shows.
SHORTENS = {
    "python": """
import os
HOME, FOLDER = os.environ["HOME"], os.getcwd()
VALUE = "~" + FOLDER[len(HOME):] if FOLDER.startswith(HOME + "/") else FOLDER
""",
    "ruby": """
HOME, FOLDER = ENV["HOME"], Dir.pwd
VALUE = FOLDER.start_with?("#{HOME}/") ? FOLDER.sub(HOME, "~") : FOLDER
""",
}
# In `/` it has two slashes.
JOINS = {"python": "import os\nVALUE = os.getcwd() + '/x', os.getcwd()", "ruby": 'VALUE = ["#{Dir.pwd}/x", Dir.pwd]'}


class Program:
    """An image that was made outside of HOME, and how it starts."""

    def __init__(self, language, folder, sources):
        self.home, self.project, self.elsewhere = (folder / name for name in ("home", "project", "elsewhere"))
        for made in (self.home / "project", self.project, self.elsewhere):
            made.mkdir(parents=True)
        env, file = language.write(folder, sources[language.name], NAME)
        self.env = {**env, "HOME": str(self.home)}
        preload = NAME if language is PYTHON else str(file)
        load = f"from {NAME} import VALUE; print(VALUE)" if language is PYTHON else f"require {preload!r}; p VALUE"
        self.program, self.preload = language.program, preload
        self.main = ["-c" if language is PYTHON else "-e", load]
        self.freeze(self.project)

    def freeze(self, directory):
        """Makes the image in this directory."""
        image = self.home.with_name("app.img")
        self.image = support.frozen(image, [self.program], "--preload", self.preload, env=self.env, cwd=directory)

    def start(self, directory, home=None, thaws=True):
        """Starts the image, and compares with the ordinary start."""
        env = {**self.env, "HOME": home or str(self.home)}
        result = support.run([self.image, *self.main], env=env, cwd=directory)
        ordinary = support.run([self.program, *self.main], env=env, cwd=directory)
        assert result.out == ordinary.out != "", result
        assert result.fell_back != thaws, result


@both
def test_an_image_serves_the_directories_of_everyday_starts(language, tmp_path):
    program = Program(language, tmp_path, KEEPS)
    program.start(program.project)
    program.start("/")
    program.start(program.home)
    program.start(program.home / "project")
    program.start(program.elsewhere, home="/")


@both
def test_an_image_of_a_directory_below_home_serves_others(language, tmp_path):
    """Values without a relation are those of the other start."""
    program = Program(language, tmp_path, KEEPS)
    program.freeze(program.home / "project")
    program.start(program.project)
    program.start(program.home)
    program.start("/")


@both
def test_a_directory_that_is_shortened_below_home_starts_ordinarily_there(language, tmp_path):
    program = Program(language, tmp_path, SHORTENS)
    program.start(program.home / "project", thaws=False)
    program.start(program.elsewhere)
    program.start(program.home)


@both
def test_a_text_that_has_another_form_in_the_topmost_directory_starts_ordinarily_there(language, tmp_path):
    program = Program(language, tmp_path, JOINS)
    program.start("/", thaws=False)
    program.start(program.elsewhere)
