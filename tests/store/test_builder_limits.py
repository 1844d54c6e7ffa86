"""What need not last, such as a limit of one start or a file that is being replaced, keeps nobody from a good image later on."""

import json
import resource
import threading
from pathlib import Path

import pytest
from common import support
from common.languages import PYTHON, both
from common.waiting import settle

from store.stores import Store, is_thawed
from store.test_install import Tool

pytestmark = pytest.mark.sample(12, whole=True)

MB = 1 << 20
SCRIPTS = {"python": "print('right')\n", "ruby": 'puts "right"\n'}
LIMITS = {
    "descriptors": (resource.RLIMIT_NOFILE, 40),
    "memory": (resource.RLIMIT_AS, 900 * MB),
    "data": (resource.RLIMIT_DATA, 900 * MB),
    "size of files": (resource.RLIMIT_FSIZE, 2 * MB),
    "stack": (resource.RLIMIT_STACK, MB),
}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def write(store, language):
    (store.folder / ("tool" + language.ending)).write_text(SCRIPTS[language.name])
    return [language.program, "tool" + language.ending]


def limited(kind, is_hard):
    """What a process does to have this limit."""
    number, value = LIMITS[kind]
    return lambda: resource.setrlimit(number, (value, value if is_hard else resource.getrlimit(number)[1]))


@both
@pytest.mark.parametrize("kind", LIMITS)
def test_a_limit_of_the_start_that_asks_is_none_of_the_builder(store, language, kind):
    words = write(store, language)
    first = store.run(*words, preexec_fn=limited(kind, is_hard=False))
    assert first.out == "right\n" and "one is being made" in first.err, first
    assert [row["state"] for row in store.wait()] == ["fresh"]
    assert is_thawed(store.run(*words))


@both
def test_where_a_limit_leaves_no_room_nothing_is_made_or_remembered(store, language):
    words = write(store, language)
    for kind in ("descriptors", "size of files"):
        first = store.run(*words, preexec_fn=limited(kind, is_hard=True))
        assert first.out == "right\n" and "a limit of this start leaves no room" in first.err, first
    assert not store.builders() and store.list() == []
    store.run(*words)
    assert [row["state"] for row in store.wait()] == ["fresh"]


@both
def test_a_limit_on_the_address_space_is_no_reason_to_fail(store, language):
    words = write(store, language)
    # Ruby reserves some 500 MB of its own from 3.3 on.
    at_most = 2000 * MB
    result = support.run(
        [support.SNAPBOOT, "freeze", "-o", "x.img", "--", *words], env=store.env, cwd=store.folder,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (at_most, at_most)),
    )
    assert result.status == 0, result


# In a builder, whose policy is SCHED_BATCH (3; 145 is sched_getscheduler), and while a file is there.
TROUBLE = {
    "python": 'import os\nIS_TROUBLE = os.sched_getscheduler(0) == os.SCHED_BATCH and os.path.exists("{trouble}")\n',
    "ruby": 'IS_TROUBLE = syscall(145, 0) == 3 && File.exist?("{trouble}")\n',
}
READS = {"python": "VALUE = len(open({data!r}).read())\n", "ruby": "VALUE = File.read({data!r}).size\n"}


def start_again(store, *words, **more):
    """A start after all that may be waited for."""
    for path in store.place.glob("*/*/attempt.json"):
        attempts = json.loads(path.read_text())
        for attempt in (attempts, *attempts["outcomes"]):
            attempt["at"] -= 24 * 3600
        path.write_text(json.dumps(attempts))
    return store.run(*words, **more)


@pytest.fixture
def trouble(tmp_path):
    """The file that makes trouble while it is there."""
    path = tmp_path / "trouble"
    path.touch()
    return path


class Changing:
    """A file that a thread changes all the time, until `rest`."""

    def __init__(self, path):
        self.path, self.name = path, str(path)
        self.path.touch()
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._change)
        self.thread.start()

    def _change(self):
        while not self.is_over.wait(0.02):
            self.path.write_text(self.path.read_text() + "x")

    def rest(self):
        self.is_over.set()
        self.thread.join()
        settle()


@pytest.fixture
def data(tmp_path):
    data = Changing(tmp_path / "data")
    yield data
    data.rest()


