"""`snapboot enable`: what the Python of an environment starts, or a Ruby, has images of the store, made after the second start. Nothing
that a program can ask tells that it was handed over, and no start is handed over twice."""

import os
import pathlib
import shutil
import subprocess

import pytest
from common import languages, support

from .stores import Store

pytestmark = pytest.mark.sample(9, whole=True)

PROGRAM = """\
import json, os, signal, sys
{loaded}
def main():
    names = sorted(name for name in os.environ if name.startswith(('SNAPBOOT_', 'PYTHON', 'LC_')) and name != 'SNAPBOOT_STORE')
    words = open('/proc/self/cmdline', 'rb').read().split(b'\\0')
    kept = [sys.argv, getattr(sys, 'orig_argv', None), sys.executable, sys.prefix, sys.flags, words, names, sys.path, os.getcwd()]
    modules = sorted(set(sys.modules) & {{'time', '_signal', 'posix', 'snapboot', 'snapboot.archive.images'}})
    print(kept, modules, signal.getsignal(signal.SIGPIPE), sys.stdin.read(), os.getppid() == int(os.environ['PARENT']))
    sys.exit(3)
if __name__ == '__main__':
    main()
"""
SPAWNING = """\
import asyncio, csv, email.message, json, multiprocessing
if __name__ == '__main__':
    multiprocessing.set_start_method('spawn')
    process = multiprocessing.Process(target=print, args=('child',), kwargs={'flush': True})
    process.start()
    process.join()
    print(process.exitcode)
"""
RUBY_PROGRAM = """\
require "json"
{loaded}
names = ENV.keys.grep(/\\A(SNAPBOOT_|RUBY|GEM)/) - ["SNAPBOOT_STORE"]
words = File.binread("/proc/self/cmdline").split("\\0")
puts JSON.generate([ARGV, $0, __FILE__, words, names, $LOAD_PATH, Dir.pwd, Object.constants.include?(:HandOver), STDIN.read])
p trap("PIPE", "DEFAULT"), Thread.list.size, Dir.children("/proc/self/fd").size, ENV.keys.grep_v(/\\ASNAPBOOT/).size
exit 3
"""


class Environment(Store):
    """An enabled interpreter, and the store of its starts. Has `directory`, what `snapboot enable` gets; `interpreter`; `file`, what
    enabling adds; `template`, of a program that needs `loaded`; `program`, such a program; `main`, the words that start it."""

    def __init__(self, folder):
        super().__init__(folder)
        self.env["PARENT"] = str(os.getpid())

    def write(self, ending, loaded=""):
        """Writes the program."""
        self.program = self.folder / f"main{ending}"
        self.program.write_text(self.template.format(loaded=loaded))
        self.main = [self.program.name]

    def inside(self, argv):
        """The argv that runs another one where the interpreter is enabled."""
        return argv

    def start(self, *words, **variables):
        """A start of the interpreter. Returns what it showed, and whether an image was thawed for it."""
        more = {"SNAPBOOT_STATE": str(self.folder / "state"), **variables}
        before = self.thawed()
        argv = self.inside([self.interpreter, *words])
        done = support.run(argv, env={**self.env, **more}, cwd=self.folder, input=b"given\n", log=False)
        return (done.status, done.out, done.err), self.thawed() > before

    def switch(self, word):
        """`snapboot enable`, or another word."""
        done = support.run(self.inside([str(support.SNAPBOOT), word, "-q", str(self.directory)]), env=self.env, log=False)
        assert done.status == 0, done

    def thawed(self):
        """How many starts have thawed."""
        return sum(row["thawed"] for row in self.list())

    def become_frozen(self, *words):
        """Start it twice, and wait for the image. Returns what an ordinary start shows."""
        ordinary, thawed = self.start(*words, SNAPBOOT="off")
        assert not thawed
        for _ in range(2):
            assert self.start(*words) == (ordinary, False)
        self.wait()
        return ordinary


class PythonEnvironment(Environment):
    """A virtual environment."""

    template = PROGRAM
    without_image = [["-Bc", "print(1)"], ["-"], ["-i", "main.py"], ["-V"], ["-x"]]
    options = [["-X", "utf8"], ["-O"]]
    loads = "import os\nif os.environ.get('MODE') == 'other': print('other')"

    def __init__(self, folder):
        super().__init__(folder)
        self.directory = folder / "venv"
        subprocess.run([support.PYTHON, "-m", "venv", "--without-pip", self.directory], check=True)
        self.interpreter = self.directory / "bin/python"
        (self.packages,) = self.directory.glob("lib/python3.*/site-packages")
        self.file = self.packages / "00_snapboot.pth"
        self.write(".py")


    def write_spawning(self):
        """Writes a program that starts another process by code."""
        self.write(".py")
        self.program.write_text(SPAWNING)


