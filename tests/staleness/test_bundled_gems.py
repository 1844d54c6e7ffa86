"""What installing gems does to an image of a program that uses Bundler: only what the lock names counts."""

import shutil

import pytest
from common import support

from .test_gems import Frozen, gem
from .test_packages import write

pytestmark = [support.needs_ruby, pytest.mark.sample(24, whole=True)]

PLATFORM = "x86_64-linux"
SETUP = "require 'bundler/setup'\n"
USES = SETUP + "require 'asked'\nVALUE = ASKED"


def bundle(folder, *gems, locked=()):
    """A Gemfile of these gems, and a lock of those that are locked."""
    lines = ["source 'https://rubygems.invalid'", *(f"gem {name}" for name in gems)]
    write(folder / "Gemfile", "\n".join(lines) + "\n")
    if locked:
        names = [name.split()[0] for name in locked]
        specs = "".join(f"    {name}\n" for name in locked)
        wanted = "".join(f"  {name}\n" for name in names if any(f"'{name}'" in line for line in gems))
        sources = f"GEM\n  remote: https://rubygems.invalid/\n  specs:\n{specs}\n"
        write(folder / "Gemfile.lock", f"{sources}PLATFORMS\n  ruby\n  {PLATFORM}\n\nDEPENDENCIES\n{wanted}")



class Bundled(Frozen):
    """An image whose boot uses the bundle in its folder."""

    def __init__(self, tmp_path, boot=USES, gems=("asked", "other"), wanted=("'asked'",), locked=("asked (1.0)",)):
        bundle(tmp_path, *wanted, locked=locked)
        super().__init__(tmp_path, boot, *gems)


def test_a_gem_outside_of_the_bundle(tmp_path):
    app = Bundled(tmp_path)
    gem(app.home, "foreign")
    assert app.thawed() == "1.0\n"
    assert app.why() == f"{app.image}: fresh\n"


def test_a_newer_version_than_the_locked_one(tmp_path):
    app = Bundled(tmp_path)
    gem(app.home, "asked", "1.0.1")
    gem(app.home, "asked", "2.0")
    assert app.thawed() == "1.0\n"


def test_the_locked_gem_is_removed(tmp_path):
    app = Bundled(tmp_path)
    (app.home / "specifications/asked-1.0.gemspec").unlink()
    shutil.rmtree(app.home / "gems/asked-1.0")
    result = support.run(app.argv("puts VALUE"), env=app.env, cwd=app.folder)
    assert result.fell_back and result.status != 0, result


def test_the_locked_gem_is_edited(tmp_path):
    app = Bundled(tmp_path)
    gem(app.home, "asked").write_text("ASKED = 'edited'\n")
    assert app.stale()[0] == "edited\n"


ASKED_LATER = "p Gem::Specification.map(&:name).sort, Gem.loaded_specs.keys.sort, Gem::Specification.find_all_by_name('foreign').size"


def test_what_rubygems_is_asked_later(tmp_path):
    app = Bundled(tmp_path)
    gem(app.home, "foreign")
    thawed = app.thawed(ASKED_LATER)
    assert thawed == support.run([support.RUBY, *app.argv(ASKED_LATER)[1:]], env=app.env, cwd=app.folder).out
    assert "foreign" not in thawed


def test_a_group_that_is_set_up_later(tmp_path):
    wanted = ["'asked'", "'later', group: :later"]
    boot = "require 'bundler'\nBundler.setup(:default)\nrequire 'asked'\nVALUE = ASKED"
    app = Bundled(tmp_path, boot, ("asked", "later"), wanted, ("asked (1.0)", "later (1.0)"))
    gem(app.home, "foreign")
    gem(app.home, "later", "2.0")
    assert app.thawed("Bundler.setup(:later); require 'later'; puts LATER") == "1.0\n"


