"""What a program has loaded is in its archive, however the program ends, restarts or works: also when its exit handlers never run."""

import os
import pathlib
import signal
import subprocess

import pytest
from common import support
from common.waiting import settle, wait_until

from . import boots

BACK_ENDS = ["native", "pure"]
# What each part of a program loads: code, which the native part keeps, and a document, which both do.
MAIN = """\

def take(name)
  require name
  puts YAML.load_file("#{__dir__}/#{name}.yml").inspect
  $stdout.flush
end
require "yaml"
"""
NAMES = ["own", "child", "other"]


@pytest.fixture(params=BACK_ENDS)
def program(tmp_path, request):
    """A program whose main part the tests write."""
    boots_of = boots.made(boots.tiny, tmp_path, SNAPBOOT_ARCHIVE_BACK_END=request.param)
    for name in NAMES:
        (boots_of.program.folder / f"late/{name}.rb").write_text(f"puts 'this is {name}'\n")
        (boots_of.program.folder / f"{name}.yml").write_text(f"name: {name}\n")
    settle()
    return boots_of


def main_part(boots_of, text):
    (boots_of.program.folder / "main.rb").write_text(MAIN + text)
    settle()


def kept(boots_of, *names):
    """Fails the test unless the archive has what these names stand for. Asks without another boot writing to it."""
    main_part(boots_of, "\n".join(f"take {name!r}" for name in names))
    boots_of.options["SNAPBOOT_ARCHIVE_READONLY"] = "1"
    result, events = boots_of.counted()
    del boots_of.options["SNAPBOOT_ARCHIVE_READONLY"]
    assert result.status == 0, result
    assert events.get("data hit", 0) == len(names) and not events.get("data miss"), (names, events)
    if boots_of.options["SNAPBOOT_ARCHIVE_BACK_END"] == "native":
        # All but the main part that has just been written.
        assert events.get("code hit", 0) >= len(names), (names, events)


