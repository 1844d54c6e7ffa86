"""What installing gems does to an image: one that has nothing to do with the program leaves it fresh, one that the boot would have
found, or that it used, makes it stale."""

import shutil

import pytest
from common import support

from .test_packages import write

pytestmark = [support.needs_ruby, pytest.mark.sample(12, whole=True)]


def gem(home, name, version="1.0"):
    """What an installer puts into a folder of gems. Returns the gem's library."""
    specification = (
        f"# -*- encoding: utf-8 -*-\n# stub: {name} {version} ruby lib\n\n"
        f"Gem::Specification.new do |s|\n  s.name = '{name}'\n  s.version = '{version}'\n  s.require_paths = ['lib']\n"
        f"  s.summary = s.name\n  s.authors = ['nobody']\n  s.installed_by_version = '3.2'\nend\n"
    )
    write(home / f"specifications/{name}-{version}.gemspec", specification)
    return write(home / f"gems/{name}-{version}/lib/{name}.rb", f"{name.upper().replace('-', '_')} = '{version}'\n")


class Frozen:
    """An image whose boot asks something of RubyGems and has it in VALUE. Gems are in `home`."""

    def __init__(self, tmp_path, boot, *gems):
        self.home = tmp_path / "gems"
        self.home.mkdir()
        for name in gems:
            gem(self.home, name)
        self.folder = tmp_path
        write(tmp_path / "boot.rb", boot)
        self.env = support.environment(GEM_HOME=str(self.home))
        self.image = tmp_path / "app.img"
        self.freeze()

    def freeze(self):
        support.frozen(self.image, [support.RUBY], "--preload", "./boot", env=self.env, cwd=self.folder)

    def thawed(self, code="puts VALUE"):
        return support.thawed(self.argv(code), env=self.env, cwd=self.folder).out

    def stale(self):
        """The image must start the ordinary way. Returns what that prints, and why."""
        result = support.run(self.argv("puts VALUE"), env=self.env, cwd=self.folder)
        assert result.fell_back and result.status == 0, result
        return result.out, result.err

    def why(self):
        command = [support.SNAPBOOT, "inspect", "--why", self.image]
        return support.run(command, env=self.env, cwd=self.folder, log=False).out

    def argv(self, code):
        return [self.image, "-e", f"require './boot'\n{code}"]


ASKED = "gem 'asked'\nrequire 'asked'\nVALUE = ASKED"


@pytest.mark.parametrize("before", [[], ["other"]], ids=["the first", "one more"])
def test_a_gem_for_a_boot_that_uses_none(before, tmp_path):
    app = Frozen(tmp_path, "VALUE = 1", *before)
    gem(app.home, "foreign")
    for _ in range(2):
        assert app.thawed() == "1\n"
    assert app.why() == f"{app.image}: fresh\n"
    assert app.thawed("require 'foreign'; puts FOREIGN") == "1.0\n"
    assert app.thawed("puts Gem::Specification.find_by_name('foreign').version") == "1.0\n"


def test_a_foreign_gem_beside_the_one_that_was_asked_for(tmp_path):
    app = Frozen(tmp_path, ASKED, "asked", "other")
    gem(app.home, "foreign")
    assert app.thawed("puts VALUE; gem 'foreign'; require 'foreign'; puts FOREIGN") == "1.0\n1.0\n"


def test_the_gem_that_was_asked_for_in_another_version(tmp_path):
    app = Frozen(tmp_path, ASKED, "asked")
    gem(app.home, "asked", "2.0")
    out, err = app.stale()
    folder = app.home / "specifications"
    assert out == "2.0\n" and f"this directory lists other names among those that the boot looked up: {folder}" in err
    assert f"{folder}: lists other files (" in app.why() and "asked-*.gemspec" in app.why()


def test_the_gem_that_was_asked_for_edited_in_place(tmp_path):
    app = Frozen(tmp_path, ASKED, "asked")
    gem(app.home, "asked").write_text("ASKED = 'edited'\n")
    assert app.stale()[0] == "edited\n"


def test_a_gem_that_was_looked_for_in_vain(tmp_path):
    app = Frozen(tmp_path, "VALUE = Gem::Specification.stubs_for('asked').empty? ? 'none' : 'found'")
    gem(app.home, "foreign")
    assert app.thawed() == "none\n"
    gem(app.home, "asked")
    assert app.stale()[0] == "found\n"


ALL = {
    "each": "VALUE = Gem::Specification.map(&:name).include?('foreign')",
}


@pytest.mark.parametrize("how", ALL)
def test_who_looks_through_all_gems_depends_on_all(how, tmp_path):
    app = Frozen(tmp_path, ALL[how], "other")
    write(app.home / "specifications/plain.txt")
    assert app.thawed() == "false\n"
    gem(app.home, "foreign")
    assert app.stale()[0] == "true\n"


FEATURE = "VALUE = begin\n  require 'foreign'\n  FOREIGN\nrescue LoadError\n  'none'\nend"
FOREIGN = "p Gem::Specification.map(&:name).include?('foreign')"


