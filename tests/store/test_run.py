"""`snapboot run -- COMMAND`: ordinary at first, thawed from then on, and never another start than the ordinary one would be."""

import os
import signal
import subprocess

import pytest
from common import support
from common.languages import PYTHON, RUBY, both

from store.stores import Store, is_thawed

pytestmark = pytest.mark.sample(12, whole=True)

SHOW = {
    "python": "import sys\nfrom part import VALUE\nprint(VALUE, sys.argv[1:], sys.stdin.read())\nsys.exit(len(sys.argv) - 1)\n",
    "ruby": 'require_relative "part"\nputs "#{VALUE} #{ARGV} #{$stdin.read}"\nexit ARGV.size\n',
}
PART = {"python": "VALUE = {!r}\n", "ruby": "VALUE = {!r}\n"}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def write(store, language, value="one"):
    """A script and the file that it loads. Returns the words that start it."""
    (store.folder / ("part" + language.ending)).write_text(PART[language.name].format(value))
    # What a Ruby script loads is no part of its first image, so that only an edit of its own counts.
    (store.folder / ("show" + language.ending)).write_text(SHOW[language.name] + f"# {value}\n")
    return [language.program, "show" + language.ending]


@both
def test_a_command_thaws_from_its_second_start_on(store, language):
    words = write(store, language)
    first = store.run(*words, input=b"in")
    assert first.status == 0 and "one is being made" in first.err and first.fell_back, first
    rows = store.wait()
    assert [(row["state"], row["name"], row["command"]) for row in rows] == [("fresh", words[1], words)], rows
    second = store.run(*words, input=b"in")
    assert is_thawed(second) and second.out == first.out, (first, second)
    third = store.run(*words, "a b", "--x", "", input=b"more")
    ordinary = support.run([*words, "a b", "--x", ""], env=store.env, cwd=store.folder, input=b"more")
    assert (third.status, third.out, third.err) == (3, ordinary.out, ""), (third, ordinary)
    # From another folder it is the same program.
    there = store.run(words[0], store.folder / words[1], cwd="/", input=b"in")
    assert is_thawed(there) and len(store.list()) == 1, there


@both
def test_the_first_start_of_a_program_fills_no_archive(store, language):
    """That would take a short program a quarter of its time, and an image is on its way."""
    script, archive = store.folder / f"program{language.ending}", store.folder / "program.archive"
    store.env["SNAPBOOT_ARCHIVE"] = str(archive)
    for value in ("one", "another"):
        uses = {".py": "import json\nprint(json.dumps({!r}))\n", ".rb": "require 'json'\nputs JSON.dump({!r})\n"}[language.ending]
        script.write_text(uses.format(value))
        assert store.run(language.program, script).fell_back
        assert archive.exists() == (value == "another")
        store.wait()


@support.needs_ruby
def test_the_first_start_of_an_application_with_a_gemfile_has_an_archive(store):
    script, archive = store.folder / "program.rb", store.folder / "program.archive"
    (store.folder / "Gemfile").write_text("")
    script.write_text("require 'json'\n")
    store.env["SNAPBOOT_ARCHIVE"] = str(archive)
    assert store.run(RUBY.program, script).fell_back and archive.exists()
    store.wait()


@both
def test_what_the_freeze_in_the_background_warned_of_is_listed(store, language):
    words = [language.program, "warns" + language.ending]
    (store.folder / words[1]).write_text("print(1)  # before_freeze without a freeze point\n")
    store.run(*words)
    row, = store.wait()
    assert row["state"] == "fresh" and ["before_freeze" in note for note in row["notes"]] == [True], row


@support.needs_ruby
def test_a_rails_application_that_cannot_be_frozen_has_no_image_without_it(store):
    """It would start later than with the boot archive."""
    (store.folder / "bin").mkdir()
    (store.folder / "config").mkdir()
    (store.folder / "bin/rails").write_text('puts 1\nexit\nrequire "rails/commands"\n')
    (store.folder / "config/environment.rb").write_text("raise 'not while it is frozen'\n")
    assert store.run(support.RUBY, "bin/rails").out == "1\n"
    row, = store.wait()
    assert row["state"] == "failed" and not row["size"] and "failed while it booted" in row["why"][0], row
    assert store.run(support.RUBY, "bin/rails").out == "1\n"


@both
def test_an_edit_shows_at_once_and_thaws_again(store, language):
    words = write(store, language)
    store.run(*words)
    store.wait()
    write(store, language, "another")
    edited = store.run(*words)
    assert edited.out.startswith("another") and "this file has changed" in edited.err and "made again" in edited.err, edited
    assert [row["state"] for row in store.wait()] == ["fresh"]
    again = store.run(*words)
    assert is_thawed(again) and again.out == edited.out, again


