"""Starts whose archive of Python is damaged, taken away, forbidden, somebody else's or written by many at once; killed writers.

SNAPBOOT_DAMAGES archives are damaged (`make damage` takes 10,000); the seed is printed, and SNAPBOOT_SEED repeats it.
"""

import os
import shutil
import subprocess

import pytest
from archive.boots import test_damage as damage
from archive.boots import test_faults as faults
from common import support
from common.system_calls import WITHOUT_THREAD, calls, killed_before, thinned
from common.waiting import settle

from . import programs, starts

DAMAGES = int(os.environ.get("SNAPBOOT_DAMAGES", "40"))
CROWD = 8
PIPES = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
MAIN = ["main.py"]


@pytest.fixture
def program(tmp_path):
    """A program with a filled archive."""
    return programs.made(tmp_path, PYTHONDONTWRITEBYTECODE="1").warm(MAIN)


def used(program):
    """Whether a start takes all from the archive."""
    _, counts = program.counted(MAIN)
    return counts["hits"] > 10 and not counts["misses"] + counts["stale"]


@pytest.mark.fault("any bytes of an archive are others, its end is lost, something is added", "the boots are right, and mend it")
def test_damaged_archives(program):
    state, seed = support.seeded()
    whole, ordinary = program.archive.read_bytes(), program.ordinary(MAIN)
    for number in range(1, DAMAGES + 1):
        content = bytearray(whole)
        what = f"{seed}, damage {number}: {state.choice(damage.KINDS)(content, state)}"
        support.write(program.place / "new", content).chmod(0o600)
        os.replace(program.place / "new", program.archive)
        starts.same(ordinary, program.with_archive(MAIN), what)
        if number % 10 == 0:
            starts.same(ordinary, program.with_archive(MAIN), f"{what}, the next start")
            assert used(program), (what, "was not mended")


@pytest.mark.fault("a boot is killed before any call with which it writes its archive", "the next boots are right, and fill it again")
def test_a_writer_killed_before_each_change(tmp_path):
    program = programs.made(tmp_path, PYTHONDONTWRITEBYTECODE="1")
    (program.folder / "main.py").write_text(programs.MAIN.replace("sys.exit(3)", ""))
    settle()
    ordinary = program.ordinary(MAIN)
    environment = {**support.environment(**program.variables), "SNAPBOOT_ARCHIVE": str(program.archive)}
    environment["PYTHONPATH"] = f"{starts.RUN}:{environment['PYTHONPATH']}"
    argv = [*WITHOUT_THREAD, program.python, program.folder / "main.py"]
    found = thinned(calls(argv, environment, program.place, tmp_path / "log"))
    assert [name for name, _, _ in found if "write" in name], found
    for name, number, line in found:
        shutil.rmtree(program.place)
        program.place.mkdir(mode=0o700)
        killed_before(argv, environment, name, number)
        for start in range(2):
            starts.same(ordinary, program.with_archive(MAIN), f"a writer killed before {line}, start {start}")
        assert used(program), line
        assert [path.name for path in program.place.iterdir()] == ["boot.archive"], line


@pytest.mark.parametrize("room", [0, 5, 40])
@pytest.mark.fault("the disk is full when an archive is made or added to", "the boots are right; no empty or partial file is left")
def test_a_full_disk(tmp_path, room):
    program = programs.made(tmp_path, PYTHONDONTWRITEBYTECODE="1")
    settle()
    ordinary = program.ordinary(MAIN)
    script = support.in_mount_namespace(faults.FULL, str(4096 * (2 + room)), str(program.place), "/nowhere", program.python, "main.py")
    environment = {**support.environment(**program.variables), "SNAPBOOT_ARCHIVE": str(program.archive)}
    environment["PYTHONPATH"] = f"{starts.RUN}:{environment['PYTHONPATH']}"
    result = support.run(script, env=environment, cwd=program.folder, log=False)
    assert result.out == f"{ordinary.out}status {ordinary.status}\n" * 2 and result.err == ordinary.err * 2, result


@pytest.mark.parametrize("limit", ["-f 0", "-f 8", "-v 400000", "-d 100000", "-n 12", "-c 0", "-s 512"])
@pytest.mark.fault("a process may not write files of the archive's size (ulimit -f)", "the boots are right; no empty file is left")
def test_limits(tmp_path, limit):
    program = programs.made(tmp_path, PYTHONDONTWRITEBYTECODE="1")
    settle()
    program.python, python = "sh", program.python
    program.compared(["-c", f'ulimit {limit}; exec "$0" "$@"', python, "main.py"], limit, times=3)
    assert not program.archive.exists() or program.archive.stat().st_size > 4096


@pytest.mark.fault("twenty boots at once fill the same archive", "all are right, and nothing is lost")
def test_a_crowd_fills_one_archive(tmp_path):
    program = programs.made(tmp_path, PYTHONDONTWRITEBYTECODE="1")
    settle()
    ordinary = program.ordinary(MAIN)
    for round in range(3):
        if round == 1:  # while a source changes
            (program.folder / "late/first.py").write_text("TEXT = 'bb first'\n")
            ordinary = program.ordinary(MAIN)
        for ended in crowd(program):
            starts.same(ordinary, ended, "a start among many")
        settle()
    program.with_archive(MAIN)
    assert used(program)
    assert [path.name for path in program.place.iterdir()] == ["boot.archive"]