def test_a_feature_that_was_looked_for_in_all_gems(tmp_path):
    app = Frozen(tmp_path, FEATURE, "other")
    write(app.home / "specifications/plain.txt")
    assert app.thawed(FOREIGN) == "false\n"
    gem(app.home, "foreign-more")
    for _ in range(2):
        assert app.thawed() == "none\n"
    assert app.why() == f"{app.image}: fresh\n"
    gem(app.home, "foreign")
    assert app.stale()[0] == "1.0\n"
    assert f"{app.home}/specifications: lists other gems with one of these features (foreign) than" in app.why()


def test_a_feature_of_a_gem_of_another_name(tmp_path):
    app = Frozen(tmp_path, FEATURE, "other")
    gem(app.home, "strange")
    assert app.thawed() == "none\n"
    write(app.home / "gems/strange-1.0/lib/foreign.rb", "FOREIGN = 'strange'\n")
    assert app.stale()[0] == "strange\n"


def test_a_newer_version_of_a_gem_that_was_found_by_its_feature(tmp_path):
    app = Frozen(tmp_path, FEATURE, "foreign", "other")
    gem(app.home, "more")
    gem(app.home, "other", "2.0")
    assert app.thawed() == "1.0\n"
    gem(app.home, "foreign", "2.0")
    assert app.stale()[0] == "2.0\n"


OTHER_SPECIFICATIONS = {
    "extensions": ("\n\nGem", "\n# stub: ext/extconf.rb\n\nGem"),
    "nothing that tells": ("# stub: ", "# "),
    "another folder": ("ruby lib\n", "ruby .\n"),
}


@pytest.mark.parametrize("how", OTHER_SPECIFICATIONS)
def test_a_gem_that_may_have_the_feature(how, tmp_path):
    app = Frozen(tmp_path, FEATURE, "other")
    gem(app.home, "strange")
    write(app.home / "gems/strange-1.0/foreign.rb", "FOREIGN = 'strange'\n")
    specification = app.home / "specifications/strange-1.0.gemspec"
    specification.write_text(specification.read_text().replace(*OTHER_SPECIFICATIONS[how], 1))
    app.stale()


def test_what_was_listed_is_forgotten_when_a_gem_comes(tmp_path):
    app = Frozen(tmp_path, FEATURE, "other")
    assert app.thawed(FOREIGN) == "false\n"
    gem(app.home, "late")
    assert app.thawed("p Gem::Specification.map(&:name).include?('late')") == "true\n"
    assert app.thawed("require 'late'; puts LATE") == "1.0\n"
    assert app.thawed("gem 'late'; require 'late'; puts LATE") == "1.0\n"


def test_a_feature_of_a_gem_in_use(tmp_path):
    boot = "gem 'asked'\nrequire 'asked'\nrequire 'set'\nVALUE = Gem::Specification.unresolved_deps.keys.inspect"
    app = Frozen(tmp_path, "", "asked", "wanted", "other")
    gem(app.home, "wanted", "2.0")
    specification = app.home / "specifications/asked-1.0.gemspec"
    wants = "  s.add_runtime_dependency 'wanted', '>= 0'\nend\n"
    specification.write_text(specification.read_text().replace("\nend\n", "\n" + wants))
    write(tmp_path / "boot.rb", boot)
    app.freeze()
    gem(app.home, "late")
    assert app.thawed() == '["wanted"]\n'
    assert app.thawed(FOREIGN.replace("foreign", "late")) == "true\n"
    gem(app.home, "wanted", "3.0")
    app.stale()


def test_folders_of_gems_that_come_into_being(tmp_path):
    app = Frozen(tmp_path, FEATURE)
    gem(app.home, "late")
    assert app.thawed("require 'late'; puts LATE") == "1.0\n"
    gem(app.home, "foreign")
    assert app.stale()[0] == "1.0\n"


@pytest.mark.parametrize("boot", ["VALUE = 'none'", FEATURE], ids=["no", "a feature"])
def test_the_first_gem_in_a_folder_of_gems(boot, tmp_path):
    app = Frozen(tmp_path, boot)
    app.home.rmdir()
    app.freeze()
    gem(app.home, "late")
    assert app.thawed() == "none\n"
    assert app.thawed("require 'late'; puts LATE, Gem.path.include?(ENV['GEM_HOME'])") == "1.0\ntrue\n"
    assert app.why() == f"{app.image}: fresh\n"
    shutil.rmtree(app.home)
    assert app.thawed() == "none\n"
    (tmp_path / "elsewhere").mkdir()
    app.home.symlink_to(tmp_path / "elsewhere")
    assert app.stale()[0] == "none\n"


def test_who_lists_the_folder_depends_on_all_of_it(tmp_path):
    app = Frozen(tmp_path, "VALUE = Dir.children(\"#{ENV['GEM_HOME']}/specifications\").size", "other")
    assert app.thawed() == "1\n"
    write(app.home / "specifications/plain.txt")
    assert app.stale()[0] == "2\n"


def test_nothing_of_the_watch_is_left(tmp_path):
    app = Frozen(tmp_path, ASKED, "asked")
    methods = ("Util.method(:glob_files_in_dir)", "Specification.method(:find_by_path)", "Specification.method(:stubs)")
    code = "\n".join(f"p Gem::{method}.source_location, Gem::{method}.arity" for method in methods)
    assert app.thawed(code) == support.run([support.RUBY, "-e", code], log=False).out
