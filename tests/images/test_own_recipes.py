"""Recipes of the user: a folder in `~/.config/snapboot/recipes` is all that a library needs; a wrong one is refused with the remedy."""

import json

import pytest
from common import support

pytestmark = pytest.mark.sample(3, whole=True)

# A framework that nobody knows: a script of its own, and a library that asks for its terminal and for arguments while it is loaded, keeps
# something that each start has for itself, and has a thread that it starts again.
LIBRARY = """
import sys, threading, time
SEED = object()
IS_TERMINAL = sys.stdout.isatty() and None
IS_VERBOSE = "-v" in sys.argv and None
THREAD = threading.Thread(target=time.sleep, args=(1000,), daemon=True)
THREAD.start()
"""
SCRIPT = "#!{python}\nfrom acme.main import run\nrun()\n"
MAIN = "def run():\n    import acme.late, os\n    print(acme.late.SEED, os.environ.get('ACME_MODE'))\n"
RECIPE = r"""
name = "Acme"
language = "python"
restarted_threads = ["acme"]

[application]
script = "bin/acme"
text = 'from acme\.(?<module>\w+) import run'
preload = ["acme.{module}", "acme.late"]
environment = { ACME_MODE = "made" }
guards = ["--plain*"]

[[reads]]
reader = "/acme/late.py"
fact = "terminal"

[[reads]]
reader = "/acme/late.py"
at_start = "sys.argv"
guards = ["-v"]
"""
CODE = """
import posix, sys
from .recipes import Defaults

class Recipe(Defaults):
    def renew(self):
        sys.modules["acme.late"].SEED = posix.urandom(8).hex()
    def end(self, report):
        return "acme.late" in sys.modules
"""

RUBY_CODE = """
module Acme
  extend Recipes::Defaults
  def self.applies? = defined?(::ACME)
  def self.after_thaw = ::ACME[0] = 1
end
Recipes.register(Acme)
"""


@pytest.fixture
def acme(tmp_path):
    """A folder with the program, the environment of its user, and the recipe's folder."""
    tmp_path.chmod(0o755)
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme/__init__.py").touch()
    (tmp_path / "acme/late.py").write_text(LIBRARY)
    (tmp_path / "acme/main.py").write_text(MAIN)
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin/acme"
    script.write_text(SCRIPT.format(python=support.PYTHON))
    script.chmod(0o755)
    env = support.environment(XDG_CONFIG_HOME=tmp_path / "config", PYTHONPATH=tmp_path)
    return tmp_path, env, tmp_path / "config/snapboot/recipes/acme"


def freeze(acme):
    folder, env, _ = acme
    return support.freeze(folder / "acme.img", [folder / "bin/acme"], cwd=folder, env=env)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o644)


def test_a_folder_is_all_that_a_library_needs(acme):
    folder, env, recipe = acme
    without = freeze(acme)
    assert without.status == 0 and "acme.late" not in without.out + without.err, without
    write(recipe / "recipe.toml", RECIPE)
    write(recipe / "python.py", CODE)
    result = freeze(acme)
    assert result.status == 0 and "preloaded acme.main, acme.late" in result.out + result.err, result
    image = folder / "acme.img"
    first, second = (support.thawed([image], env=env, cwd=folder).out.split() for _ in range(2))
    assert first[1] == second[1] == "None" and len(first[0]) == 16 and first[0] != second[0], (first, second)
    for arguments in (["--plainly"], ["-v"]):
        ordinary = support.run([image, *arguments], env=env, cwd=folder)
        assert ordinary.fell_back and "object at" in ordinary.out, ordinary


