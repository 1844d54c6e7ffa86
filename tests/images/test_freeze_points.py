"""A recipe names the function at which a program is frozen: each command line has images of its own, which nobody has to ask for."""

import json

import pytest
from common import support
from store.stores import Store, is_thawed

pytestmark = pytest.mark.sample(3, whole=True)

PROGRAM = """\
import os, sys

def load(words):
    print(end="loading" if "--loud" in words else "")
    return len(words), os.environ.get("MODE")

class Server:
    def __init__(self, words):
        self.application = load(words)
        if "--daemon" in words and os.fork():
            os._exit(0)

    def serve(self):
        import fractions
        print("serving", self.application, sys.argv[1:], sys._getframe(1).f_code.co_name)

def main():
    if sys.argv[1] == "serve":
        Server(sys.argv[2:]).serve()
    else:
        print("else", sys.argv[1:])

if __name__ == "__main__":
    main()
"""
RECIPE = """\
name = "Acme"
language = "python"
[[freeze_points]]
module = "acme"
arguments = '^serve '
without = ["--plain*"]
at = ["acme:never", "__main__:Server.serve"]
preload = ["colorsys"]
"""


@pytest.fixture
def store(tmp_path):
    """A store, and in its folder the program with its recipe."""
    tmp_path.chmod(0o755)
    store = Store(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "config"), PYTHONPATH=str(tmp_path))
    (tmp_path / "acme.py").write_text(PROGRAM)
    recipe = tmp_path / "config/snapboot/recipes/acme/recipe.toml"
    recipe.parent.mkdir(parents=True)
    recipe.write_text(RECIPE)
    recipe.chmod(0o644)
    return store


def words(*arguments):
    return [support.PYTHON, "-m", "acme", *arguments]


def guards(store, *options, arguments=("serve", "7")):
    """What `snapboot freeze` says, and the guards of its image."""
    image = store.folder / "acme.img"
    result = support.freeze(image, words(*arguments), *options, cwd=store.folder, env=store.env)
    assert result.status == 0, result
    shown = support.run([support.SNAPBOOT, "inspect", "--json", image], env=store.env, log=False)
    return result.err, json.loads(shown.out)["guards"]


def test_each_command_line_has_images_of_its_own(store):
    for arguments in (["serve", "7"], ["serve", "8", "9"]):
        ordinary = store.run(*words(*arguments), options=["--no-freeze"])
        assert store.run(*words(*arguments)).fell_back
        store.wait()
        for _ in range(2):
            started = store.run(*words(*arguments))
            assert is_thawed(started) and started.out == ordinary.out and "main" in started.out, started
    # Without the point, an image is for all arguments.
    assert store.run(*words("other")).fell_back
    store.wait()
    for arguments in (["other", "1"], ["serve", "--plain"]):
        started = store.run(*words(*arguments))
        assert is_thawed(started) and started.out == store.run(*words(*arguments), options=["--no-freeze"]).out, started


def test_it_is_for_the_directory_and_the_variables_that_were_read(store):
    (store.folder / "elsewhere").mkdir()
    assert store.run(*words("serve")).fell_back
    store.wait()
    assert is_thawed(store.run(*words("serve"), env={"UNRELATED": "1"}))
    assert store.run(*words("serve"), cwd=store.folder / "elsewhere").fell_back
    other = store.run(*words("serve"), env={"MODE": "other"})
    assert other.fell_back and "'other'" in other.out, other
    store.wait()


def test_what_starts_load_behind_it_is_learnt(store):
    assert store.run(*words("serve")).fell_back
    store.wait()
    assert is_thawed(store.run(*words("serve")))
    store.wait()
    (row,) = store.list()
    shown = support.run([support.SNAPBOOT, "inspect", "--json", row["path"]], env=store.env, log=False)
    assert "fractions" in json.loads(shown.out)["learnt"], shown


def test_the_user_decides(store):
    assert guards(store) == ("", ["*"])
    for options in (["--no-recipe"], ["--preload", "fractions"], ["--train", "8"]):
        assert guards(store, *options)[1] == [], options
    assert guards(store, "--at", "__main__:load")[1] == ["*"]
    assert guards(store, arguments=["serve", "--plain"])[1] == []
    (store.folder / "config/snapboot/recipes/acme/recipe.toml").write_text("name = 'Acme'\n")
    assert guards(store)[1] == []


@pytest.mark.parametrize(
    ("argument", "why"), [("--loud", "prints something before it calls"), ("--daemon", "the application is not in the image")]
)
def test_a_program_that_does_not_get_there_quietly_is_frozen_as_without(store, argument, why):
    said, guarded = guards(store, arguments=["serve", argument])
    assert guarded == [] and why in said, said
    ordinary = support.run(words("serve", argument), cwd=store.folder, env=store.env)
    assert support.thawed([store.folder / "acme.img"], cwd=store.folder, env=store.env).out == ordinary.out
