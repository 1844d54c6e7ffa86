"""The entry that `snapboot enable` puts in the place of an interpreter, in a virtual environment of Python or in the prefix of a Ruby:
programs and tools see the interpreter that was there, starts with an image do without one, and `snapboot disable` leaves all as it was."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading

import pytest
from archive_python import starts
from common import installed, pythons, support

from .test_enabled import OwnRubyEnvironment, PythonEnvironment
from .told import RUBIES, PythonTold, RubyTold, is_entry, state_of

RUBY_THAT_KNOWS_ITS_PATH = """\
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    static char path[4096];
    if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
        return 1;
    setenv("GEM_HOME", path, 1);
    return execv("%s", words);
}
"""


@pytest.fixture(name="told", params=["python", *RUBIES])
def told_of_either(request, tmp_path):
    """One of each language."""
    told = PythonTold(tmp_path) if request.param == "python" else RubyTold(tmp_path, request.param)
    yield told
    told.switch("disable")


@pytest.fixture(name="venv")
def told_of_python(tmp_path):
    """One of Python."""
    return PythonTold(tmp_path)


@pytest.fixture(name="ruby", params=RUBIES)
def told_of_ruby(request, tmp_path):
    """One of Ruby."""
    told = RubyTold(tmp_path, request.param)
    yield told
    told.switch("disable")


@pytest.mark.parametrize("version", pythons.VERSIONS, ids="{0[0]}.{0[1]}".format)
def test_the_interpreter_is_called_as_before(version, tmp_path):
    python = starts.interpreters().get(version) or pytest.skip("there is no Python %d.%d" % version)
    told = PythonTold(tmp_path, python)
    check_same(told, [
        *ways_to_start(told),
        ([str(told.bin / ("python%d.%d" % version)), "-I", str(told.script)], {}),
        (["python3", "-u", str(told.script)], {}),
    ])  # fmt: skip


def test_the_ruby_is_called_as_before(ruby):
    script, folder = str(ruby.script), str(ruby.folder)
    by_env = ruby.folder / "by env"
    by_env.write_text(ruby.script.read_text().replace(f"#!{ruby.interpreter}", "#!/usr/bin/env ruby", 1))
    by_env.chmod(0o755)
    (ruby.folder / "mail").write_text("From: nobody\n\n" + ruby.script.read_text())
    code = f"load ARGV.fetch(0, {script!r})"
    check_same(ruby, [
        *ways_to_start(ruby),
        (["ruby", "-w", "-I", "lib", "-rset", script], {}),
        (["ruby", "--disable=gems", "-rrbconfig", script], {}),
        (["ruby", "-S", ruby.script.name, "a"], {"PATH": f"{ruby.folder}:{ruby.bin}:/usr/bin:/bin"}),
        (["ruby", "-C", "/", script], {}),
        (["ruby", f"-C{folder}/..", f"{ruby.folder.name}/{ruby.script.name}"], {}),
        (["ruby", "-x", "mail"], {}),
        (["ruby", "-e", code, script, "b"], {}),
        (["ruby", script], {"RUBYOPT": "-W2 -rset", "RUBYLIB": folder}),
        ([str(by_env), "a"], {}),
        (["sh", "-c", 'ruby - <"$0"', script], {}),
        (["ruby", "-e", "exec [File.readlink('/proc/self/exe').delete_suffix('.snapboot'), 'word'], *ARGV", script], {}),
        (["ruby", "-e", "system 'ruby', *ARGV", script, "child"], {}),
        (["ruby", "-e", "fork { load ARGV[0] }; Process.wait", script], {}),
    ])  # fmt: skip


def ways_to_start(told):
    """Words that start the script of either language, and variables."""
    link, script = told.folder / "other", str(told.script)
    link.symlink_to(told.interpreter)
    below = os.path.relpath(told.interpreter, told.folder)
    ways = [
        [str(told.interpreter), script, "one", ""],
        [told.name, script],
        [f"./{below}", script],
        [os.path.join(os.path.dirname(below), "../bin", told.name), script],
        [script, "two words"],
        [str(link), script],
    ]
    return [(words, {}) for words in ways]


def check_same(told, ways):
    """Each way to start the script tells the same once the interpreter is enabled."""
    def facts():
        return [told.facts(words, **variables) for words, variables in ways]

    before = facts()
    assert told.switch("enable").status == 0 and is_entry(told.interpreter)
    # The name of the process is kept by a link that the first start makes.
    for _ in range(2):
        for (words, _variables), now, then in zip(ways, facts(), before, strict=True):
            assert now == then, words


def test_signals_and_descriptors_are_kept(told):
    def ignoring():
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

    def closing():
        os.close(0), os.close(2)

    ways = [([str(told.script)], before_it) for before_it in (ignoring, closing)]
    before = [told.facts(*way) for way in ways]
    told.switch("enable")
    assert [told.facts(*way) for way in ways] == before


def test_environments_that_are_made_from_an_enabled_one(venv):
    told = venv
    told.switch("enable")
    for options in ([], ["--copies"]):
        other = told.folder / "other"
        subprocess.run([told.bin / "python", "-m", "venv", "--without-pip", "--clear", *options, other], env=told.env, check=True)
        facts = told.facts([str(other / "bin/python"), str(told.script)])
        assert facts["prefix"] == str(other) and not is_entry(other / "bin/python")
        assert facts["base_prefix"] == told.facts([str(told.script)])["base_prefix"]


def test_disable_leaves_the_environment_as_it_was(told):
    before = state_of(told.directory)
    for _ in range(2):
        assert told.switch("enable").status == 0
    told.facts([str(told.script)])
    assert (told.directory / ".snapboot/names" / told.script.name[:15]).is_symlink()
    for _ in range(2):
        assert told.switch("disable").status == 0
    assert state_of(told.directory) == before and not told.left()


def test_an_interpreter_that_somebody_has_put_there_stays(venv):
    venv.switch("enable")
    python = venv.bin / "python"
    python.unlink()
    python.symlink_to(os.path.realpath(support.PYTHON))
    assert venv.facts([str(python), str(venv.script)])["prefix"] == str(venv.directory)
    venv.switch("disable")
    assert os.readlink(python) == os.path.realpath(support.PYTHON) and not venv.left()
    venv.switch("enable")
    assert is_entry(python)


@pytest.mark.parametrize("write", [shutil.copyfile, os.replace])
def test_a_ruby_that_was_installed_anew_stays(write, ruby):
    """Whether the installer writes into the file, or puts another one there."""
    before = ruby.facts([str(ruby.script)])
    new = shutil.copy(ruby.interpreter, ruby.folder / "new")
    old = shutil.copy(ruby.interpreter, ruby.folder / "old")
    ruby.switch("enable")
    write(new, ruby.interpreter)
    assert ruby.facts([str(ruby.script)]) == before
    status = ruby.interpreter.stat()
    ruby.switch("disable")
    assert ruby.interpreter.stat() == status and not ruby.left()
    ruby.switch("enable")
    assert is_entry(ruby.interpreter) and ruby.facts([str(ruby.script)]) == before
    ruby.switch("disable")
    assert ruby.interpreter.read_bytes() == open(old, "rb").read()


def test_environments_of_copies_are_left_alone(tmp_path):
    subprocess.run([support.PYTHON, "-m", "venv", "--copies", "--without-pip", tmp_path / "venv"], check=True)
    before = (tmp_path / "venv/bin/python").read_bytes()
    assert support.run([str(support.SNAPBOOT), "enable", str(tmp_path / "venv")], log=False).status == 0
    assert (tmp_path / "venv/bin/python").read_bytes() == before and not (tmp_path / "venv/.snapboot").exists()


def test_a_moved_environment_works(venv):
    venv.switch("enable")
    venv.directory.rename(venv.folder / "moved")
    facts = venv.facts([str(venv.folder / "moved/bin/python"), str(venv.script)])
    assert facts["prefix"] == str(venv.folder / "moved")


@support.needs_ruby
@support.needs_root
def test_a_ruby_that_depends_on_its_path_stays_there(tmp_path):
    """Its files would be other ones, and `snapboot enable` notices. Here it is a program that shows its path to a Ruby."""
    told = RubyTold(tmp_path)
    support.cc(RUBY_THAT_KNOWS_ITS_PATH % os.path.realpath(support.RUBY), told.interpreter)
    before = state_of(told.directory)
    done = support.run(told.inside([support.SNAPBOOT, "enable", told.directory]), log=False)
    assert done.status == 0 and "stays where it is" in done.out, done
    assert state_of(told.directory) == before and not told.left()
    assert list((tmp_path / "added").rglob("rbconfig.rb")), "each start begins with the Ruby, and is handed over"


@support.needs_ruby
@support.needs_root
def test_a_ruby_of_the_system_stays(tmp_path):
    told, added, work = RubyTold(tmp_path), tmp_path / "bin", tmp_path / "work of bin"
    added.mkdir(), work.mkdir()
    shutil.copy(told.interpreter, added / "ruby")
    options = f"lowerdir=/usr/bin,upperdir={added},workdir={work}"
    script = 'mount -t overlay overlay -o "$1" /usr/bin; test ! -L /usr/bin/ruby; exec "$2" enable /usr'
    done = support.run(told.inside(["sh", "-ec", script, "sh", options, support.SNAPBOOT]), log=False)
    assert done.status == 0 and list((tmp_path / "added").rglob("rbconfig.rb")), done
    assert os.listdir(added) == ["ruby"] and not is_entry(added / "ruby")


@support.needs_ruby
@support.needs_root
def test_a_moved_ruby_works(tmp_path):
    told = RubyTold(tmp_path)
    before = told.facts([str(told.interpreter), str(told.script)])
    told.switch("enable")
    moved = told.directory.rename(tmp_path / "moved")
    facts = told.facts([str(moved / "bin/ruby"), str(told.script)])
    assert facts["exe"] == str(moved / "bin/ruby") and facts["config"] == before["config"]


def test_what_is_lost_is_found_from_where_the_environment_was_made(told):
    """Whoever copies an environment may leave out what is hidden."""
    before = told.facts([str(told.script)])
    told.switch("enable")
    shutil.rmtree(told.directory / ".snapboot")
    assert told.same_but_name(told.facts([str(told.script)]), before)
    assert told.switch("enable").status == 0 and told.facts([str(told.script)]) == before
    (told.directory / ".snapboot" / told.name).unlink()
    assert told.same_but_name(told.facts([str(told.script)]), before)
    assert told.switch("disable").status == 0 and not is_entry(told.interpreter)
    assert told.facts([str(told.script)]) == before


def test_a_missing_interpreter_is_named(venv):
    told = venv
    told.switch("enable")
    kept, settings = told.bin.parent / ".snapboot/python", told.bin.parent / "pyvenv.cfg"
    kept.unlink()
    kept.symlink_to("/nonexistent/python")
    settings.write_text(re.sub("(?m)^home = .*", "home = /nonexistent", settings.read_text()))
    done = support.run([told.bin / "python", "-V"], env=told.env, log=False)
    assert done.status == 126 and f"cannot execute {kept}" in done.err and "Make the environment anew" in done.err, done


def test_a_start_that_meets_disable_goes_on(told):
    """It has executed the entry, and what that needs is gone."""
    words = [str(told.interpreter), str(told.script)]
    before = told.facts(words)
    told.switch("enable")
    with open(words[0], "rb") as entry:
        told.switch("disable")
        told.told.unlink()
        path = f"/proc/self/fd/{entry.fileno()}"
        subprocess.run(words, executable=path, pass_fds=[entry.fileno()], env=told.env, cwd=told.folder, check=True)
    facts = json.loads(told.told.read_text())
    assert told.same_but_name({**facts, **{name: before[name] for name in ("open", "variables")}}, before)


def test_other_users_start_it_whatever_the_umask(told):
    umask = os.umask(0o077)
    try:
        told.switch("enable")
    finally:
        os.umask(umask)
    kept = told.directory / ".snapboot"
    modes = [path.stat().st_mode & 0o777 for path in (kept, kept / "names", told.interpreter, told.behind)]
    assert modes == [told.bin.stat().st_mode & 0o777] * 2 + [0o755] * 2
    for file in told.directory.glob("lib/*/site-packages/*snapboot.pth"):
        assert file.stat().st_mode & 0o777 == 0o644


def test_what_killed_commands_have_left_is_removed(told):
    before = state_of(told.directory)
    told.switch("enable")
    for folder in (told.directory / ".snapboot", *told.directory.glob("lib/python*/site-packages")):
        (folder / ".snapboot.999999999").write_text("half")
    shutil.rmtree(told.directory / ".snapboot/names")
    told.switch("disable")
    assert state_of(told.directory) == before and not told.left()


@pytest.mark.fault("`snapboot enable` or `disable` is killed before any change in the folder of a Ruby", "starts go on; the next finishes")
def test_a_command_that_is_killed_leaves_a_ruby(ruby):
    """Before each change that it makes in the folder of the Ruby."""
    before, tree = ruby.facts([str(ruby.script)]), state_of(ruby.directory)
    calls = "rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat"
    for word in ("enable", "disable"):
        number, status = 0, None
        while status != 0:
            ruby.switch("enable" if word == "disable" else "disable")
            number += 1
            kill = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={calls}", "-e", f"inject={calls}:signal=KILL:when={number}"]
            status = ruby.switch(word, kill).status
            assert status == 0 or status in (137, -9), status
            assert ruby.facts([str(ruby.script)], SNAPBOOT="off") == before, (word, number)
        assert number > 3
    assert state_of(ruby.directory) == tree and not ruby.left()


def test_what_venv_writes_through_an_entry_is_put_back(venv):
    told = venv
    """It writes where it expects links, and all names of the entry are one file."""
    before = state_of(told.folder)
    told.switch("enable")
    shutil.copyfile(os.path.realpath(support.PYTHON), told.bin / "python")
    told.switch("disable")
    assert state_of(told.folder) == before


@pytest.mark.parametrize("kind", [PythonTold, pytest.param(RubyTold, marks=[support.needs_ruby, support.needs_root])])
def test_a_bin_elsewhere_is_left_alone(kind, tmp_path):
    told = kind(tmp_path)
    told.bin.rename(tmp_path / "bin")
    told.bin.symlink_to(tmp_path / "bin")
    assert told.switch("enable").status == 0 and not is_entry(told.interpreter) and not told.left()
    assert told.switch("disable").status == 0


def test_starts_go_on_while_it_is_enabled_and_disabled(told):
    failed, ended = [], threading.Event()

    def start():
        while not ended.is_set():
            done = subprocess.run([told.interpreter, *told.nothing], env=told.env, capture_output=True, text=True)
            if done.returncode:
                failed.append(done)

    starting = threading.Thread(target=start)
    starting.start()
    try:
        for _ in range(20):
            assert [told.switch(word).status for word in ("enable", "disable")] == [0, 0]
    finally:
        ended.set()
        starting.join()
    assert not failed, failed[0]


def enabled_by_copy(environment):
    """Has a copy of Snapboot enable an environment. Returns the copy's command, and a function that takes it away or gives the entry
    another one."""
    command, link = installed.copy(environment.folder / "copy"), environment.directory / ".snapboot/snapboot"
    argv = environment.inside([command, "enable", "-q", environment.directory])
    assert support.run(argv, env=environment.env, log=False).status == 0

    def lead_to(other):
        command.unlink(missing_ok=True)
        link.unlink()
        link.symlink_to(other)

    return command, lead_to


def check_needs_no_interpreter(environment, ways, lead_to, command):
    """What an interpreter would execute is gone, so only the entry leads to the image."""
    ordinary = [environment.become_frozen(*words) for words in ways]
    lead_to(command)
    assert [environment.start(*words) for words in ways] == [(shown, False) for shown in ordinary]
    lead_to(support.SNAPBOOT)
    assert [environment.start(*words) for words in ways] == [(shown, True) for shown in ordinary]


def test_an_image_needs_no_interpreter(tmp_path):
    environment = PythonEnvironment(tmp_path)
    command, lead_to = enabled_by_copy(environment)
    (environment.packages / "tool.py").write_text(environment.template.format(loaded=""))
    tool = environment.directory / "bin/tool"
    tool.write_text(f"#!{environment.interpreter}\nimport sys\nfrom tool import main\nsys.exit(main())\n")
    tool.chmod(0o755)
    code = "import argparse, asyncio, json, os, sys; print(sys.argv, sys.stdin.read())"
    ways = (["main.py", "a"], ["-m", "tool", "-x"], ["-u", str(tool), "x"], ["-c", code, "x"])
    check_needs_no_interpreter(environment, ways, lead_to, command)


@support.needs_ruby
@support.needs_root
def test_an_image_needs_no_ruby(tmp_path):
    environment = OwnRubyEnvironment(tmp_path)
    command, lead_to = enabled_by_copy(environment)
    (tmp_path / "x").mkdir()
    tool = tmp_path / "tool"
    program = "require 'json'\nputs JSON.generate([ARGV, $0, File.read('/proc/self/cmdline'), $LOAD_PATH, STDIN.read])\n"
    tool.write_text(f"#!{environment.interpreter}\n{program}")
    tool.chmod(0o755)
    environment.program.write_text(program)
    ways = (["main.rb", "a"], ["./x/../main.rb"], ["-W0", "-I", "lib", str(tool), "x"])
    check_needs_no_interpreter(environment, ways, lead_to, command)


def test_a_process_is_named_after_the_script(tmp_path):
    """Where the kernel executes that: in ordinary starts, in those that ask for an image, and in thaws. An interpreter that is found in
    PATH has no path in the command line either. Each spelling is a program."""
    environment = PythonEnvironment(tmp_path)
    environment.switch("enable")
    script = tmp_path / "a rather long name"
    shown = "import json, argparse, email, sys\nprint(open('/proc/self/comm').read(), open('/proc/self/cmdline').read(), sys.argv)\n"
    script.write_text(f"#!{environment.interpreter}\n{shown}")
    script.chmod(0o755)
    link = tmp_path / "other"
    link.symlink_to(script)

    def told_by(words, **variables):
        search_path = f"{environment.interpreter.parent}:{environment.env['PATH']}"
        # A name is looked up in this process' PATH: it is env(1) that finds the interpreter.
        done = support.run(["env", *words], env={**environment.env, "PATH": search_path, **variables}, cwd=tmp_path, log=False)
        return done.status, done.out, done.err

    python = str(environment.interpreter)
    ways = [[str(script)], ["./a rather long name"], [str(link)], [python, str(script)], [python, script.name]]
    for words in ways:
        ordinary, before = told_by(words, SNAPBOOT="off"), environment.thawed()
        for _ in range(2):
            assert told_by(words) == ordinary, words
        environment.wait()
        assert told_by(words) == ordinary and environment.thawed() == before + 1, words
    # The same program as the last one.
    words = ["python", script.name]
    ordinary, before = told_by(words, SNAPBOOT="off"), environment.thawed()
    assert ordinary[1].startswith("python\n python\0") and told_by(words) == ordinary
    assert environment.thawed() == before + 1
