"""Boots programs the ordinary way and with an archive, and compares them; and the programs that the tests of whole boots change."""

import pathlib
import re
import shutil

import pytest
from common import support
from common.waiting import settle
from staleness import programs
from staleness.programs import workloads

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = support.ROOT / "ruby/lib"


class Boots:
    """A program of tests/staleness, an archive of its own, and the two ways to boot it.

    options: further variables of the boots with an archive. The archive is in a folder that holds nothing else.
    """

    def __init__(self, program, **options):
        self.program, self.options = program, options
        self.place = program.folder.parent / "archives"
        self.place.mkdir(mode=0o700, exist_ok=True)
        self.archive = self.place / "boot.archive"
        self.events = program.folder.parent / "events"

    def environment(self):
        """Of an ordinary boot. Both have the same load path, so that they may print it."""
        env = dict(self.program.env)
        env["RUBYLIB"] = ":".join(filter(None, [env.get("RUBYLIB"), str(LIBRARY)]))
        return env

    def archive_environment(self, **more):
        """Of a boot with the archive."""
        env = self.environment()
        env["RUBYOPT"] = " ".join(filter(None, [env.get("RUBYOPT"), "-rsnapboot/setup"]))
        return {**env, "SNAPBOOT_ARCHIVE": str(self.archive), **self.options, **more}

    def argv(self):
        return [*self.program.command, *self.program.ask]

    def ordinary(self):
        """The Result of an ordinary boot."""
        return support.run(self.argv(), env=self.environment(), cwd=self.program.cwd, log=False)

    def boot(self, **more):
        """The Result of a boot with the archive; `more` are variables."""
        return support.run(self.argv(), env=self.archive_environment(**more), cwd=self.program.cwd, log=False)

    def counted(self):
        """Boot with the archive. Returns the Result and the archive's events: counts by 'kind event', such as 'code hit'."""
        self.events.unlink(missing_ok=True)
        env = self.archive_environment(SNAPBOOT_TEST_EVENTS=str(self.events))
        env["RUBYOPT"] += f" -r{HERE}/events.rb"
        result = support.run(self.argv(), env=env, cwd=self.program.cwd, log=False)
        lines = self.events.read_text().splitlines() if self.events.exists() else []
        return result, {what: int(count) for what, count in (line.split("\t") for line in lines)}

    def compared(self, what, times=1):
        """Boot both ways, `times` with the archive. Fails the test when they differ. Returns the ordinary Result."""
        ordinary = self.ordinary()
        for number in range(1, times + 1):
            same(ordinary, self.boot(), f"{what}, boot {number}")
        return ordinary

    def warm(self):
        """Boot until the archive has what the program loads. Fails the test when it gets nothing out of it."""
        settle()
        ordinary = self.ordinary()
        for _ in range(2):
            same(ordinary, self.boot(), "filling the archive")
        result, events = self.counted()
        assert events.get("code hit", 0) > 0 and not events.get("code miss"), (events, result)
        return self


def same(ordinary, booted, what):
    """Fails the test when a boot with an archive did not do what an ordinary boot does.

    The frames of a backtrace are left out: where RubyGems has nothing to do, its `require` is passed over.
    """
    seen = [(result.status, result.out, without_frames(result.err)) for result in (ordinary, booted)]
    assert seen[0] == seen[1], f"after {what}:\nordinary: {ordinary}\nwith the archive: {booted}"


def without_frames(text):
    """What a program says on standard error, without the places that an uncaught error came by."""
    lines = [line for line in text.splitlines() if not line.startswith("\tfrom ")]
    return [re.sub(r"^\S+:\d+:in [`'].*?': ", "", line) for line in lines]


def made(make, top, **options):
    """The Boots of a program. Skips where it cannot be had."""
    if support.RUBY is None:
        pytest.skip("there is no ruby")
    try:
        return Boots(make(top), **options)
    except workloads.Unavailable as reason:
        pytest.skip(str(reason))


# ---- the programs ----

TINY_MAIN = """\
require "first"
require "second"
require_relative "beside"
autoload :Later, "later"
puts $marks.inspect, Later::WHAT, YAML.load_file(__dir__ + "/data.yml").inspect
puts $LOADED_FEATURES.grep(%r{/app/}).inspect
$stderr.puts "an error"
exit 3
"""
SECOND = """\
require "yaml"
require "third"
begin
  require "missing"
rescue LoadError => error
  ($marks ||= []) << error.message
end
($marks ||= []) << __FILE__ << __method__.inspect << "second".frozen?
"""