class RubyEnvironment(Environment):
    """The Ruby of the tests, in mount namespaces with another folder for what the site adds."""

    template = RUBY_PROGRAM
    without_image = [["-e", "puts 1"], ["-"], ["-n", "main.rb"], ["-v"], ["-c", "main.rb"]]
    options = [["-W0"], ["-I", "lib"]]
    loads = "puts 'other' if ENV['MODE'] == 'other'"

    def __init__(self, folder):
        super().__init__(folder)
        self.interpreter = support.RUBY
        self.directory = pathlib.Path(support.RUBY).parent.parent
        ask = "print RbConfig::CONFIG['sitelibdir'], ' ', RbConfig::CONFIG['ruby_version']"
        site, _ = subprocess.run([self.interpreter, "-e", ask], capture_output=True, text=True, check=True).stdout.split()
        # The nearest folder above that there is.
        self.over = next(path for path in pathlib.Path(site).parents if path.is_dir())
        self.added, work = folder / "added", folder / "work"
        self.added.mkdir(), work.mkdir()
        self.options_of_mount = f"lowerdir={self.over},upperdir={self.added},workdir={work}"
        self.file = self.added / pathlib.Path(site).relative_to(self.over) / "rbconfig.rb"
        self.write(".rb")

    def inside(self, argv):
        script = 'mount -t overlay overlay -o "$1" "$2"; shift 2; exec "$@"'
        return support.in_mount_namespace(script, self.options_of_mount, str(self.over), *map(str, argv))


class OwnRubyEnvironment(RubyEnvironment):
    """The same Ruby in a prefix of its own: `snapboot enable` puts the entry into its place."""

    def __init__(self, folder):
        super().__init__(folder)
        self.directory = folder / "prefix"
        self.interpreter = self.directory / "bin/ruby"
        self.interpreter.parent.mkdir(parents=True)
        shutil.copy(os.path.realpath(support.RUBY), self.interpreter)


KINDS = {"python": PythonEnvironment, "ruby": RubyEnvironment, "own-ruby": OwnRubyEnvironment}
RUBIES = [pytest.param(kind, marks=[support.needs_ruby, support.needs_root]) for kind in KINDS if kind.endswith("ruby")]


@pytest.fixture(params=["python", *RUBIES])
def enabled(request, tmp_path):
    """One of each language."""
    environment = KINDS[request.param](tmp_path)
    environment.switch("enable")
    return environment


@pytest.fixture
def environment(tmp_path):
    """One of Python."""
    environment = PythonEnvironment(tmp_path)
    environment.switch("enable")
    return environment


def test_the_third_start_thaws(enabled):
    words = [*enabled.main, "a"]
    ordinary = enabled.become_frozen(*words)
    assert enabled.start(*words) == (ordinary, True)
    assert enabled.start(*words, SNAPBOOT_STORE="off") == (ordinary, False)
    assert enabled.start(*words, SNAPBOOT="off") == (ordinary, False)
    assert enabled.file.exists()
    enabled.switch("disable")
    assert enabled.start(*words) == (ordinary, False) and not enabled.file.exists()


def test_a_command_and_a_module(environment):
    (environment.packages / "tool.py").write_text(PROGRAM.format(loaded=""))
    command = environment.directory / "bin/tool"
    text = "import sys\nfrom tool import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
    command.write_text(f"#!{environment.interpreter}\n{text}")
    command.chmod(0o755)
    for words in (["-m", "tool", "-x"], ["-u", str(command), "-x"]):
        ordinary = environment.become_frozen(*words)
        assert environment.start(*words) == (ordinary, True)


def test_code(environment):
    """Its numbers may be other ones."""
    code = "import argparse, asyncio, json, os, sys; print(sys.argv, sys.orig_argv, sys.path, os.getcwd(), sys.stdin.read(), NUMBER)"
    environment.become_frozen("-c", code.replace("NUMBER", "1"), "a")
    words = ["-u", "-c", code.replace("NUMBER", "2"), "b"]
    assert environment.start(*words)[1] is False, "other options are another program's"
    words = ["-c", code.replace("NUMBER", "23"), "b"]
    ordinary, _ = environment.start(*words, SNAPBOOT="off")
    assert environment.start(*words) == (ordinary, True)


