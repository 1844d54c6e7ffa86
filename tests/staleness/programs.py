"""Programs in folders of their own, all of whose files a test may change, and the comparison of their two kinds of start."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from common import support

sys.path.append(str(support.ROOT / "tools"))
import workloads  # noqa: E402

FELL_BACK = "starting the ordinary way"
# What CPython 3.13 and later add to some errors, and a thaw leaves out: "Hints and frames" in docs/limits/visible.md.
HINT = re.compile(r" \(consider renaming '[^']*' (?:since|if) it has the same name as [^)]*\)")

PYTHON_MAIN = """\
import json, os, sys
import pkg.first, pkg.second, plain, settings
marks = [(name, getattr(module, "MARK", None)) for name, module in sorted(sys.modules.items())
         if getattr(module, "__file__", None) and "/app/" in module.__file__]
print(marks)
print(settings.DATA, settings.TEXT, settings.PLUGINS, settings.OPTIONAL, settings.ANSWER())
print(sys.path[1:], os.getcwd(), os.environ.get("LANG"), os.environ.get("UNRELATED"), sys.flags)
"""
PYTHON_SETTINGS = """\
import ctypes, json, os
HERE = os.path.dirname(os.path.abspath(__file__))
with open(HERE + "/data.json") as file:
    DATA = json.load(file)
with open(HERE + "/link") as file:
    TEXT = file.read()
