"""What a framework's own script starts is in the image without being named, and only what every start of it would load."""

import json
import os
import shutil

import pytest
from common import support, terminal
from common.ready import prepared

pytestmark = pytest.mark.sample(16, whole=True)


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


@pytest.mark.parametrize(
    ("options", "learns"), [((), True), (("--no-train",), False), (("--no-recipe",), False), (("--train", "help"), False)]
)
def test_what_nearly_all_commands_load_is_in_it(django, options, learns):
    folder, words = django
    image, _ = frozen(folder, words, *options, name="learnt.img")
    shown = support.run([support.SNAPBOOT, "inspect", "--json", image], log=False)
    assert ("django.core.management.commands.check" in json.loads(shown.out)["learnt"]) == learns


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


def project_with(django, folder, *packages):
    """A copy of the project, with applications of its own: packages that it names without a slash."""
    shutil.copytree(django[0], folder, ignore=shutil.ignore_patterns("*.img", "*.thaws", "__pycache__"))
    with open(folder / "skel/settings.py", "a") as settings:
        settings.write(f"INSTALLED_APPS += {[package for package in packages if '/' not in package]}\n")
    for package in packages:
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text("")


# Says how much of what checks do is done.
DONE = """from django.urls.resolvers import _get_cached_resolver
from shop.models import Shop
print(_get_cached_resolver.cache_info().currsize, Shop.calls)"""
SHOP = """from django.core.checks import register
from django.db import models

class Shop(models.Model):
    calls = []
    id = models.AutoField(primary_key=True)

@register()
def own(**_):
    Shop.calls.append("own")
    return []
"""


@pytest.mark.parametrize(("more", "done"), [("", "1 []"), ("    @classmethod\n    def check(cls, **_): print('a'); return []\n", "0 []")])
def test_what_checks_of_django_itself_do_once_is_done(django, tmp_path, more, done):
    folder, (_, words) = tmp_path / "project", django
    project_with(django, folder, "shop")
    (folder / "shop/models.py").write_text(SHOP.replace("\n@register", f"{more}\n@register"))
    image, said = frozen(folder, words)
    assert ("django.core.checks prints" in said) == bool(more), said
    for arguments in (["check"], ["check"], ["shell", "--no-imports", "-c", DONE]):
        ordinary = support.run([*words, *arguments], cwd=folder)
        thawed = support.run([image, *arguments], cwd=folder)
        assert not thawed.fell_back, thawed
        if "shell" in arguments:
            assert (ordinary.out, thawed.out) == ("0 []\n", done + "\n")
        else:
            assert (thawed.status, thawed.out, thawed.err) == (ordinary.status, ordinary.out, ordinary.err), thawed


def test_a_command_that_is_added_is_found(django, tmp_path):
    """The list of all commands is in the image."""
    folder, (_, words) = tmp_path / "project", django
    project_with(django, folder, "shop", "bare", "shop/management", "shop/management/commands")
    command = "from django.core.management.base import BaseCommand\n\nclass Command(BaseCommand):\n"
    command += "    def handle(self, **_):\n        print('does it')\n"
    (folder / "shop/management/commands/one.py").write_text(command)
    image, _ = frozen(folder, words)
    thawed = support.run([image, "one"], cwd=folder)
    assert not thawed.fell_back and thawed.out == "does it\n", thawed
    (folder / "bare/management/commands").mkdir(parents=True)
    for place in ("shop", "bare"):
        (folder / place / "management/commands" / f"{place}_two.py").write_text(command)
        started = support.run([image, f"{place}_two"], cwd=folder)
        assert (started.status, started.out) == (0, "does it\n"), started
        image, _ = frozen(folder, words)


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
        shown = json.loads(support.run([support.SNAPBOOT, "inspect", "--json", image]).out)
        assert any("the application is not in the image" in warning for warning in shown["warnings"]), shown["warnings"]
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
    # As under cron and systemd, without a locale: Rails itself chooses UTF-8 while it boots.
    env = support.environment(RAILS_ENV="production")
    env = {name: value for name, value in env.items() if name != "LANG" and not name.startswith("LC_")}
    (place / "text.txt").write_text("müde")
    image, said = frozen(place, ["bin/rails"], env=env)
    assert "config/environment" in said, said
    code = "puts Rails.application.class, Encoding.default_external, File.read('text.txt').length"
    for arguments in (["runner", code], ["-h"], ["no-such-command"]):
        ordinary = support.run(["bin/rails", *arguments], cwd=place, env=env)
        thawed = support.run([image, *arguments], cwd=place, env=env)
        assert not thawed.fell_back and (thawed.status, thawed.out) == (ordinary.status, ordinary.out), (ordinary, thawed)
    # The guards are those of the booted application.
    other = support.run([image, "runner", "-e", "development", "puts Rails.env"], cwd=place, env=env)
    ordinary = support.run(["bin/rails", "runner", "-e", "development", "puts Rails.env"], cwd=place, env=env)
    assert other.fell_back and (other.status, other.out) == (ordinary.status, ordinary.out), other