def test_the_training_of_a_recipe_takes_the_place_of_that_of_tools(acme):
    """The script is one that an installer has written, and would be run with --version and --help."""
    folder, env, recipe = acme
    script = folder / "bin/acme"
    script.write_text(f"#!{support.PYTHON}\nimport sys\nfrom acme.main import run\n# sys.argv[0] without .exe\nsys.exit(run())\n")
    (folder / "acme/main.py").write_text("def run():\n    import sys\n    if 'status' in sys.argv:\n        import wave\n")
    learnt = []
    for train in ("[]", "['status']"):
        rules = "name = 'Acme'\nlanguage = 'python'\n[application]\nscript = 'bin/acme'\ntext = 'acme'\npreload = ['acme.main']\n"
        write(recipe / "recipe.toml", f"{rules}train = {train}\n")
        assert freeze(acme).status == 0
        shown = support.run([support.SNAPBOOT, "inspect", "--json", folder / "acme.img"], log=False)
        learnt.append("wave" in json.loads(shown.out)["learnt"])
    assert learnt == [False, True]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("recipe.toml", "name = 'Acme'\nguard = ['-v']\n", "{recipe}/recipe.toml:2: unknown field `guard`, expected one of `name`,"),
        ("recipe.toml", "name = 'Acme\n", "{recipe}/recipe.toml:1: "),
        ("recipe.toml", "language = 'python'\n", "{recipe}/recipe.toml:1: missing field `name`"),
        ("python.py", "class Other:\n    pass\n", "{recipe}/python.py cannot be loaded (AttributeError: "),
        ("python.py", "class Recipe(\n", "{recipe}/python.py cannot be loaded (SyntaxError: "),
    ],
    ids=["unknown key", "no TOML", "key that is missing", "no class", "syntax error"],
)
def test_a_broken_recipe_is_refused_with_what_to_do(acme, name, text, said):
    _, _, recipe = acme
    write(recipe / "recipe.toml", "name = 'Acme'\nlanguage = 'python'\n")
    write(recipe / name, text)
    result = freeze(acme)
    assert result.status == 2 and said.format(recipe=recipe) in result.err, result
    assert f"remove {recipe}" in result.err, result


def test_a_recipe_that_others_may_write_is_not_obeyed(acme):
    _, _, recipe = acme
    write(recipe / "recipe.toml", RECIPE)
    write(recipe / "python.py", CODE)
    (recipe / "python.py").chmod(0o666)
    result = freeze(acme)
    assert result.status == 2 and f"others may write to {recipe}/python.py" in result.err, result


def test_a_recipe_whose_code_fails_in_a_thaw_is_left(acme):
    folder, env, recipe = acme
    write(recipe / "recipe.toml", RECIPE)
    write(recipe / "python.py", CODE.replace("posix.urandom(8)", "posix.urandom(-8)"))
    result = freeze(acme)
    assert "the application is not in the image, as the recipe for Acme has it, because" in result.err, result
    started = support.run([folder / "acme.img"], env=env, cwd=folder)
    assert started.status == 0 and "object at" in started.out, started


def test_a_folder_takes_the_place_of_ours(acme):
    """The rule for tqdm says which variables count of the whole environment that its file reads."""
    folder, env, recipe = acme
    (folder / "tqdm").mkdir()
    (folder / "tqdm/__init__.py").touch()
    (folder / "tqdm/utils.py").write_text("import os, subprocess\nALL = dict(os.environ)\nprint(end='')\n")
    command = [support.PYTHON, "-c", "import tqdm.utils; print('done')"]
    own = "name = 'tqdm'\nlanguage = 'python'\n[[reads]]\nreader = '/tqdm/utils.py'\nenvironment = ['MINE']\n"
    counts = []
    for rules in (None, own):
        if rules is not None:
            write(recipe.parent / "tqdm/recipe.toml", rules)
        support.frozen(folder / "tqdm.img", command, "--preload", "tqdm.utils", cwd=folder, env=env)
        counts.append(support.run([folder / "tqdm.img"], env={**env, "MINE": "1"}, cwd=folder).fell_back)
    assert counts == [False, True]


@support.needs_ruby
def test_a_recipe_for_ruby(tmp_path):
    tmp_path.chmod(0o755)
    recipe = tmp_path / "config/snapboot/recipes/acme"
    (tmp_path / "acme.rb").write_text("ACME = [nil]\n")
    env = support.environment(XDG_CONFIG_HOME=tmp_path / "config")
    command = [support.RUBY, "-e", "p ACME.first"]
    write(recipe / "recipe.toml", "name = 'Acme'\nlanguage = 'ruby'\n")
    write(recipe / "ruby.rb", RUBY_CODE)
    support.frozen(tmp_path / "a.img", command, "--preload", "./acme", cwd=tmp_path, env=env)
    assert support.thawed([tmp_path / "a.img"], env=env, cwd=tmp_path).out == "1\n"
    for broken in ("module Acme\n", "raise 'no such library'\n"):
        write(recipe / "ruby.rb", broken)
        result = support.freeze(tmp_path / "a.img", command, "--preload", "./acme", cwd=tmp_path, env=env)
        assert result.status == 2 and f"{recipe}/ruby.rb cannot be loaded (" in result.err and f"remove {recipe}" in result.err, result