def test_what_the_groups_require(tmp_path):
    wanted = ["'asked', require: false", "'grouped', group: :grouped"]
    boot = "require 'bundler/setup'\nBundler.require(:default, :grouped)\nVALUE = [defined?(ASKED), GROUPED].inspect"
    app = Bundled(tmp_path, boot, ("asked", "grouped"), wanted, ("asked (1.0)", "grouped (1.0)"))
    gem(app.home, "foreign")
    gem(app.home, "grouped", "2.0")
    assert app.thawed() == '[nil, "1.0"]\n'
    gem(app.home, "grouped").write_text("GROUPED = 'edited'\n")
    assert app.stale()[0] == '[nil, "edited"]\n'


def test_a_locked_gem_for_this_platform(tmp_path):
    app = Bundled(tmp_path)
    gem(app.home, "asked", f"2.0-{PLATFORM}")
    assert app.thawed() == "1.0\n"
    gem(app.home, "asked", f"1.0-{PLATFORM}")
    assert "lists other files (" in app.why()
    app.stale()


def test_without_a_lock_all_versions_count(tmp_path):
    app = Bundled(tmp_path, locked=())
    (tmp_path / "Gemfile.lock").unlink(missing_ok=True)
    gem(app.home, "asked", "2.0")
    assert app.stale()[0] == "2.0\n"


def test_a_gem_that_the_lock_lacks(tmp_path):
    boot = "VALUE = begin\n  require 'bundler/setup'\n  'found'\nrescue Exception => e\n  e.class.name\nend"
    app = Bundled(tmp_path, boot, ("asked",), ("'asked'", "'lacking'"), ("asked (1.0)",))
    assert app.thawed() == "Bundler::GemNotFound\n"
    gem(app.home, "lacking")
    assert app.stale()[0] == "found\n"


def test_a_bundle_within_the_program(tmp_path):
    boot = "require 'bundler/inline'\ngemfile { gem 'asked' }\nrequire 'asked'\nVALUE = ASKED"
    app = Bundled(tmp_path, boot, locked=())
    gem(app.home, "asked", "2.0")
    assert app.stale()[0] == "2.0\n"


def test_who_goes_through_what_bundler_has_depends_on_all(tmp_path):
    sources = "Bundler.definition.__send__(:sources).all_sources"
    boot = f"{SETUP}VALUE = {sources}.any? {{ |source| source.specs.any? {{ |spec| spec.name == 'foreign' }} }}"
    app = Bundled(tmp_path, boot)
    assert app.thawed() == "false\n"
    gem(app.home, "foreign")
    assert app.stale()[0] == "true\n"


def test_who_goes_through_all_gems_before_bundler_depends_on_all(tmp_path):
    boot = f"VALUE = Gem::Specification.map(&:name).include?('foreign')\n{SETUP}"
    app = Bundled(tmp_path, boot)
    assert app.thawed() == "false\n"
    gem(app.home, "foreign")
    assert app.stale()[0] == "true\n"


def test_a_lock_of_many_gems(tmp_path):
    names = [f"a-gem-with-a-rather-long-name-{number}" for number in range(150)]
    wanted, locked = [f"'{name}', require: false" for name in names], [f"{name} (1.0)" for name in names]
    app = Bundled(tmp_path, SETUP + "VALUE = 1", names, wanted, locked)
    gem(app.home, "foreign")
    assert app.thawed() == "1\n"
    gem(app.home, names[77], f"1.0-{PLATFORM}")
    app.stale()


def test_nothing_of_the_watch_is_left(tmp_path):
    app = Bundled(tmp_path)
    places = [
        *("Bundler::Index.instance_method(:local_search)", "Bundler::Index.instance_method(:each)"),
        *("Gem::Specification.method(:stubs)", "Gem::Specification.method(:all=)"),
        *("Gem::Util.method(:glob_files_in_dir)", "Bundler::Source::Rubygems.instance_method(:installed_specs)"),
    ]
    code = "\n".join(f"p {place}.source_location, {place}.arity" for place in places)
    code += "\np Bundler::Index.public_method_defined?(:search), Bundler::Index.protected_method_defined?(:specs)"
    assert app.thawed(code) == support.run([support.RUBY, *app.argv(code)[1:]], env=app.env, cwd=app.folder).out