PLUGINS = sorted(name for name in os.listdir(HERE + "/plugins") if name.endswith(".txt"))
OPTIONAL = os.path.exists(HERE + "/optional") and open(HERE + "/optional").read()
ANSWER = ctypes.CDLL(HERE + "/libanswer.so").answer if os.path.exists(HERE + "/libanswer.so") else lambda: None
"""
RUBY_MAIN = """\
require "first"
require "second"
require "settings"
require "tiny"
puts $marks.inspect, Tiny::VERSION
puts [DATA_FILE, TEXT, PLUGINS, OPTIONAL].inspect
puts [$LOAD_PATH.grep(/app/), Dir.pwd, ENV["LANG"], ENV["UNRELATED"], $LOADED_FEATURES.grep(/app/).sort].inspect
"""
RUBY_SETTINGS = """\
require "yaml"
DATA_FILE = YAML.load_file(__dir__ + "/data.yml")
TEXT = File.read(__dir__ + "/link")
PLUGINS = Dir.children(__dir__ + "/plugins").grep(/txt$/).sort
OPTIONAL = File.exist?(__dir__ + "/optional") && File.read(__dir__ + "/optional")
"""
GEMSPEC = 'Gem::Specification.new { |s| s.name = "tiny"; s.version = "%s"; s.summary = s.author = "x"; s.files = ["lib/tiny.rb"] }\n'
LIBRARY = "int answer(void) { return %d; }\n"


def frozen_with_module(folder, text):
    """An image of Python with a module of this text, and the environment that finds it."""
    (folder / "module.py").write_text(text)
    env = support.environment(PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1")
    return support.frozen(folder / "app.img", [support.PYTHON], "--preload", "module", env=env), env


class Program:
    """A program that can be frozen, started in both ways, and changed.

    folder: holds everything that may be changed. command: as typed. ask: arguments that print what the program is made of.
    preload, env, cwd: of the freeze and of every start. sources: files whose text may be changed, and what may be put into
    them. paths: directories that come earlier on the search path, with names that would shadow something.
    """

    def __init__(self, folder, command, ask, preload=(), env=None, cwd=None, options=()):
        self.folder, self.command, self.ask, self.preload = folder, command, ask, preload
        self.env = support.environment(PYTHONDONTWRITEBYTECODE="1", **(env or {}))
        self.cwd = cwd or folder
        self.options = options
        self.image = folder.parent / (folder.name + ".img")

    def freeze(self):
        """Writes the image. Returns the Result of `snapboot freeze`."""
        options = [*self.options, *(["--preload", ",".join(self.preload)] if self.preload else [])]
        return support.freeze(self.image, self.command, *options, env=self.env, serves_others=True, cwd=self.cwd)

    def starts(self):
        """Starts the program in both ways. Returns the ordinary Result, the other one, and whether that fell back."""
        ordinary = support.run([*self.command, *self.ask], env=self.env, cwd=self.cwd, log=False)
        other = support.run([self.image, *self.ask], env=self.env, cwd=self.cwd)
        lines = other.err.splitlines(keepends=True)
        fell_back = any(FELL_BACK in line for line in lines)
        other.err = "".join(line for line in lines if FELL_BACK not in line)
        if not fell_back:
            ordinary.err = HINT.sub("", ordinary.err)
        return ordinary, other, fell_back


def same(ordinary, other):
    """Whether two starts did the same."""
    return (ordinary.status, ordinary.out, ordinary.err) == (other.status, other.out, other.err)


def small_python(top):
    """A script with packages, data, a listed folder, a symbolic link, a shared library and a virtual environment."""
    app = top / "app"
    for name in ("early", "late/pkg", "plugins", "elsewhere"):
        (app / name).mkdir(parents=True)
    subprocess.run([support.PYTHON, "-m", "venv", "--without-pip", app / "venv"], check=True)
    (app / "main.py").write_text(PYTHON_MAIN)
    (app / "settings.py").write_text(PYTHON_SETTINGS)
    for name in ("pkg/__init__", "pkg/first", "pkg/second", "plain"):
        (app / f"late/{name}.py").write_text(f"MARK = 'aa {name}'\n")
    (app / "data.json").write_text('{"text": "aa"}')
    things_to_read(app)
    env = {"PYTHONPATH": f"{app}/early:{app}/late"}
    program = Program(app, [str(app / "venv/bin/python"), str(app / "main.py")], [], env=env)
    program.sources = [app / name for name in ("settings.py", "late/plain.py", "late/pkg/first.py", "late/pkg/__init__.py")]
    program.shadows = [app / name for name in ("plain.py", "early/plain.py", "early/json.py", "json.py", "late/json.py")]
    program.shadows += [app / "early/pkg/__init__.py", app / "early/settings.py", app / "early/sitecustomize.py"]
    program.site = next(app.glob("venv/lib/python*/site-packages"))
    program.shadows.append(program.site / "usercustomize.py")
    return program


def small_ruby(top):
    """The same in Ruby, with a gem in a folder of its own."""
    app = top / "app"
    for name in ("early", "late", "plugins", "elsewhere", "gems/specifications"):
        (app / name).mkdir(parents=True)
    (app / "main.rb").write_text(RUBY_MAIN)
    (app / "late/settings.rb").write_text(RUBY_SETTINGS.replace("__dir__", repr(str(app))))
    for name in ("first", "second"):
        (app / f"late/{name}.rb").write_text("($marks ||= []) << 'aa " + name + "'\n")
    (app / "data.yml").write_text("text: aa\n")
    things_to_read(app)
    add_gem(app, "1.0")
    env = {"RUBYLIB": f"{app}/early:{app}/late", "GEM_HOME": str(app / "gems"), "GEM_PATH": str(app / "gems")}
    program = Program(app, [support.RUBY, str(app / "main.rb")], [], env=env)
    program.sources = [app / name for name in ("late/settings.rb", "late/first.rb", "late/second.rb")]
    program.sources.append(app / "gems/gems/tiny-1.0/lib/tiny.rb")
    program.shadows = [app / name for name in ("early/first.rb", "early/yaml.rb", "early/tiny.rb", "early/settings.rb")]
    program.site = None
    return program


def things_to_read(app):
    (app / "target").write_text("aa target")
    (app / "other").write_text("aa another")
    (app / "link").symlink_to("target")
    (app / "plugins/one.txt").write_text("")
    build_library(app, 1)


def build_library(app, answer):
    """(Re)places the shared library as an upgrade does."""
    support.cc(LIBRARY % answer, app / "new.so", "-shared", "-fPIC")
    os.replace(app / "new.so", app / "libanswer.so")


def add_gem(app, version):
    """Installs another version of the gem."""
    folder = app / f"gems/gems/tiny-{version}/lib"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tiny.rb").write_text(f"module Tiny; VERSION = 'aa {version}'; end\n")
    (app / f"gems/specifications/tiny-{version}.gemspec").write_text(GEMSPEC % version)


MARKS = """\
import sys
print([(name, module.MARK) for name, module in sorted(sys.modules.items()) if type(getattr(module, "MARK", 0)) is str], sys.path)
"""


def python_framework(top, workload, preload, project=None, command=None, ask=None, env=None):
    """A copy of a workload's virtual environment and, where there is one, its project."""
    values = workloads.prepare(workload)
    app = top / "app"
    app.mkdir()
    shutil.copytree(pathlib.Path(values["bin"]).parent, app / "venv", symlinks=True)
    for name in project or ():
        source = pathlib.Path(values["dir"]) / name
        shutil.copytree(source, app / name) if source.is_dir() else shutil.copy2(source, app / name)
    for name in ("early", "elsewhere"):
        (app / name).mkdir()
    python = str(app / "venv/bin/python")
    env = {"PYTHONPATH": str(app / "early"), **(env or {})}
    program = Program(app, [python, *(command or [])], ask or ["-c", MARKS], preload=preload, env=env)
    program.site = next(app.glob("venv/lib/python*/site-packages"))
    return program


