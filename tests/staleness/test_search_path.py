"""PYTHONPATH and RUBYLIB count by what was looked up along them: a start with other directories is served where none has a name of these.

Each start is made with the image and in the ordinary way, and the same must come out: the search path, and where a module is loaded from
that is only there.
"""

import json
import os

import pytest
from common import support
from common.languages import PYTHON, RUBY, both

VARIABLE = {"python": "PYTHONPATH", "ruby": "RUBYLIB"}
MAIN = {
    "python": """import json, os, subprocess, sys
import boot
value = boot.VALUE() if callable(boot.VALUE) else boot.VALUE
try:
    import late
    found = late.__file__, late.VALUE
except ImportError as error:
    found = str(error)
child = subprocess.run([sys.executable, "-c", "import sys; print(sys.path)"], capture_output=True, text=True).stdout
added = sorted({*os.environ.get("PYTHONPATH", "").split(":")} & {*sys.path})
cache = {entry: type(sys.path_importer_cache.get(entry, "")).__name__ for entry in added}
print(json.dumps([value, sys.path, found, os.environ.get("PYTHONPATH"), child, cache]))
""",
    "ruby": """require_relative "boot"
require "json"
value = VALUE.respond_to?(:call) ? VALUE.call : VALUE
begin
  require "late"
  found = [$LOADED_FEATURES.grep(/late.rb/), LATE]
rescue LoadError => error
  found = error.message
end
path = $LOAD_PATH.map { |entry| [entry, entry.encoding.to_s, entry.frozen?, entry.instance_variables] }
suggests = DidYouMean::RequirePathChecker.const_get(:INITIAL_LOAD_PATH).then { |list| [list, list.frozen?] }
puts JSON.generate([value, path, found, ENV["RUBYLIB"], `#{RbConfig.ruby} -e 'p $LOAD_PATH'`, suggests])
""",
}
LATE = {"python": "VALUE = 'late'\n", "ruby": "LATE = 'late'\n"}
# What a boot does, in each language, and whether a start with other directories is served.
WAYS = {
    "nothing": ("VALUE = 1", "VALUE = 1", True),
    "keeps HOME": ("VALUE = os.environ['HOME']", "VALUE = ENV['HOME']", True),
    "holds the path itself": ("VALUE = (lambda path: lambda: path)(sys.path)", "VALUE = $LOAD_PATH.then { |path| -> { path } }", True),
    "adds a directory in front": ("sys.path.insert(0, '/front'); VALUE = 1", "$LOAD_PATH.unshift('/front'); VALUE = 1", True),
    "adds one behind": ("sys.path.append('/behind'); VALUE = 1", "$LOAD_PATH.push('/behind'); VALUE = 1", True),
    "adds one as the second": ("sys.path.insert(1, '/second'); VALUE = 1", None, True),
    "makes the path anew": ("sys.path = [*sys.path, '/new']; VALUE = 1", None, False),
    "leaves out what is not the language's": (
        "sys.path[:] = [it for it in sys.path if 'python' in it]; VALUE = 1",
        "$LOAD_PATH.select! { |it| it.include?('ruby') }; VALUE = 1",
        False,
    ),
    "copies the path": ("VALUE = sys.path[:]", "VALUE = $LOAD_PATH.dup", False),
    "keeps its length": ("VALUE = len(sys.path)", "VALUE = $LOAD_PATH.size", False),
    "keeps its first entry": ("VALUE = sys.path[1]", "VALUE = $LOAD_PATH[0]", False),
    "looks at the variable": ("VALUE = 'PYTHONPATH' in os.environ", "VALUE = ENV.key?('RUBYLIB')", False),
    "reads the variable": ("VALUE = os.environ.get('PYTHONPATH')", "VALUE = ENV['RUBYLIB']", False),
    "copies the environment": (
        "VALUE = (lambda copy: lambda: copy.get('PYTHONPATH'))(dict(os.environ))",
        "VALUE = ENV.to_h.then { |copy| -> { copy['RUBYLIB'] } }",
        None,
    ),
    "lists what is there": (
        "VALUE = sorted(os.listdir(entry) for entry in sys.path if entry.startswith('/tmp') and os.path.isdir(entry))",
        "VALUE = Gem.find_files('la*')",
        False,
    ),
    "looks for distributions": (
        "import importlib.metadata\nVALUE = len(list(importlib.metadata.distributions()))",
        None,
        False,
    ),
    "looks for a module": (
        "try:\n    import wanted\n    VALUE = 1\nexcept ImportError:\n    VALUE = 2",
        "VALUE = begin\n  require 'wanted'\nrescue LoadError\n  2\nend",
        True,
    ),
    "looks for a file": (
        "VALUE = [entry for entry in sys.path if os.path.exists(entry + '/wanted.txt')]",
        "VALUE = $LOAD_PATH.select { |entry| File.exist?(entry + '/wanted.txt') }",
        True,
    ),
}


