"""What a framework's own script starts is in the image without being named, and only what every start of it would load."""

import os
import shutil

import pytest
from common import support, terminal
from common.ready import prepared


@pytest.fixture(scope="module")
def django(tmp_path_factory):
    """A project in a folder of its own, and the words that start it."""
    ready = prepared("django")
    folder = tmp_path_factory.mktemp("django")
    shutil.copytree(os.path.join(ready["dir"], "skel"), folder / "skel")
    shutil.copy(os.path.join(ready["dir"], "manage.py"), folder)
    return folder, [ready["python"], "manage.py"]


def frozen(folder, words, *options, name="app.img", env=None):
    result = support.freeze(folder / name, words, *options, cwd=folder, env=env)
    assert result.status == 0, result
    return folder / name, result.out + result.err


def test_a_django_project_is_set_up(django):
    folder, words = django
    image, said = frozen(folder, words)
    assert "preloaded django:setup" in said, said
    for arguments in (["check"], ["diffsettings"], ["no-such-command"], ["--version"]):
        ordinary = support.run([*words, *arguments], cwd=folder)
        thawed = support.run([image, *arguments], cwd=folder)
        assert not thawed.fell_back, thawed
        assert (thawed.status, thawed.out, thawed.err) == (ordinary.status, ordinary.out, ordinary.err), arguments


def test_a_project_starts_at_a_terminal_as_in_a_pipe(django):
    folder, words = django
    image, said = frozen(folder, words)
    assert "terminal" not in said, said
    env = support.environment(TERM="xterm-256color")
    # The first is in colours there.
    for arguments in (["check", "--deploy"], ["no-such-command"]):
        ordinary = terminal.shown_on([*words, *arguments], env, cwd=folder)
        thawed = terminal.shown_on([str(image), *arguments], {**env, "SNAPBOOT_ON_STALE": "error"}, cwd=folder)
        assert thawed == ordinary, (ordinary, thawed)
    assert b"\x1b[" in terminal.shown_on([str(image), "check", "--deploy"], env, cwd=folder)[0]


def test_other_settings_are_an_ordinary_start(django):
    folder, words = django
    image, _ = frozen(folder, words)
    (folder / "skel/other.py").write_text("from skel.settings import *\nSECRET_KEY = 'other'\n")
    ask = ["shell", "-c", "from django.conf import settings; print(settings.SECRET_KEY)"]
    option = support.run([image, *ask, "--settings", "skel.other"], cwd=folder)
    assert option.fell_back and option.out.endswith("other\n"), option
    variable = support.run([image, *ask], cwd=folder, env=support.environment(DJANGO_SETTINGS_MODULE="skel.other"))
    assert variable.fell_back and variable.out.endswith("other\n"), variable
    settings = folder / "skel/settings.py"
    text = settings.read_text()
    settings.write_text(text + "SECRET_KEY = 'edited'\n")
    edited = support.run([image, *ask], cwd=folder)
    settings.write_text(text)
    assert edited.fell_back and edited.out.endswith("edited\n"), edited


def test_a_recipe_that_fails_is_left(django):
    folder, words = django
    settings = folder / "skel/settings.py"
    text = settings.read_text()
    settings.write_text(text + "import sys\nassert 'check' not in sys.argv and len(sys.argv) > 1, 'no arguments'\n")
    try:
        image, said = frozen(folder, words, name="left.img")
        assert "the application is not in the image, as the recipe for Django has it, because" in said, said
        assert "preloaded" not in said, said
        assert "no arguments" in support.run([image], cwd=folder).err
    finally:
        settings.write_text(text)


def test_who_names_something_or_wants_none_gets_none(django):
    folder, words = django
    for options in (["--no-recipe"], ["--preload", "json"]):
        _, said = frozen(folder, words, *options, name="none.img")
        assert "django:setup" not in said, said


def test_a_function_to_call_must_be_there(django):
    folder, words = django
    result = support.freeze(folder / "x.img", words, "--preload", "django:set_up", cwd=folder)
    assert result.status == 2 and "django:set_up: module django has no such function" in result.err, result


@support.needs_ruby
def test_a_rails_application_is_booted(tmp_path):
    ready = prepared("rails")
    place = tmp_path / "application"
    shutil.copytree(ready["dir"], place, symlinks=True, ignore=shutil.ignore_patterns("cache", "*.log"))
    env = support.environment(RAILS_ENV="production")
    image, said = frozen(place, ["bin/rails"], env=env)
    assert "config/environment" in said, said
    for arguments in (["runner", "puts Rails.application.class"], ["-h"], ["no-such-command"]):
        ordinary = support.run(["bin/rails", *arguments], cwd=place, env=env)
        thawed = support.run([image, *arguments], cwd=place, env=env)
        assert not thawed.fell_back and (thawed.status, thawed.out) == (ordinary.status, ordinary.out), (ordinary, thawed)
    # The guards are those of the booted application.
    other = support.run([image, "runner", "-e", "development", "puts Rails.env"], cwd=place, env=env)
    ordinary = support.run(["bin/rails", "runner", "-e", "development", "puts Rails.env"], cwd=place, env=env)
    assert other.fell_back and (other.status, other.out) == (ordinary.status, ordinary.out), other