def test_processes_that_are_spawned(environment):
    """They have images of their own, and those of another program have other ones."""
    environment.write_spawning()
    ordinary = environment.become_frozen(*environment.main)
    environment.wait()
    assert environment.start(*environment.main) == (ordinary, True)
    environment.wait()
    before = {row["name"]: row["thawed"] for row in environment.list()}
    assert environment.start(*environment.main) == (ordinary, True)
    (spawned,) = [row for row in environment.list() if row["name"].startswith("-c from multiprocessing.spawn")]
    assert spawned["thawed"] > before[spawned["name"]]


@pytest.mark.parametrize("words", [["-c", "print(1)"], ["small.py"]])
def test_a_start_that_imports_nothing_asks_for_no_image(words, environment):
    (environment.folder / "small.py").write_text("import sys\nprint(sys.argv)\n")
    ordinary, _ = environment.start(*words, SNAPBOOT="off")
    assert [environment.start(*words) for _ in range(5)] == [(ordinary, False)] * 5
    assert not environment.list() and not list((environment.place / "cache/.starts").iterdir())


@support.needs_ruby
@support.needs_root
def test_rbconfig_is_that_of_the_ruby(tmp_path):
    """Also for a program that requires it without RubyGems, which no second start hands over."""
    environment = RubyEnvironment(tmp_path)
    code = "require 'rbconfig'; print RbConfig.ruby, RbConfig::CONFIG.size, RbConfig.method(:ruby).source_location, $0"
    environment.program.write_text(code)
    kinds = [[*options, "main.rb"] for options in (["--disable=gems"], ["--disable=gems", "-rrbconfig"], [])]
    ordinary = [environment.start(*words)[0] for words in kinds]
    environment.switch("enable")
    assert [[environment.start(*words)[0] for _ in range(2)] for words in kinds] == [[shown] * 2 for shown in ordinary]


@support.needs_ruby
@support.needs_root
def test_folders_that_are_made_for_the_file_are_removed_with_it(tmp_path):
    environment = RubyEnvironment(tmp_path)
    environment.switch("enable")
    environment.switch("enable")
    assert environment.file.exists()
    environment.switch("disable")
    assert not [path for path in environment.added.rglob("*") if path.is_dir()]


@pytest.mark.parametrize("number", range(5))
def test_what_can_have_no_image_is_left_alone(number, enabled):
    words = enabled.without_image[number]
    ordinary, _ = enabled.start(*words, SNAPBOOT="off")
    assert [enabled.start(*words) for _ in range(5)] == [(ordinary, False)] * 5
    assert not enabled.list() and not list((enabled.place / "cache").rglob(".starts/*"))


def test_a_start_that_no_image_serves_goes_on_the_ordinary_way(enabled):
    """By each way that leads from an image to the program: what it depends on, an option of the interpreter, a missing store."""
    enabled.write(enabled.program.suffix, enabled.loads)
    enabled.become_frozen(*enabled.main)
    for options, variables in (([], {"MODE": "other"}), *((options, {}) for options in enabled.options)):
        words = [*options, *enabled.main]
        ordinary, _ = enabled.start(*words, **variables, SNAPBOOT="off")
        for _ in range(3):
            assert enabled.start(*words, **variables)[0] == ordinary
    enabled.wait()


def test_the_command_taken_away(enabled):
    """Images go on, and what they cannot serve is started the ordinary way, once."""
    ordinary = enabled.become_frozen(*enabled.main)
    enabled.file.write_text(enabled.file.read_text().replace(str(support.SNAPBOOT), "/nonexistent/snapboot"))
    assert f"{support.SNAPBOOT}" not in enabled.file.read_text()
    assert enabled.start(*enabled.main)[0] == ordinary


@support.needs_ruby
@support.needs_root
def test_a_file_of_somebody_else_stays(tmp_path):
    environment = RubyEnvironment(tmp_path)
    environment.file.parent.mkdir(parents=True)
    environment.file.write_text("SOMEBODY = 1\n")
    for word in ("enable", "disable"):
        argv = environment.inside([str(support.SNAPBOOT), word, "-q", str(environment.directory)])
        done = support.run(argv, env=environment.env, log=False)
        assert done.status == 2 and "not Snapboot's" in done.err, done
    assert environment.file.read_text() == "SOMEBODY = 1\n"