RACK_APPLICATION = """
require "rack"
class App
  LOADED_IN = ENV["RACK_ENV"]
  def call(_request)
    [200, { "Content-Type" => "text/plain" }, ["loaded in #{LOADED_IN}, runs in #{ENV["RACK_ENV"]}"]]
  end
end
# A server that answers one request, to whoever reads its output.
module Shown
  def self.run(app, **options)
    _, _, body = app.call(Rack::MockRequest.env_for("/"))
    body.each { |part| puts "#{part} at #{options[:Port]}" }
    body.close if body.respond_to?(:close)
  end
end
Rack::Handler.register("shown", "Shown")
"""


@support.needs_ruby
def test_an_application_of_rack_is_loaded(tmp_path):
    prepared("rack")
    (tmp_path / "app.rb").write_text(RACK_APPLICATION)
    (tmp_path / "config.ru").write_text('# frozen_string_literal: true\n\nrequire_relative "app"\n\nrun App.new\n')
    (tmp_path / "other.ru").write_text('require_relative "app"\nrun ->(_) { [200, { "Content-Type" => "text/plain" }, ["other"]] }\n')
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(tmp_path, elsewhere)
    (elsewhere / "config.ru").write_text((tmp_path / "other.ru").read_text())
    image, said = frozen(tmp_path, ["rackup"])
    assert f"preloaded rack, {tmp_path}/app" in said, said

    def compared(*arguments, cwd=tmp_path, **variables):
        """Whether it thawed. It answers as an ordinary start in any case."""
        env = support.environment(**variables)
        ordinary, started = (support.run([program, "-s", "shown", *arguments], cwd=cwd, env=env) for program in ("rackup", image))
        assert ordinary.status == 0 and (started.status, started.out) == (0, ordinary.out), (ordinary, started)
        return not started.fell_back

    assert compared() and compared("-p", "1") and compared("--port=1", "-q")
    # What may be another application, or the same one in another environment.
    for arguments in (["other.ru"], ["-E", "production"], ["-qE", "production"], ["-I", "lib"], ["-r", "json"], ["-w"], ["--env=test"]):
        assert not compared(*arguments), arguments
    assert not compared(RACK_ENV="production")
    assert not compared(cwd=elsewhere)
    (tmp_path / "config.ru").write_text('require_relative "app"\nrequire "json"\nrun App.new\n')
    assert not compared()


@support.needs_ruby
@pytest.mark.parametrize(
    "command, text",
    [
        (["rackup"], "ENV['X'] = '1'\nrequire_relative 'app'\nrun App.new\n"),
        (["rackup", "-E", "production"], "require_relative 'app'\nrun App.new\n"),
    ],
    ids=["something comes first", "arguments"],
)
def test_an_application_of_rack_that_may_load_otherwise_is_left(tmp_path, command, text):
    prepared("rack")
    (tmp_path / "app.rb").write_text(RACK_APPLICATION)
    (tmp_path / "config.ru").write_text(text)
    image, said = frozen(tmp_path, command)
    assert "preloaded" not in said, said
    ordinary, thawed = (support.run([*program, "-s", "shown"], cwd=tmp_path) for program in (command, [image]))
    assert not thawed.fell_back and thawed.out == ordinary.out, (ordinary, thawed)