def crowd(program):
    """The Results of many starts at once."""
    environment = {**support.environment(**program.variables), "SNAPBOOT_ARCHIVE": str(program.archive)}
    environment["PYTHONPATH"] = f"{starts.RUN}:{environment['PYTHONPATH']}"
    argv = [program.python, *MAIN]
    processes = [subprocess.Popen(argv, env=environment, cwd=program.folder, **PIPES) for _ in range(CROWD)]
    for process in processes:
        out, err = process.communicate(timeout=support.SECONDS)
        yield support.Result(subprocess.CompletedProcess(argv, process.returncode, out, err))


@pytest.mark.parametrize("deed", faults.ODD)
@pytest.mark.fault(
    "the archive is a link, a folder, a pipe, a device, some text, open to others, or of somebody else",
    "it is not used, and the boots are right",
)
def test_an_archive_that_is_none(program, tmp_path, deed):
    deed(program.archive, tmp_path)
    program.compared(MAIN, deed.__name__)
    if deed in faults.NEVER_USED:
        assert not program.counted(MAIN)[1]["hits"]


WAITING = "import first, re, package.inner\nprint('ready', flush=True)\nimport sys; sys.stdin.readline()\n"


@pytest.mark.parametrize("deed", ["rm {0}", "rm -r $(dirname {0})", "head -c 50000 /dev/urandom > {0}.x; mv {0}.x {0}",
    "rm {0}; mkdir {0}"])
@pytest.mark.fault("the archive is removed or replaced while a program that uses it is running", "the program goes on as ever")
def test_an_archive_taken_from_a_running_program(program, deed):
    (program.folder / "main.py").write_text(WAITING + programs.MAIN)
    settle()
    ordinary = program.ordinary(MAIN)
    environment = {**support.environment(**program.variables), "SNAPBOOT_ARCHIVE": str(program.archive)}
    environment["PYTHONPATH"] = f"{starts.RUN}:{environment['PYTHONPATH']}"
    argv = [program.python, *MAIN]
    with subprocess.Popen(argv, env=environment, cwd=program.folder, **{**PIPES, "stdin": subprocess.PIPE}) as process:
        first = process.stdout.readline()
        subprocess.run(deed.format(program.archive), shell=True, check=True)
        out, err = process.communicate(b"\n", timeout=support.SECONDS)
    starts.same(ordinary, support.Result(subprocess.CompletedProcess(argv, process.returncode, first + out, err)), deed)
    starts.same(ordinary, program.with_archive(MAIN), f"{deed}, the next start")


@pytest.mark.fault("an archive in a place that cannot be written", "it is used and not written to")
def test_a_read_only_archive(program):
    program.archive.chmod(0o400)
    before = program.archive.read_bytes(), program.archive.stat().st_mtime_ns
    program.variables["SNAPBOOT_ARCHIVE_READONLY"] = "1"
    assert used(program)
    (program.folder / "late/first.py").write_text("TEXT = 'bb first'\n")
    settle()
    assert "bb first" in program.compared(MAIN, "an edit").out
    assert (program.archive.read_bytes(), program.archive.stat().st_mtime_ns) == before


@pytest.mark.parametrize(
    "variables",
    [
        {"SNAPBOOT_ARCHIVE": "/proc/nowhere/boot.archive"},
        {"SNAPBOOT_ARCHIVE": "/dev/null"},
        {"SNAPBOOT_ARCHIVE": "main.py"},
        {"SNAPBOOT_ARCHIVE": ""},
        {"SNAPBOOT_ARCHIVE_POLICY": "nonsense"},
        {"SNAPBOOT_ARCHIVE_MAX": "nonsense"},
        {"SNAPBOOT_ARCHIVE": "", "HOME": "", "XDG_CACHE_HOME": ""},
        {"SNAPBOOT_ARCHIVE": "\udce4/\udce4"},
    ],
    ids=str,
)
@pytest.mark.fault("the variables name a place where no archive can be, or nonsense", "the boots are right")
def test_variables_that_lead_nowhere(tmp_path, variables):
    program = programs.made(tmp_path, PYTHONDONTWRITEBYTECODE="1", HOME=str(tmp_path / "home"))
    settle()
    ordinary = program.ordinary(MAIN)
    for _ in range(2):
        starts.same(ordinary, program.with_archive(MAIN, variables), str(variables))


MAX_GROWTH = 4_000  # kB; a tenth of it is usual
SHOW = """\
import gc, importlib, sys
def memory():
    gc.collect()
    return int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1])
def repeat(times, deed):
    for number in range(times): deed(number)
    before = memory()
    for number in range(times): deed(number)
    grown = memory() - before
    assert grown < %d, "%%d kB more" %% grown
def missing(name):
    try: importlib.import_module(name)
    except ImportError: pass
def again(number):
    sys.modules.pop("package.inner", None); importlib.import_module("package.inner")
import re, first, package.inner
""" % MAX_GROWTH
REPEATED = {
    "a module that is nowhere": "repeat(2000, lambda number: missing('nowhere'))",
    "modules that are nowhere": "repeat(2000, lambda number: missing('package.nowhere%d' % (number % 100)))",
    "a module that is imported again": "repeat(2000, again)",
    "specs that are asked for": "import importlib.util; repeat(2000, lambda number: importlib.util.find_spec('package.other'))",
    "caches that are invalidated": "repeat(500, lambda number: (importlib.invalidate_caches(), missing('nowhere')))",
}


@pytest.mark.parametrize("what", REPEATED)
def test_memory_does_not_grow(tmp_path, what):
    """What a program does again and again costs no more memory each time, whether its archive has the answer or not."""
    program = programs.made(tmp_path)
    (program.folder / "main.py").write_text(SHOW + REPEATED[what] + "\nprint('repeated')\n")
    settle()
    for _ in range(2):
        result = program.with_archive(MAIN)
        assert (result.status, result.out) == (0, "repeated\n"), result
