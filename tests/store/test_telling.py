"""Thawed starts tell at their end what they have loaded that their image has not, and the next image has it; nobody notices."""

import fcntl
import json
import os
import re
import subprocess

import pytest
from common import support
from common.gems import Gems
from common.languages import PYTHON, RUBY, both

from store.stores import Store, is_thawed

pytestmark = pytest.mark.sample(12, whole=True)

# A program that loads what its arguments name, after those that are statements.
PROGRAMS = {
    "python": """import sys
EARLY = set(sys.modules)
for word in sys.argv[1:]:
    if word.isidentifier():
        print(word, __import__(word).VALUE, word in EARLY)
    else:
        exec(word)
""",
    "ruby": """early = $LOADED_FEATURES.dup
ARGV.each do |word|
  next eval(word) unless word.match?(/\\A[a-z]+\\z/)

  require File.exist?("#{__dir__}/#{word}.rb") ? "#{__dir__}/#{word}" : word
  puts "#{word} #{VALUE} #{early.any? { |path| path.end_with?("/#{word}.rb") } ? "True" : "False"}"
end
""",
}
LATE = {"python": "import early\nVALUE = early.VALUE\n", "ruby": 'require_relative "early"\nVALUE = EARLY\n'}
EARLY = {"python": "VALUE = 7\n", "ruby": "EARLY = 7\n"}


class Program(Store):
    """A store, and a program in it whose image has nothing of what it loads late."""

    def __init__(self, folder, language, **variables):
        super().__init__(folder, **variables)
        self.words = [language.program, "app" + language.ending]
        self.ending = language.ending
        self.module("app", PROGRAMS[language.name])
        self.module("late", LATE[language.name])
        self.module("early", EARLY[language.name])
        self.start()
        (row,) = self.wait()
        assert row["state"] == "fresh", row
        self.image = row["path"]
        self.profile = os.path.join(os.path.dirname(self.image), "profile")

    def module(self, name, source):
        path = self.folder / (name + self.ending)
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)

    def start(self, *arguments, **more):
        return self.run(*self.words, *arguments, **more)

    def reported(self):
        """Names of the modules that a start reported, without folders and endings."""
        if not os.path.exists(self.profile):
            return []
        with open(self.profile, "rb") as file:
            entries = os.fsdecode(file.read()).split("\0")
        paths = [re.match(r"module=\d+:(.*?)\d+:", entry) for entry in entries]
        return [path[1].rpartition("/")[2].removesuffix(".rb") for path in paths if path]

    def inspected(self):
        return json.loads(self.snapboot("inspect", "--json", self.image, log=False).out)

    def count_learnt(self):
        """How many images in a row were made for what was told: the more, the longer the next one has to wait."""
        with open(os.path.join(os.path.dirname(self.image), "attempt.json")) as file:
            return json.load(file)["learnt"]

    def learnt(self):
        """What is in the image for that, in the same form."""
        return [name.rpartition("/")[2].removesuffix(".rb") for name in self.inspected()["learnt"]]


@both
def test_the_next_image_has_it(tmp_path, language):
    program = Program(tmp_path, language)
    assert not program.reported(), "an ordinary start is left alone"
    second = program.start("late")
    assert is_thawed(second) and second.out == "late 7 False\n", second
    # In the order of their loading where that is known.
    assert program.reported() == (["early", "late"] if language is PYTHON else ["late", "early"])
    program.wait()
    assert sorted(program.learnt()) == ["early", "late"]
    third = program.start("late")
    assert is_thawed(third) and third.out == "late 7 True\n", third
    # That was all.
    assert not program.builders()
    assert sorted(program.reported()) == ["early", "late"]
    assert program.count_learnt() == 1
    program.module("early", EARLY[language.name].replace("7", "8"))
    assert program.start("late").out == "late 8 False\n"
    program.wait()
    assert program.count_learnt() == 0, "what has changed may load other things"


# How a program ends, and whether that is told.
ENDS = {
    "python": {
        "": True,
        "sys.exit(3)": True,
        "raise ValueError": True,
        "import os; os.fork() and os.wait()": True,
        "import atexit; atexit.register(lambda: print(__import__('after').VALUE))": True,
        "import os; os._exit(4)": False,
        "import os; os.execv('/bin/true', ['true'])": False,
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)": False,
        "raise KeyboardInterrupt": False,
        "import os; os.fork() and (os.wait(), os._exit(5))": False,
        "import time; time.sleep = len": False,
    },
    "ruby": {
        "": True,
        "exit 3": True,
        "raise ArgumentError": True,
        "fork {}; Process.wait": True,
        "at_exit { require './after' }": True,
        "exit! 4": False,
        "exec '/bin/true'": False,
        "Process.kill(:TERM, Process.pid); sleep": False,
        "raise Interrupt": False,
        "fork && (Process.wait; exit! 5)": False,
    },
}
ENDS_3 = {"python": "sys.exit(3)", "ruby": "exit 3"}
CASES = [
    pytest.param(language, end, tells, marks=support.needs_ruby if language is RUBY else (), id=f"{language.name}: {end}")
    for language in (PYTHON, RUBY)
    for end, tells in ENDS[language.name].items()
]