class Program:
    """A script with a module beside it that the boot loads, and its image. made_with: the value of the variable then, or None."""

    def __init__(self, language, folder, boot, made_with=None):
        self.language, self.folder = language, folder
        (folder / "app").mkdir(exist_ok=True)
        self.script = folder / "app" / ("app" + language.ending)
        self.script.write_text(MAIN[language.name])
        imports = "import os, sys\n" if language is PYTHON else ""
        (folder / "app" / ("boot" + language.ending)).write_text(imports + boot + "\n")
        self.image = folder / "x.img"
        self.variable = VARIABLE[language.name]
        self.env = support.environment(PYTHONDONTWRITEBYTECODE="1")
        preload = "boot" if language is PYTHON else folder / "app/boot"
        command = [language.program, self.script]
        options = {"env": self.env_with(made_with), "cwd": folder, "serves_others": language is PYTHON}
        support.frozen(self.image, command, "--preload", preload, **options)

    def env_with(self, value):
        return self.env if value is None else {**self.env, self.variable: str(value)}

    def write(self, name, text=""):
        """A file in a folder of that name, which is made."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def check(self, value, is_served):
        """A start with this value prints what an ordinary one does. is_served: whether by the image, or None. Returns what it prints."""
        env = self.env_with(value)
        image = support.run([self.image], env=env, cwd=self.folder)
        plain = support.run([self.language.program, self.script], env=env, cwd=self.folder)
        assert (image.out, image.status) == (plain.out, 0), (image, plain)
        assert is_served is None or image.fell_back != is_served, image
        return json.loads(image.out)


def cases():
    """Triples of a language, what its boot does, and whether starts are served."""
    for way, (python, ruby, is_served) in WAYS.items():
        yield pytest.param(PYTHON, python, is_served, id=f"python: {way}")
        if ruby is not None:
            yield pytest.param(RUBY, ruby, is_served, id=f"ruby: {way}", marks=support.needs_ruby)


@pytest.mark.sample(36)
@pytest.mark.parametrize("language, boot, is_served", list(cases()))
def test_what_follows_from_the_search_path_counts(language, boot, is_served, tmp_path):
    program = Program(language, tmp_path, boot)
    program.write("one/late" + language.ending, LATE[language.name])
    (tmp_path / "empty").mkdir()
    program.check(None, True)
    program.check(f"{tmp_path}/one", is_served)
    program.check(f"{tmp_path}/absent:{tmp_path}/empty:{tmp_path}/one", is_served)


@both
def test_a_module_comes_from_the_directories_of_the_start(language, tmp_path):
    program = Program(language, tmp_path, "VALUE = 1")
    late = [program.write(f"{name}/late{language.ending}", LATE[language.name]) for name in ("one", "two")]
    for value, expected in ((late[0].parent, late[0]), (f"{tmp_path}/absent:{late[1].parent}:{late[0].parent}", late[1])):
        _, path, found, *_ = program.check(value, True)
        assert str(expected) in str(found) and str(late[0].parent) in str(path), (path, found)


@pytest.mark.sample(16, each=lambda parameters: parameters["language"].name)
@both
@pytest.mark.parametrize("made_with", ["unset", "empty", "other"])
def test_any_value_serves_any_other(language, made_with, tmp_path):
    """Also the same one, whatever is in its directories by now that was not looked up."""
    values = {"unset": None, "empty": "", "other": f"{tmp_path}/other:{tmp_path}/more"}
    (tmp_path / "other").mkdir()
    program = Program(language, tmp_path, "VALUE = 1", values[made_with])
    program.write("one/late" + language.ending, LATE[language.name])
    for value in (*values.values(), f"{tmp_path}/more", f"{tmp_path}/one", f"{tmp_path}/one:{tmp_path}/other"):
        program.check(value, True)


@both
def test_a_directory_that_supplied_a_module_binds(language, tmp_path):
    wanted = tmp_path / "early" / ("wanted" + language.ending)
    wanted.parent.mkdir()
    wanted.write_text("WANTED = 1\n")
    source = {"python": "from wanted import WANTED as VALUE", "ruby": "require 'wanted'\nVALUE = WANTED"}[language.name]
    program = Program(language, tmp_path, source, wanted.parent)
    other = program.write("late/wanted" + language.ending, "WANTED = 2\n")
    program.check(wanted.parent, True)
    program.check(other.parent, False)
    program.check(f"{wanted.parent}:{other.parent}", False)


@both
def test_who_leaves_out_the_current_directory_is_right(language, tmp_path):
    source = {
        "python": "sys.path[:] = [entry for entry in sys.path if entry != os.getcwd()]; VALUE = 1",
        "ruby": "$LOAD_PATH.reject! { |entry| entry == Dir.pwd }; VALUE = 1",
    }
    program = Program(language, tmp_path, source[language.name])
    program.write("one/late" + language.ending, LATE[language.name])
    program.check(tmp_path, False)
    program.check("/nowhere", True)


# Names in a directory of the start, and whether the boot has looked them up.
NAMES = {
    "a module that was found behind it": {"python": "json.py", "ruby": "json.rb"},
    "a library of that name": {"python": "json.abi3.so", "ruby": "json.so"},
    "a folder of that name": {"python": "json/__init__.py", "ruby": "json/common.rb"},
    "a module that was found nowhere": {"python": "wanted.py", "ruby": "wanted.rb"},
    "what the runtime looks up by itself": {"python": "usercustomize.py", "ruby": "rubygems.rb"},
    "a file that was looked for": {"python": "text.txt", "ruby": "text.txt"},
}
LOOKS = {
    "python": "import json\ntry:\n    import wanted\nexcept ImportError:\n    pass\n"
    "VALUE = any(os.path.exists(entry + '/text.txt') for entry in sys.path)",
    "ruby": "require 'json'\nbegin\n  require 'wanted'\nrescue LoadError\n  nil\nend\n"
    "VALUE = $LOAD_PATH.any? { |entry| File.exist?(entry + '/text.txt') }",
}


@both
def test_names_that_the_boot_looked_up_are_left_to_ordinary_starts(language, tmp_path):
    """Also where they come between two starts."""
    program = Program(language, tmp_path, LOOKS[language.name])
    stale = []
    for number, (what, names) in enumerate(NAMES.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        program.check(folder, True)
        program.write(f"{number}/{names[language.name]}")
        for value in (folder, f"{tmp_path}/absent:{folder}"):
            env = program.env_with(value)
            image = support.run([program.image], env=env, cwd=tmp_path)
            plain = support.run([language.program, program.script], env=env, cwd=tmp_path)
            assert (image.out, image.status) == (plain.out, plain.status) and image.fell_back, (what, image, plain)
        stale.append(folder)
    program.check(None, True)
    why = support.run([support.SNAPBOOT, "inspect", "--why", program.image], env=program.env_with(stale[0]), log=False)
    name = f"{stale[0]}/{next(iter(NAMES.values()))[language.name]}"
    line = f"  {program.variable}: {name} has a name that the boot looked up and did not find"
    assert (why.status, why.out.splitlines()[1:]) == (1, [line]), why


@both
def test_values_that_are_not_plain_are_left_to_ordinary_starts(language, tmp_path):
    program = Program(language, tmp_path, "VALUE = 1")
    program.write("one/late" + language.ending, LATE[language.name])
    program.write("a file")
    program.write("zip")
    one = f"{tmp_path}/one"
    values = ["one", ":", f"{one}:", f":{one}", f"{one}/", f"{tmp_path}//one", f"{one}/../one", f"{one}:{one}", f"{tmp_path}/zip"]
    for value in (*values, f"{one} "):
        program.check(value, False)
    if not support.IS_ROOT:
        os.chmod(one, 0o300)
        program.check(one, False)


def test_options_by_which_python_ignores_the_variable(tmp_path):
    program = Program(PYTHON, tmp_path, "VALUE = 1")
    program.write("one/late.py", LATE["python"])
    for option in ("-E", "-I", "-S"):
        options = {"env": program.env, "cwd": tmp_path, "serves_others": True}
        image = support.frozen(tmp_path / f"{option}.img", [support.PYTHON, option, program.script], **options)
        env = program.env_with(tmp_path / "one")
        results = [support.run(argv, env=env, cwd=tmp_path) for argv in ([image], [support.PYTHON, option, program.script])]
        assert results[0].out == results[1].out and results[0].status == results[1].status, results