ENDS = {
    "exit!": "take 'own'; exit!(4)",
    "Process.exit!": "take 'own'; Process.exit!",
    "exec": "take 'own'; exec 'echo', 'executed'",
    "Kernel.exec": "take 'own'; Kernel.exec({'A' => 'b'}, 'echo $A')",
    "Process.exec": "take 'own'; Process.exec 'echo executed'",
    "a failed exec": "take 'own'; begin; exec '/nonexistent'; rescue SystemCallError => e; puts e.message; end; exit!",
    "a signal": "take 'own'; Process.kill(:TERM, $$); sleep",
    "killed after a fork": "take 'own'; Process.wait(fork { exit! }); Process.kill(:KILL, $$); sleep",
    "the parent of a daemon": "take 'own'; Process.daemon(true, true); exit!",
    "abort": "take 'own'; abort",
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.fault("a program ends without its exit handlers, or becomes another one", "what it has loaded is kept")
def test_a_program_that_ends(program, end):
    main_part(program, ENDS[end])
    boots.same(program.ordinary(), program.boot(), end)
    kept(program, "own")


WORKERS = {
    "a child that ends": "Process.wait(fork { take 'child' })",
    "a child that is ended": "Process.wait(fork { take 'child'; exit! })",
    "a child that ends by exec": "Process.wait(fork { take 'child'; exec 'true' })",
    "a grandchild": "Process.wait(fork { Process.wait(fork { take 'child'; exit! }); exit! })",
    "children that load the same": "8.times { fork { take 'child'; exit! } }; Process.waitall",
}


@pytest.mark.parametrize("way", WORKERS)
@pytest.mark.fault("a program works in children that it forks", "what they load is kept, and what it has loaded before; nothing twice")
def test_workers(program, way):
    main_part(program, f"take 'own'\n{WORKERS[way]}\nputs 'end'")
    ordinary, booted = program.ordinary(), program.boot()
    lines = [sorted(result.out.splitlines()) for result in (ordinary, booted)]
    assert (lines[0], ordinary.status, ordinary.err) == (lines[1], booted.status, booted.err), (ordinary, booted)
    kept(program, "own", "child")
    listed = support.run([support.SNAPBOOT, "archive", "list", program.archive], log=False).out
    assert "superseded" not in listed and listed.count("late/child.rb") <= 1, listed


def test_workers_that_load_in_their_own_ways(program):
    main_part(program, "take 'own'\n%w[child other].each { |name| fork { take name; exit! } }; Process.waitall")
    assert program.boot().status == 0
    kept(program, *NAMES)


def own_threads(process):
    """The threads of a process that write an archive: Ruby may have some of its own. OWN_THREADS is their number, in Ruby."""
    return [path for path in pathlib.Path(f"/proc/{process}/task").glob("*/comm") if path.read_text() == "snapboot\n"]


OWN_THREADS = r"Dir['/proc/self/task/*/comm'].count { |path| File.read(path) == %(snapboot\n) }"


@pytest.mark.parametrize("program", ["native"], indirect=True)  # nothing but a thread of Ruby's could write in the other
@pytest.mark.fault("a program is killed some time after it has booted", "what it has loaded is kept")
def test_a_program_that_is_killed_while_it_waits(program):
    main_part(program, "take 'own'; p Thread.list.size; $stdout.flush; $stdin.gets")
    with subprocess.Popen(
        list(map(os.fspath, program.argv())),
        env=program.archive_environment(),
        cwd=program.program.cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        wait_until(lambda: program.archive.exists() and not own_threads(process.pid), "the archive is not written")
        os.kill(process.pid, signal.SIGKILL)
        assert process.stdout.read().endswith(b"\n1\n")
    kept(program, "own")


@pytest.mark.parametrize("program", ["native"], indirect=True)
def test_no_other_thread_is_there_in_a_fork(program):
    """Nor is one left in the program when all is written."""
    main_part(program, f"take 'own'; Process.wait(fork {{ puts {OWN_THREADS} }}); puts {OWN_THREADS}")
    assert program.boot().out.splitlines()[-2:] == ["0", "0"]


@pytest.mark.parametrize("program", ["native"], indirect=True)
def test_a_program_with_little_memory_gets_no_thread(program):
    main_part(program, f"take 'own'; puts {OWN_THREADS}")
    limited = ["sh", "-c", 'ulimit -v 2000000; exec "$@"', "sh", *program.argv()]
    result = support.run(limited, env=program.archive_environment(), cwd=program.program.cwd, log=False)
    assert result.out.splitlines()[-1] == "0", result
    kept(program, "own")


@pytest.mark.parametrize("program", ["native"], indirect=True)
def test_a_thaw_writes_nothing(program, tmp_path):
    """It sees the archive as it was when the process was frozen, and would have something to add to it in every start."""
    show = f"p $$ != PROCESS; puts {OWN_THREADS}, Snapboot::Archive.place"
    freeze_point = "require 'snapboot'; PROCESS = $$; Snapboot.freeze_point"
    main_part(program, f"require 'snapboot/setup'; take 'own'; {freeze_point}; take 'child'; {show}")
    environment = {**program.environment(), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    options = [option for name in ("RUBYLIB", "XDG_CACHE_HOME") for option in ("--env", name)]
    support.frozen(tmp_path / "image", program.argv(), *options, env=environment, cwd=program.program.cwd)
    states = []
    for _ in range(2):
        thawed = support.run([tmp_path / "image"], env=environment, cwd=program.program.cwd, log=False)
        is_thawed, threads, place = thawed.out.splitlines()[-3:]
        assert (thawed.status, is_thawed, threads) == (0, "true", "0"), thawed
        states.append(pathlib.Path(place).read_bytes() if os.path.exists(place) else None)
    assert states[0] == states[1]
    assert states[0] is None or b"late/child.rb" not in states[0]
