"""Recipes of the user, and images that nobody has asked for."""

from common import support

from store.stores import Store, is_thawed

CODE = """
import sys
from .recipes import Defaults

class Recipe(Defaults):
    def end(self, report):
        return "part" in sys.modules
    def renew(self):
        sys.modules["part"].VALUE = {!r}
"""

GUARD = """
module AppRecipe
  class << self
    include Recipes::Defaults

    def applies? = Object.const_defined?(:App)

    def guards = %w[test]
  end
end
Recipes.register(AppRecipe)
"""


@support.needs_ruby
def test_the_libraries_serve_what_the_image_of_the_program_must_not(tmp_path):
    """An argument decides how an application boots: the image that has booted it is none for such starts, and that of its libraries is."""
    tmp_path.chmod(0o755)
    store = Store(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "config"))
    recipe = tmp_path / "config/snapboot/recipes/app"
    recipe.mkdir(parents=True)
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    files = {
        recipe / "recipe.toml": "name = 'App'\nlanguage = 'ruby'\n",
        recipe / "ruby.rb": GUARD,
        project / "app.rb": "App = 1\n",
        project / "main.rb": "require 'json'\nrequire_relative 'app'\nputs JSON.dump(ARGV)\n",
    }
    for path, text in files.items():
        path.write_text(text)
        path.chmod(0o644)
    words = [support.RUBY, "main.rb"]
    for _ in range(3):
        store.run(*words, cwd=project)
        store.wait()
    log = {"SNAPBOOT_LOG": "1"}
    plain, guarded = (store.run(*words, *more, cwd=project, env=log) for more in ([], ["test"]))
    assert is_thawed(plain) and plain.out == "[]\n", plain
    assert guarded.out == '["test"]\n' and "another image fits this start" in guarded.err and "libraries-" in guarded.err, guarded
    # Nothing is wrong with the image of the program.
    assert not store.builders() and [row["state"] for row in store.list()] == ["fresh", "fresh"], store.list()


def test_a_recipe_that_changes_has_images_made_again(tmp_path):
    tmp_path.chmod(0o755)
    store = Store(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "config"))
    (tmp_path / "part.py").write_text("VALUE = 'ordinary'\n")
    (tmp_path / "show.py").write_text("from part import VALUE\nimport part\nprint(part.VALUE)\n")
    recipe = tmp_path / "config/snapboot/recipes/part"
    recipe.mkdir(parents=True)
    files = {recipe / "recipe.toml": "name = 'Part'\nlanguage = 'python'\n", recipe / "python.py": CODE.format("one")}
    words = [support.PYTHON, "show.py"]

    def write(changed):
        for path, text in changed.items():
            path.write_text(text)
            path.chmod(0o644)

    write(files)
    for value in ("one", "another"):
        write({recipe / "python.py": CODE.format(value)})
        assert store.run(*words).fell_back
        store.wait()
        started = store.run(*words)
        assert is_thawed(started) and started.out == value + "\n", started
    # With one that is wrong the program starts as ever, and the list says why it has no image.
    write({recipe / "recipe.toml": "name = 1\n"})
    started = store.run(*words)
    assert started.fell_back and started.out == "ordinary\n", started
    (row,) = store.wait()
    assert row["state"] != "fresh" and str(recipe) in str(row), row