@both
def test_each_environment_has_its_image(store, language):
    words = write(store, language)
    name = "PYTHONHASHSEED" if language is PYTHON else "RUBYOPT"
    values = ["1", "2"] if language is PYTHON else ["-W0", "-W1"]
    for value in values:
        assert store.run(*words, env={name: value}).fell_back
        store.wait()
    assert len(store.list()) == 2
    for value in [*values, *reversed(values)]:
        assert is_thawed(store.run(*words, env={name: value})), value
    # An image that is started by itself leaves to the others what they can do.
    image = store.list()[0]["path"]
    other = support.run([image], env={**store.env, name: values[1]}, cwd=store.folder)
    assert other.out.startswith("one") and not other.fell_back and "another" in other.err, other
    assert f"another image fits this start: {store.list()[1]['path']}" in other.err, other


@both
def test_what_cannot_be_frozen_is_left_alone_until_it_is_mended(store, language):
    words = write(store, language)
    script = store.folder / words[1]
    right = script.read_text()
    script.write_text("def (\n")
    assert store.run(*words).status == 1
    (row,) = store.wait()
    assert row["state"] == "failed" and row["why"], row
    again = store.run(*words)
    assert "none is made: the last attempt in this environment failed" in again.err and not store.builders(), again
    script.write_text(right)
    assert "one is being made" in store.run(*words).err
    assert [row["state"] for row in store.wait()] == ["fresh"]


@both
def test_a_user_may_want_ordinary_starts(store, language):
    """Nothing is wrong with the image then: no store goes on with the start, nothing is made, and nothing counted."""
    words = write(store, language)
    off = {"SNAPBOOT": "off", "SNAPBOOT_ON_STALE": "error"}
    result = store.run(*words, env=off)
    assert result.out.startswith("one") and not result.err and not store.place.exists(), result
    store.run(*words)
    (row,) = store.wait()
    result = store.run(*words, env=off)
    assert result.out.startswith("one") and not result.err, result
    result = support.run([row["path"]], env={**store.env, **off, "SNAPBOOT_LOG": "1"}, cwd=store.folder)
    assert result.out.startswith("one") and "SNAPBOOT=off asks for an ordinary start; starting the ordinary way" in result.err, result
    assert not store.builders() and store.list() == [row]
    assert is_thawed(store.run(*words, env={"SNAPBOOT": "on"}))


@both
def test_other_things_start_the_ordinary_way(store, language):
    # Code has images in Python, and none in Ruby; the words of a version nowhere.
    alone = [language.program, "--version"] if language is PYTHON else [language.program, "-e", "print(7)"]
    result = store.run(*alone)
    assert result.out == support.run(alone, env=store.env).out and not store.place.exists(), result
    words = write(store, language)
    for place in ("off", "relative", ""):
        result = store.run(*words, env={"SNAPBOOT_STORE": place})
        assert result.out.startswith("one") and "there is no store" in result.err, result
    assert not store.place.exists()


def test_any_command_starts(store):
    """Whatever a shell would start: a program that no image can be made of, a script without a first line, a folder's name."""
    for name in ("a-folder", "echo"):
        (store.folder / name).mkdir()
    (store.folder / "plain").write_text('echo "$0" "$@"\nexit 3\n')
    (store.folder / "plain").chmod(0o755)
    (store.folder / "text").write_text("echo\n")
    for words in (["echo", "a b"], ["./plain", "a b", ""], ["/bin/sh", "-c", "kill -9 $$"], ["sh", "-c", "exit 4"]):
        ordinary = support.run(["/bin/sh", "-c", '"$@"; exit $?', "sh", *words], env=store.env, cwd=store.folder)
        result = store.run(*words)
        killed = {137: -9}.get(ordinary.status, ordinary.status)
        assert (result.status, result.out) == (killed, ordinary.out) and "no Python or Ruby command" in result.err, result
    for name, status in (("no-such-command", 127), ("./no-such-file", 127), ("a-folder", 127), ("./a-folder", 126), ("./text", 126)):
        result = store.run(name)
        assert result.status == status and f"cannot run {name}: " in result.err and result.out == "", result
    assert not store.place.exists()


def test_a_module_is_a_command(store):
    (store.folder / "part.py").write_text("import json, sys\nprint('part', sys.argv[1:])\n")
    words = [PYTHON.program, "-m", "part"]
    store.run(*words, "a")
    (row,) = store.wait()
    assert (row["name"], row["command"]) == ("part", words), row
    result = store.run(*words, "b")
    assert is_thawed(result) and result.out == "part ['b']\n", result
    # The same name leads to another module elsewhere.
    other = store.folder / "other"
    other.mkdir()
    (other / "part.py").write_text("print('other')\n")
    assert store.run(*words, cwd=other).out == "other\n"
    store.wait(cwd=other)
    assert store.run(*words, cwd=other).out == "other\n"
    assert store.run(*words).out == "part []\n"


