"""`snapboot enable`: what the Python of an environment starts has images of the store, made after the second start. Nothing that a program
can ask tells that it was handed over, and no start is handed over twice."""

import os
import pathlib
import shutil
import subprocess

import pytest
from common import support

from .stores import Store

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
EXAMPLE = PROGRAM.format(loaded="")


class Environment(Store):
    """A virtual environment, and the store of its starts."""

    def __init__(self, folder):
        super().__init__(folder)
        self.env["PARENT"] = str(os.getpid())
        self.venv = folder / "venv"
        subprocess.run([support.PYTHON, "-m", "venv", "--without-pip", self.venv], check=True)
        self.python = self.venv / "bin/python"
        self.program = folder / "main.py"
        self.program.write_text(EXAMPLE)
        (self.packages,) = self.venv.glob("lib/python3.*/site-packages")

    def start(self, *words, **variables):
        """A start of the environment's Python. Returns what it showed, and whether an image was thawed for it."""
        more = {"SNAPBOOT_STATE": str(self.folder / "state"), **variables}
        before = self.thawed()
        done = support.run([self.python, *words], env={**self.env, **more}, cwd=self.folder, input=b"given\n", log=False)
        return (done.status, done.out, done.err), self.thawed() > before

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


@pytest.fixture
def environment(tmp_path):
    environment = Environment(tmp_path)
    told = environment.snapboot("enable", "-q", environment.venv)
    assert told.status == 0, told
    return environment


def test_the_third_start_thaws(environment):
    ordinary = environment.become_frozen("main.py", "a")
    assert environment.start("main.py", "a") == (ordinary, True)
    assert environment.start("main.py", "a", SNAPBOOT_STORE="off") == (ordinary, False)
    assert environment.start("main.py", "a", SNAPBOOT="off") == (ordinary, False)
    told = environment.snapboot("disable", "-q", environment.venv)
    assert told.status == 0, told
    assert environment.start("main.py", "a") == (ordinary, False)


def test_a_command_and_a_module(environment):
    (environment.packages / "tool.py").write_text(EXAMPLE)
    command = environment.venv / "bin/tool"
    command.write_text(f"#!{environment.python}\nimport sys\nfrom tool import main\nif __name__ == '__main__':\n    sys.exit(main())\n")
    command.chmod(0o755)
    for words in (["-m", "tool", "-x"], ["-u", str(command), "-x"]):
        ordinary = environment.become_frozen(*words)
        assert environment.start(*words) == (ordinary, True)


@pytest.mark.parametrize("words", [["-c", "print(1)"], ["-"], ["-i", "main.py"], ["-V"], ["-x"]], ids=" ".join)
def test_what_can_have_no_image_is_left_alone(words, environment):
    ordinary, _ = environment.start(*words, SNAPBOOT="off")
    assert [environment.start(*words) for _ in range(5)] == [(ordinary, False)] * 5
    assert not environment.list() and not (environment.place / "cache/.starts").exists()


def test_a_start_that_no_image_serves_goes_on_the_ordinary_way(environment):
    """By each way that leads from an image to the program: what it depends on, an option of the interpreter, a missing store."""
    environment.program.write_text(PROGRAM.format(loaded="import os\nif os.environ.get('MODE') == 'other': print('other')"))
    environment.become_frozen("main.py")
    for words, variables in ((["main.py"], {"MODE": "other"}), (["-X", "utf8", "main.py"], {}), (["-O", "main.py"], {})):
        ordinary, _ = environment.start(*words, **variables, SNAPBOOT="off")
        for _ in range(3):
            assert environment.start(*words, **variables)[0] == ordinary
    environment.wait()


def test_the_command_taken_away(environment):
    """Images go on, and what they cannot serve is started the ordinary way, once."""
    ordinary = environment.become_frozen("main.py")
    file = environment.packages / "snapboot-archive.pth"
    file.write_text(file.read_text().replace(f"'{support.SNAPBOOT}'", "'/nonexistent/snapboot'"))
    assert f"{support.SNAPBOOT}" not in file.read_text()
    assert environment.start("main.py")[0] == ordinary


def test_the_encoding_of_the_locale_is_that_of_the_start(environment):
    """Python itself sets LC_CTYPE in the locale C. Whoever is handed over must not inherit that."""
    environment.become_frozen("main.py")
    for variables in ({"LANG": "C"}, {"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}):
        ordinary, _ = environment.start("main.py", **variables, SNAPBOOT="off")
        assert [environment.start("main.py", **variables)[0] for _ in range(2)] == [ordinary] * 2


def test_nothing_is_written_where_it_belongs_to_others(environment, tmp_path):
    """With the home of another user (`sudo -E`), and where the store cannot be written."""
    ordinary, _ = environment.start("main.py", SNAPBOOT="off")
    if os.geteuid() == 0:
        home = tmp_path / "home"
        home.mkdir()
        os.chown(home, 4321, 4321)
        variables = dict(environment.env, HOME=str(home))
        del variables["SNAPBOOT_STORE"]
        for _ in range(3):
            done = support.run([environment.python, "main.py"], env=variables, cwd=environment.folder, input=b"given\n", log=False)
            assert (done.status, done.out) == ordinary[:2]
        assert not list(home.rglob("*.img")) and not list(home.rglob(".starts"))
    shutil.rmtree(environment.place, ignore_errors=True)
    environment.place.mkdir()
    (environment.place / "cache").write_text("a file")
    assert [environment.start("main.py")[0] for _ in range(3)] == [ordinary] * 3


def test_a_link_of_somebody_else_is_not_followed(environment, tmp_path):
    ordinary, _ = environment.start("main.py", SNAPBOOT="off")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    cache = environment.place / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    (cache / ".starts").symlink_to(elsewhere)
    assert [environment.start("main.py")[0] for _ in range(3)] == [ordinary] * 3
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