@pytest.mark.parametrize(("language", "end", "tells"), CASES)
def test_it_depends_on_the_end(tmp_path, language, end, tells):
    program = Program(tmp_path, language)
    program.module("after", "VALUE = 9\n" if language is PYTHON else "puts 9\n")
    before = "sleep =" in end
    thawed = program.start(*[end] * before, "late", *[end] * (not before))
    ordinary = support.run([*program.words, *[end] * before, "late", *[end] * (not before)], env=program.env, cwd=program.folder)
    assert (thawed.status, thawed.out, thawed.err) == (ordinary.status, ordinary.out, ordinary.err), (thawed, ordinary)
    assert ("late" in program.reported()) == tells, program.reported()
    # By one process alone.
    assert program.reported().count("late") <= 1
    assert ("after" in program.reported()) == ("after" in end)
    program.wait()


@both
def test_whatever_is_in_the_place_of_the_file_it_harms_nobody(tmp_path, language):
    program = Program(tmp_path, language)
    other = tmp_path / "other"
    other.write_text("mine")
    large = b"x=1\0" * (1 << 18) + b"\0"

    def make_large(path):
        with open(path, "wb") as file:
            file.write(large)

    for make in (os.mkdir, os.mkfifo, lambda path: os.symlink(other, path), make_large):
        make(program.profile)
        result = program.start("late", ENDS_3[language.name])
        assert (result.status, result.out, result.err) == (3, "late 7 False\n", ""), result
        program.wait()
        (os.rmdir if os.path.isdir(program.profile) else os.unlink)(program.profile)
    assert other.read_text() == "mine"
    assert "late" not in program.learnt()