@pytest.mark.skipif(not support.IS_ROOT, reason="only root may do this")
def test_a_store_that_others_can_write_to_is_not_used(store):
    words = write(store, PYTHON)
    store.run(*words)
    store.wait()
    folder = next((store.place / "cache").glob("show*"))
    for place, harm in [(folder, 0o777), (folder.parent, 0o777)]:
        place.chmod(harm)
        result = store.run(*words)
        assert result.out.startswith("one") and "others may write" in result.err and not store.builders(), result
        place.chmod(0o700)
    os.chown(folder, support.NOBODY, support.NOBODY)
    result = store.run(*words)
    assert result.out.startswith("one") and "belongs to another user" in result.err, result


@both
def test_the_store_stays_within_its_limit(store, language):
    words = write(store, language)
    store.run(*words)
    (row,) = store.wait()
    (store.folder / ("next" + language.ending)).write_text((store.folder / words[1]).read_text())
    limit = str(row["size"] + row["size"] // 2)
    store.run(words[0], "next" + language.ending, options=["--store-size", limit])
    rows = store.wait()
    assert [row["name"] for row in rows if row["size"]] == ["next" + language.ending], rows
    wrong = store.run(*words, options=["--store-size", "much"])
    assert wrong.status == 2 and "500M or 2G" in wrong.err, wrong


STATE = """
import os, sys
lines = open("/proc/self/status").read().splitlines()
told = [line for line in lines if line.startswith(("SigIgn", "SigBlk"))]
told += [sorted(os.listdir("/proc/self/fd"))[:3], sorted(os.environ)]
told += [stream is None for stream in (sys.stdin, sys.stdout, sys.stderr)]
try:
    told.append(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    told.append("no children")
open("told", "w").write(repr(told))
"""
CLOSED = {"stdin is closed": [0], "stdout is closed": [1], "stderr is closed": [2], "all streams are closed": [0, 1, 2]}


@pytest.mark.parametrize("prepared", ["as it comes", "SIGPIPE is ignored", "a signal is blocked", *CLOSED])
def test_an_ordinary_start_is_just_that(store, prepared):
    """Signals, environment, descriptors and children are as without snapboot, although it has left a builder behind."""
    (store.folder / "state.py").write_text(STATE)

    def prepare():
        signal.signal(signal.SIGPIPE, signal.SIG_IGN if prepared == "SIGPIPE is ignored" else signal.SIG_DFL)
        if prepared == "a signal is blocked":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        for stream in CLOSED.get(prepared, []):
            os.close(stream)

    def state_shown_by(*start):
        (store.folder / "told").unlink(missing_ok=True)
        words = [*start, PYTHON.program, "state.py"]
        support.run(words, env=store.env, cwd=store.folder, log=False, preexec_fn=prepare, restore_signals=False)
        return (store.folder / "told").read_text()

    without = state_shown_by()
    assert state_shown_by(support.SNAPBOOT, "run", "--") == without and "no children" in without
    store.wait()


def test_whoever_waits_for_output_does_not_wait_for_the_builder(store):
    """A builder holds nobody's pipe."""
    words = write(store, PYTHON)
    for _ in range(2):
        process = subprocess.Popen(
            [support.SNAPBOOT, "run", "--", *words], env=store.env, cwd=store.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        pipes = {f"pipe:[{os.fstat(pipe.fileno()).st_ino}]" for pipe in (process.stdout, process.stderr)}
        # Ends when nobody holds the pipes.
        process.communicate(timeout=support.SECONDS)
        # A child of a builder has its name until it becomes another program, and pipes of its own.
        for number in store.builders():
            assert not pipes & held(number)
    store.wait()


def held(number):
    """What a process has open; nothing when it has ended."""
    found = set()
    try:
        for descriptor in os.listdir(f"/proc/{number}/fd"):
            found.add(os.readlink(f"/proc/{number}/fd/{descriptor}"))
    except OSError:
        pass
    return found


def test_a_shim_of_a_version_manager_is_asked_once(store):
    shim = store.folder / "python3"
    manager = store.folder / "manager"
    asked = store.folder / "asked"
    answer = f'if [ "$1" = which ]; then echo {PYTHON.program}; echo x >> {asked}; exit; fi'
    manager.write_text(f'#!/bin/sh\n{answer}\nshift 2\nexec {PYTHON.program} "$@"\n')
    shim.write_text(f'#!/usr/bin/env bash\nprogram="${{0##*/}}"\nexec "{manager}" exec "$program" "$@"\n')
    for path in (shim, manager):
        path.chmod(0o755)
    write(store, PYTHON)
    store.run(shim, "show.py")
    store.wait()
    count = len(asked.read_text())
    assert is_thawed(store.run(shim, "show.py")) and len(asked.read_text()) == count
    (store.folder / ".python-version").write_text("other\n")
    store.run(shim, "show.py")
    assert len(asked.read_text()) > count
    store.wait()