def test_what_changes_while_the_program_boots_leaves_no_recipe_out(store, data):
    (store.folder / "django/core").mkdir(parents=True)
    (store.folder / "django/core/__init__.py").touch()
    (store.folder / "django/__init__.py").write_text("def setup():\n    global VALUE\n    " + READS["python"].format(data=data.name))
    (store.folder / "django/core/management.py").write_text(MANAGEMENT)
    (store.folder / "manage.py").write_text(MANAGE)
    words = [PYTHON.program, "manage.py"]
    first = store.run(*words)
    assert first.out == "ran\n", first
    (row,) = store.wait()
    assert row["state"] == "failed" and "changed (or was removed)" in row["why"][0], row
    data.rest()
    again = start_again(store, *words)
    assert "one is being made" in again.err, again
    (row,) = store.wait()
    assert row["state"] == "fresh" and row["why"] == [], row
    inspected = json.loads(store.snapboot("inspect", "--json", row["path"], log=False).out)
    assert inspected["preloads"][0] == "django:setup", inspected["preloads"]


MANAGEMENT = "def get_commands():\n    pass\ndef execute_from_command_line(words):\n    print('ran')\n"
MANAGE = '''"""As startproject writes it."""
import os
import sys


def main():
    """Run administrative tasks."""
    os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings')
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)


if __name__ == '__main__':
    main()
'''


@both
def test_a_failure_that_need_not_last_is_tried_again_soon(tmp_path, language, data):
    tool = Tool(tmp_path, language)
    path = tool.lib / ("part" + language.ending)
    path.write_text(READS[language.name].format(data=data.name) + path.read_text())
    first = tool.store.run("tool")
    (row,) = tool.store.wait()
    (attempt,) = tool.store.place.glob("cache/*/attempt.json")
    outcome = json.loads(attempt.read_text())["outcomes"][-1]["outcome"]
    assert row["state"] == "failed" and outcome["failed"]["passing"], outcome
    data.rest()
    start_again(tool.store, "tool")
    assert [row["state"] for row in tool.store.wait()] == ["fresh"]
    again = tool.store.run("tool")
    assert is_thawed(again) and again.out == first.out, again


MANY = 40
# What a tool loads when it is trained.
LATE = {
    "python": "import os, signal, sys\ndef main():\n    {fails}\n    for number in range(%d):\n"
    "        __import__('late%%d' %% number)\n    print('right')\n" % MANY,
    "ruby": 'def main\n  {fails}\n  %d.times {{ |number| require "late#{{number}}" }}\n  puts "right"\n  0\nend\n' % MANY,
}
FAILS = {
    "python": {"ends": "if IS_TROUBLE: sys.exit(1)", "is killed": "if IS_TROUBLE: os.kill(os.getpid(), signal.SIGKILL)"},
    "ruby": {"ends": "exit 1 if IS_TROUBLE", "is killed": "Process.kill(:KILL, Process.pid) if IS_TROUBLE"},
}


@both
@pytest.mark.parametrize("how", ["ends", "is killed"])
def test_an_image_for_which_nothing_was_learnt_is_not_used_for_good(tmp_path, language, how, trouble):
    tool = Tool(tmp_path, language)
    source = TROUBLE[language.name].format(trouble=trouble) + LATE[language.name].format(fails=FAILS[language.name][how])
    (tool.lib / ("part" + language.ending)).write_text(source)
    for number in range(MANY):
        (tool.lib / f"late{number}{language.ending}").write_text(f"# {number}\n")
    trouble.unlink()
    assert tool.store.snapboot("install", "tool").status == 0
    (row,) = tool.store.list()
    assert (row["state"], row["why"]) == ("fresh", []), row
    (attempt,) = Path(tool.store.place).glob("data/tools/*/attempt.json")
    assert json.loads(attempt.read_text())["knows"] >= MANY
    trouble.touch()
    tool.path.write_text(tool.path.read_text() + "\n")
    assert tool.start().out == "right\n"
    (row,) = tool.store.wait()
    said = "could be loaded early" if how == "ends" else "nothing was learnt from the training run"
    assert row["state"] == "fresh" and said in row["notes"][0], row
    kept = json.loads(attempt.read_text())
    assert kept["lesser"] == 1 and kept["knows"] >= MANY, kept
    shown = tool.store.snapboot("inspect", row["path"], log=False).out
    assert "(1m after it was made)" in shown, shown
    trouble.unlink()
    assert tool.store.snapboot("refreeze", row["path"]).status == 0
    (row,) = tool.store.list()
    assert (row["state"], row["why"], row["notes"]) == ("fresh", [], []) and json.loads(attempt.read_text())["lesser"] == 0, row