@both
def test_a_freeze_reads_nothing_but_a_file(tmp_path, language):
    program = Program(tmp_path, language)
    for make in (os.mkdir, os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
        make(program.profile)
        with open(tmp_path / program.words[1], "a") as file:
            file.write("# edited\n")
        assert program.start("late").fell_back
        assert [row["state"] for row in program.wait()] == ["fresh"]
        (os.rmdir if os.path.isdir(program.profile) else os.unlink)(program.profile)


@both
def test_where_nothing_can_be_written_nothing_is_told(tmp_path, language):
    program = Program(tmp_path, language)
    words = support.in_mount_namespace('mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"; shift; exec "$@"', program.place)
    result = support.run([*words, support.SNAPBOOT, "run", "--", *program.words, "late"], env=program.env, cwd=tmp_path)
    assert (result.status, result.out) == (0, "late 7 False\n"), result
    assert not program.reported()
    # SIGXFSZ would end it.
    limited = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", support.SNAPBOOT, "run", "--", *program.words, "late"]
    result = support.run(limited, env=program.env, cwd=tmp_path)
    assert (result.status, result.out, result.err) == (0, "late 7 False\n", ""), result
    assert not program.reported()


@support.needs_root
@both
def test_nothing_is_told_to_another_user(tmp_path, language):
    program = Program(tmp_path, language)
    os.chown(os.path.dirname(program.profile), support.NOBODY, -1)
    result = support.run([program.image, "late"], env=program.env, cwd=tmp_path)
    assert is_thawed(result) and result.out == "late 7 False\n", result
    assert not program.reported()


@both
def test_what_was_cut_off_is_no_matter(tmp_path, language):
    program = Program(tmp_path, language)
    with open(program.profile, "wb") as file:
        file.write(b"module=cut")
    assert is_thawed(program.start("late"))
    program.wait()
    assert sorted(program.learnt()) == ["early", "late"]


@both
def test_nobody_waits_for_the_next_image(tmp_path, language):
    program = Program(tmp_path, language)
    # While this is locked, no builder gets any further.
    with open(program.place / "cache/.builder", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Returns when all that has the other end of the pipes is gone.
        result = program.start("late", pass_fds=[lock.fileno()])
        assert is_thawed(result), result
        program.wait_until(program.builders, "no builder starts")
        assert "late" not in program.learnt()
    program.wait()
    assert "late" in program.learnt()


@both
def test_many_starts_at_once(tmp_path, language):
    program = Program(tmp_path, language)
    argv = [support.SNAPBOOT, "run", "--", *program.words, "late"]
    starts = [
        subprocess.Popen(argv, env=program.env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(20)
    ]
    for start in starts:
        out, err = start.communicate(timeout=support.SECONDS)
        assert (start.returncode, err) == (0, b"") and out.startswith(b"late 7 "), (out, err)
    program.wait()
    assert program.start("late").out == "late 7 True\n"


@both
def test_a_start_is_told_as_it_was_begun(tmp_path, language):
    """The builder works in the folder and with the environment of the start, whatever the program makes of them."""
    program = Program(tmp_path, language)
    (tmp_path / "gone").mkdir()
    changes = {
        "python": "import os; os.environ['LANG'] = 'C'; os.chdir('gone'); os.rmdir('../gone'); sys.stdout.close(); os.close(2)",
        "ruby": "ENV['LANG'] = 'C'; Dir.chdir('gone'); Dir.rmdir('../gone'); $stdout = Object.new.tap { |it| def it.write(*) = nil }",
    }
    assert program.start("late", changes[language.name]).status == 0
    assert [row["state"] for row in program.wait()] == ["fresh"]
    assert program.start("late").out == "late 7 True\n"


@both
def test_what_reads_a_variable_that_the_program_sets_is_left_to_it(tmp_path, language):
    program = Program(tmp_path, language)
    reads = {"python": "import os\nVALUE = os.environ.get('MODE')\n", "ruby": "VALUE = ENV['MODE']\n"}
    program.module("late", reads[language.name])
    sets = {"python": "import os; os.environ['MODE'] = 'fast'", "ruby": "ENV['MODE'] = 'fast'"}
    for _ in range(2):
        result = program.start(sets[language.name], "late")
        assert is_thawed(result) and result.out == "late fast False\n", result
        program.wait()
    assert any("reads the variable MODE" in why for _, why in program.inspected()["left_out"])


@support.needs_ruby
def test_a_gem_of_one_version_that_a_start_has_activated_is_in_the_next_image(tmp_path):
    gems = Gems(tmp_path / "gems")
    gems.add("passing", "1.0", "VALUE = 5\n")
    program = Program(tmp_path, RUBY, **gems.variables)
    assert program.start("passing").out == "passing 5 False\n"
    program.wait()
    assert program.learnt() == ["passing"]
    second = program.start("passing")
    assert is_thawed(second) and second.out == "passing 5 True\n", second


@both
def test_what_comes_from_a_folder_of_one_start_is_no_part_of_the_image(tmp_path, language):
    program = Program(tmp_path, language)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / ("passing" + language.ending)).write_text(f"VALUE = {folder!r}\n")
    use = {"python": "import sys; sys.path.insert(0, {!r})", "ruby": "$LOAD_PATH.unshift({!r})"}[language.name]
    for folder in ("one", "two", "one"):
        result = program.start(use.format(str(tmp_path / folder)), "passing")
        assert is_thawed(result) and result.out == f"passing {folder} False\n", result
        program.wait()
    assert "passing" in program.reported()
    # What is gone is gone.
    for path in (tmp_path / "one", tmp_path / "two"):
        (path / ("passing" + language.ending)).unlink()
    with open(tmp_path / program.words[1], "a") as file:
        file.write("# edited\n")
    assert program.start("late").fell_back
    assert [row["state"] for row in program.wait()] == ["fresh"]
    assert "passing" not in program.learnt()


def test_what_an_image_cannot_have_is_tried_once(tmp_path):
    program = Program(tmp_path, PYTHON)
    # Only the freezer sees this.
    program.module("late", "VALUE = 2\n" + support.MAPPED_MEMFD)
    assert is_thawed(program.start("late"))
    assert [row["state"] for row in program.wait()] == ["fresh"]
    assert "late" not in program.learnt() and not program.reported()
    made = os.stat(program.image).st_mtime_ns
    again = program.start("late")
    assert is_thawed(again) and again.out == "late 2 False\n", again
    assert not program.builders() and not program.reported()
    assert os.stat(program.image).st_mtime_ns == made


@both
def test_an_image_that_is_in_no_store_tells_nothing(tmp_path, language):
    program = Program(tmp_path, language)
    image = support.frozen(tmp_path / "own.img", program.words, env=program.env, cwd=tmp_path)
    assert is_thawed(support.run([image, "late"], env=program.env, cwd=tmp_path))
    assert not program.reported() and not program.builders()