def tiny(top):
    """The smallest that has all kinds of entries, without RubyGems: it boots in a few milliseconds."""
    app = top / "app"
    for name in ("early", "late", "elsewhere"):
        (app / name).mkdir(parents=True)
    (app / "main.rb").write_text(TINY_MAIN)
    (app / "beside.rb").write_text("($marks ||= []) << caller.size\n")
    (app / "late/first.rb").write_text("($marks ||= []) << 'aa first'\n")
    (app / "late/second.rb").write_text(SECOND)
    (app / "late/third.rb").write_text("# frozen_string_literal: true\n($marks ||= []) << 'third'.frozen?\n")
    (app / "late/later.rb").write_text("module Later; WHAT = 'aa later'; end\n")
    (app / "data.yml").write_text("text: aa\nlist: [1, 2.5, null, {a: b}]\n")
    env = {"RUBYLIB": f"{app}/early:{app}/late"}
    program = programs.Program(app, [support.RUBY, "--disable-gems", str(app / "main.rb")], [], env=env)
    program.sources = [app / name for name in ("beside.rb", "late/first.rb", "late/second.rb", "late/later.rb")]
    program.shadows = [app / name for name in ("early/first.rb", "early/missing.rb", "early/yaml.rb", "early/third.so")]
    return program


BUNDLED_MAIN = """\
require "bundler/setup"
require "tiny"
Bundler.require
require "json"
puts $marks.inspect, Tiny::VERSION, Gem.loaded_specs.keys.sort.inspect
puts Bundler.definition.specs.map { |spec| "#{spec.name} #{spec.version}" }.sort.inspect
puts $LOAD_PATH.grep(%r{/app/}).inspect, ENV["BUNDLE_GEMFILE"]
"""


def bundled(top):
    """A program with a Gemfile, and gems in a folder of its own: two versions of one, and another one."""
    app = top / "app"
    (app / "elsewhere").mkdir(parents=True)
    (app / "gems/specifications").mkdir(parents=True)
    for version in ("1.0", "1.1"):
        programs.add_gem(app, version)
    (app / "main.rb").write_text(BUNDLED_MAIN)
    (app / "Gemfile").write_text("source 'https://gem.invalid'\ngem 'tiny', '1.0'\n")
    env = {"GEM_HOME": str(app / "gems"), "GEM_PATH": str(app / "gems"), "BUNDLE_APP_CONFIG": str(app / ".bundle")}
    env["BUNDLE_USER_HOME"] = str(app / "home")
    program = programs.Program(app, [support.RUBY, str(app / "main.rb")], [], env=env)
    program.sources = [app / "gems/gems/tiny-1.0/lib/tiny.rb"]
    program.shadows = [app / "gems/gems/tiny-1.0/lib/bundler.rb", app / "gems/gems/tiny-1.0/lib/json.rb"]
    return program


MARK_PLUGIN = """\
Jekyll::Hooks.register(:site, :post_write) { |site| puts site.data.sort.inspect, site.config.values_at("title", "url").inspect }
puts 'aa plugin'
"""


def jekyll(top):
    """A site with data, a plugin and a page; what is built is printed."""
    command = workloads.prepare("jekyll")["jekyll"]
    app = top / "app"
    for name in ("_plugins", "_data", "elsewhere", "_layouts"):
        (app / name).mkdir(parents=True)
    (app / "_config.yml").write_text("title: aa\nurl: http://localhost\n")
    (app / "_plugins/mark.rb").write_text(MARK_PLUGIN)
    (app / "_data/values.yml").write_text("- aa\n- {one: 1.5, two: 2001-01-01}\n")
    (app / "_data/more.json").write_text('{"text": "aa"}')
    (app / "_layouts/page.html").write_text("<p>{{ site.title }} {{ content }} {{ site.data.values }}</p>\n")
    (app / "index.md").write_text("---\nlayout: page\n---\n*aa*\n")
    show = 'rm -rf _site && "$0" build -q --disable-disk-cache && cat _site/index.html'
    program = programs.Program(app, ["sh", "-c", show, command], [])
    program.sources = [app / "_plugins/mark.rb"]
    program.shadows = [app / "_plugins/other.rb"]
    return program


RAILS_SHOW = """\
puts $marks.inspect, Rails.env, I18n.t("hello"), Rails.application.routes.routes.size, $LOADED_FEATURES.grep(%r{/app/}).inspect,
     Rails.configuration.database_configuration.inspect, ApplicationController.instance_methods(false).inspect,
     Rails.application.call(Rack::MockRequest.env_for("/")).first
"""


def rails(top):
    """A Rails application in production mode, which its tests may change."""
    app = top / "app"
    shutil.copytree(workloads.prepare("rails")["dir"], app, symlinks=True, ignore=shutil.ignore_patterns("log", "cache"))
    for name in ("log", "elsewhere"):
        (app / name).mkdir()
    (app / "config/locales/en.yml").write_text("en:\n  hello: aa world\n")
    database = app / "config/database.yml"
    database.write_text(database.read_text().replace("  timeout: 5000", "  timeout: 5000\n  text: aa"))
    env = {"RAILS_ENV": "production", "SECRET_KEY_BASE": "x" * 64}
    program = programs.Program(app, [support.RUBY, "bin/rails"], ["runner", RAILS_SHOW], env=env)
    program.sources = [app / name for name in ("config/application.rb", "config/environments/production.rb")]
    program.sources += [app / "config/routes.rb", app / "app/controllers/application_controller.rb"]
    program.shadows = [app / "config/initializers/zz_new.rb", app / "lib/json.rb", app / "app/models/first.rb"]
    return program