def test_the_encoding_of_the_locale_is_that_of_the_start(environment):
    """Python itself sets LC_CTYPE in the locale C. Whoever is handed over must not inherit that."""
    environment.become_frozen("main.py")
    for variables in ({"LANG": "C"}, {"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}):
        ordinary, _ = environment.start("main.py", **variables, SNAPBOOT="off")
        assert [environment.start("main.py", **variables)[0] for _ in range(2)] == [ordinary] * 2


def test_nothing_is_written_where_it_belongs_to_others(enabled, tmp_path):
    """With the home of another user (`sudo -E`), and where the store cannot be written."""
    ordinary, _ = enabled.start(*enabled.main, SNAPBOOT="off")
    if os.geteuid() == 0:
        home = tmp_path / "home"
        home.mkdir()
        os.chown(home, 4321, 4321)
        variables = dict(enabled.env, HOME=str(home))
        del variables["SNAPBOOT_STORE"]
        for _ in range(3):
            argv = enabled.inside([enabled.interpreter, *enabled.main])
            done = support.run(argv, env=variables, cwd=enabled.folder, input=b"given\n", log=False)
            assert (done.status, done.out) == ordinary[:2]
        assert not list(home.rglob("*.img")) and not list(home.rglob(".starts"))
    shutil.rmtree(enabled.place, ignore_errors=True)
    enabled.place.mkdir()
    (enabled.place / "cache").write_text("a file")
    assert [enabled.start(*enabled.main)[0] for _ in range(3)] == [ordinary] * 3


def test_a_link_of_somebody_else_is_not_followed(enabled, tmp_path):
    ordinary, _ = enabled.start(*enabled.main, SNAPBOOT="off")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    cache = enabled.place / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    (cache / ".starts").symlink_to(elsewhere)
    assert [enabled.start(*enabled.main)[0] for _ in range(3)] == [ordinary] * 3
    assert not list(elsewhere.iterdir())


def test_an_interpreter_inside_of_a_program_does_not_replace_it(environment):
    """It reads the environment's files as the first one does, and its start would be the second."""
    environment.program.write_text(
        "try:\n    import _interpreters as inside\nexcept ImportError:\n    import _xxsubinterpreters as inside\n"
        "print('begun', flush=True)\ninside.run_string(inside.create(), 'print(1, flush=True)')\nprint('ended')\n"
    )
    shutil.rmtree(environment.place / "cache/.starts", ignore_errors=True)
    assert environment.start("main.py") == ((0, "begun\n1\nended\n", ""), False)


def test_what_may_be_handed_over():
    """The words that name a program, for each way to start one."""
    folder = pathlib.Path(__file__).resolve().parents[2] / "python/snapboot/archive"
    names = {"__name__": "images"}
    exec((folder / "images.py").read_text(), names)
    here = os.fsencode(os.getcwd()) + b"/"
    for words, program in {
        (b"a.py", b"-m"): here + b"a.py",
        (b"/x/a.py",): b"/x/a.py",
        (b"-m", b"tool", b"-c"): b"-m tool",
        (b"-mtool",): b"-m tool",
        (b"-um", b"tool"): b"-m tool",
        (b"-W", b"error", b"a.py"): here + b"a.py",
        (b"-Werror", b"-X", b"dev", b"a.py"): here + b"a.py",
        (b"-Bu", b"a.py"): here + b"a.py",
        (b"-c", b"pass"): None,
        (b"-Bc", b"pass"): None,
        (b"-",): None,
        (b"--version",): None,
        (b"-m",): None,
        (): None,
    }.items():
        assert names["program_of"](words) == program, words
    assert names["is_found"](b"/any/python", b"/any/python")


@support.needs_ruby
def test_what_may_be_handed_over_of_ruby():
    file = support.ROOT / "ruby/lib/snapboot/enabled.rb"
    find = (
        f"kind = Module.new.module_eval(File.read({str(file)!r})).const_get(:HandOver)\n"
        "puts kind.new('', '').send(:program_of, ARGV).inspect"
    )
    for words, program in {
        ("a.rb", "-e"): "a.rb",
        ("/x/a.rb",): "/x/a.rb",
        ("-w", "-Ilib", "a.rb"): "a.rb",
        ("-I", "lib", "-r", "json", "a.rb"): "a.rb",
        ("-W0", "--yjit", "a.rb"): "a.rb",
        ("-e", "1"): None,
        ("-n", "a.rb"): None,
        ("-",): None,
        ("--version",): None,
        (): None,
    }.items():
        shown = support.run([languages.RUBY.program, "-e", find, "--", *words], cwd="/", log=False)
        expected = "nil" if program is None else '"' + os.path.join("/", program) + '"'
        assert shown.out == expected + "\n", (words, shown)