def web(top):
    """Flask, Requests and PyMongo."""
    ask = ["-c", "import flask, requests, pymongo\n" + MARKS]
    program = python_framework(top, "web", ["flask", "requests", "pymongo"], ask=ask)
    site = program.site
    program.sources = [site / name for name in ("flask/app.py", "werkzeug/routing/map.py", "urllib3/util/retry.py")]
    program.sources += [site / "pymongo/__init__.py", site / "jinja2/lexer.py", site / "certifi/core.py"]
    program.shadows = [program.folder / name for name in ("early/jinja2.py", "early/json.py", "early/bson/__init__.py")]
    program.shadows += [program.folder / "flask.py", site / "simplejson.py", site / "brotli.py"]
    return program


def django(top):
    """A Django project with its settings; `manage.py shell` prints the marks."""
    program = python_framework(
        top, "django", ["skel.wsgi", "skel.urls"], ["manage.py", "skel"], ["manage.py"], ["shell", "-c", MARKS]
    )
    site, folder = program.site, program.folder
    program.sources = [folder / "skel/settings.py", folder / "skel/urls.py", site / "django/urls/resolvers.py"]
    program.sources += [site / "django/conf/global_settings.py", site / "asgiref/sync.py"]
    program.shadows = [folder / name for name in ("early/skel/__init__.py", "json.py", "early/asgiref.py")]
    return program


def rails(top):
    """A Rails application in production mode."""
    values = workloads.prepare("rails")
    app = top / "app"
    shutil.copytree(values["dir"], app, symlinks=True, ignore=shutil.ignore_patterns("log", "tmp"))
    for name in ("log", "tmp", "elsewhere"):
        (app / name).mkdir()
    show = "puts $marks.inspect, Rails.env, I18n.t('hello'), Rails.application.routes.routes.size"
    env = {"RAILS_ENV": "production", "SECRET_KEY_BASE": "x" * 64}
    program = Program(app, ["bin/rails"], ["runner", show], preload=["./config/environment"], env=env)
    program.options = ["--env", "SECRET_KEY_BASE"]
    program.sources = [app / name for name in ("config/application.rb", "config/environments/production.rb")]
    program.sources += [app / "config/routes.rb", app / "app/controllers/application_controller.rb"]
    program.shadows = [app / "config/initializers/zz_new.rb", app / "lib/first.rb"]
    program.site = None
    return program
