"""Boots whose archive is taken away, cut short, forbidden, somebody else's or written by many at once, and writers that are killed."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from common import support
from common.system_calls import WITHOUT_THREAD, calls, killed_before, thinned
from common.waiting import settle

from . import boots

CROWD = 20


@pytest.fixture
def tiny(tmp_path):
    """A small program with a filled archive."""
    return boots.made(boots.tiny, tmp_path).warm()


def names(boots_of):
    return sorted(path.name for path in boots_of.place.iterdir())


def used(boots_of):
    """Whether a boot takes all code from the archive."""
    _, events = boots_of.counted()
    return events.get("code hit", 0) > 0 and not events.get("code miss")


@pytest.mark.fault("a boot is killed before any call with which it writes its archive", "the next boots are right, and fill it again")
def test_a_writer_killed_before_each_change(tmp_path):
    boots_of = boots.made(boots.tiny, tmp_path)
    (boots_of.program.folder / "main.rb").write_text(boots.TINY_MAIN.replace("exit 3\n", ""))
    settle()
    ordinary = boots_of.ordinary()
    environment, argv = boots_of.archive_environment(), [*WITHOUT_THREAD, *boots_of.argv()]
    for filled in (False, True):
        if filled:  # a file more to append, beside what is there
            source = boots_of.program.folder / "late/first.rb"
            source.write_text(source.read_text() + "# more\n")
            settle()
            ordinary = boots_of.ordinary()
        kept = tmp_path / "kept"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(boots_of.place, kept)
        found = thinned(calls(argv, environment, boots_of.place, tmp_path / "log"))
        assert [name for name, _, _ in found if "write" in name], found
        for name, number, line in found:
            shutil.rmtree(boots_of.place)
            shutil.copytree(kept, boots_of.place)
            killed_before(argv, environment, name, number)
            for boot in range(3):
                boots.same(ordinary, boots_of.boot(), f"a writer killed before {line}, boot {boot}")
            assert used(boots_of), line
            assert names(boots_of) == ["boot.archive"], line


FULL = """
mount -t tmpfs -o size="$1",mode=0700 none "$2"
if [ -e "$3" ]; then cp -p "$3" "$2/boot.archive"; fi
dd if=/dev/zero of="$2/fill" bs=4096 2>/dev/null || true
place="$2"
shift 3
"$@" || echo status $?
"$@" || echo status $?
ls "$place"/*.new 2>/dev/null || find "$place" -empty
"""


@pytest.mark.parametrize("back_end", ["native", "pure"])
@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("room", [0, 2, 5])
@pytest.mark.fault("the disk is full when an archive is made or added to", "the boots are right; no empty or partial file is left")
def test_a_full_disk(tmp_path, filled, room, back_end):
    boots_of = boots.made(boots.tiny, tmp_path)
    kept = tmp_path / "kept"
    size = 4096 * (2 + room)
    if filled:
        boots_of.warm()
        shutil.copy2(boots_of.archive, kept)
        size += kept.stat().st_size
        source = boots_of.program.folder / "late/first.rb"
        source.write_text(source.read_text() + "# more\n")
        settle()
    boots_of.options["SNAPBOOT_ARCHIVE_BACK_END"] = back_end
    script = support.in_mount_namespace(FULL, str(size), str(boots_of.place), str(kept), *boots_of.argv())
    ordinary = boots_of.ordinary()
    result = support.run(script, env=boots_of.archive_environment(), cwd=boots_of.program.cwd, log=False)
    assert result.out == f"{ordinary.out}status {ordinary.status}\n" * 2 and result.err == ordinary.err * 2, result


@pytest.mark.parametrize("back_end", ["native", "pure"])
@pytest.mark.parametrize("blocks", [0, 1, 8, 16])
@pytest.mark.fault("a process may not write files of the archive's size (ulimit -f)", "the boots are right; no empty file is left")
def test_a_limit_on_the_size_of_files(tmp_path, blocks, back_end):
    boots_of = boots.made(boots.tiny, tmp_path, SNAPBOOT_ARCHIVE_BACK_END=back_end)
    settle()
    ordinary = boots_of.ordinary()
    limited = ["sh", "-c", 'ulimit -f "$0"; exec "$@"', str(blocks), *boots_of.argv()]
    for _ in range(3):
        result = support.run(limited, env=boots_of.archive_environment(), cwd=boots_of.program.cwd, log=False)
        boots.same(ordinary, result, f"ulimit -f {blocks}")
        assert not boots_of.archive.exists() or boots_of.archive.stat().st_size > 4096
    boots_of.options["SNAPBOOT_ARCHIVE_BACK_END"] = "native"
    boots_of.warm()


@pytest.mark.fault("twenty boots at once fill the same archive", "all are right, and nothing is lost")
def test_a_crowd_fills_one_archive(tmp_path):
    boots_of = boots.made(boots.tiny, tmp_path)
    settle()
    ordinary = boots_of.ordinary()
    for _ in range(3):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        argv, environment = list(map(os.fspath, boots_of.argv())), boots_of.archive_environment()
        crowd = [subprocess.Popen(argv, env=environment, cwd=boots_of.program.cwd, **pipes) for _ in range(CROWD)]
        for process in crowd:
            out, err = process.communicate(timeout=support.SECONDS)
            ended = support.Result(subprocess.CompletedProcess(argv, process.returncode, out, err))
            boots.same(ordinary, ended, "a boot among many")
        assert names(boots_of) == ["boot.archive"]
    assert used(boots_of)


@pytest.mark.fault("boots at once, while sources change and the archive is removed again and again", "all are right")
def test_a_crowd_while_everything_changes(tmp_path):
    boots_of = boots.made(boots.tiny, tmp_path)
    source = boots_of.program.folder / "late/first.rb"
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    argv, environment = list(map(os.fspath, boots_of.argv())), boots_of.archive_environment()
    for number in range(10):
        new = source.with_suffix(".new")
        new.write_text(f"($marks ||= []) << 'number {number}'\n")
        os.replace(new, source)
        if number % 3 == 2:
            boots_of.archive.unlink(missing_ok=True)
        ordinary = boots_of.ordinary()
        crowd = [subprocess.Popen(argv, env=environment, cwd=boots_of.program.cwd, **pipes) for _ in range(6)]
        for process in crowd:
            out, err = process.communicate(timeout=support.SECONDS)
            ended = support.Result(subprocess.CompletedProcess(argv, process.returncode, out, err))
            boots.same(ordinary, ended, f"change {number} in a crowd")


WAITING = """\
require "first"
$stdout.puts "ready"
$stdout.flush
$stdin.gets
"""


def remove(boots_of, tmp_path):
    boots_of.archive.unlink()


def remove_folder(boots_of, tmp_path):
    shutil.rmtree(boots_of.place)


def replace_by_another(boots_of, tmp_path):
    (tmp_path / "other").mkdir()
    other = boots.made(boots.tiny, tmp_path / "other")
    (other.program.folder / "late/second.rb").write_text("puts 'another program'\n")
    other.warm()
    os.replace(other.archive, boots_of.archive)


def replace_by_garbage(boots_of, tmp_path):
    (tmp_path / "garbage").write_bytes(os.urandom(50_000))
    (tmp_path / "garbage").chmod(0o600)
    os.replace(tmp_path / "garbage", boots_of.archive)


def replace_by_folder(boots_of, tmp_path):
    boots_of.archive.unlink()
    boots_of.archive.mkdir()


@pytest.mark.parametrize("deed", [remove, remove_folder, replace_by_another, replace_by_garbage, replace_by_folder])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.fault("the archive is removed or replaced while a program that uses it is running", "the program goes on as ever")
def test_an_archive_taken_from_a_running_program(tiny, tmp_path, deed, known):
    main = tiny.program.folder / "main.rb"
    main.write_text(WAITING + boots.TINY_MAIN)
    if known:
        support.run(tiny.argv(), env=tiny.archive_environment(), log=False)
    ordinary = tiny.ordinary()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    argv = list(map(os.fspath, tiny.argv()))
    with subprocess.Popen(argv, env=tiny.archive_environment(), cwd=tiny.program.cwd, **pipes) as process:
        first = process.stdout.readline()
        deed(tiny, tmp_path)
        out, err = process.communicate(b"\n", timeout=support.SECONDS)
    ended = support.Result(subprocess.CompletedProcess(argv, process.returncode, first + out, err))
    boots.same(ordinary, ended, deed.__name__)
    boots.same(ordinary, tiny.boot(), f"{deed.__name__}, the next boot")


def link(archive, tmp_path):
    os.rename(archive, archive.with_suffix(".elsewhere"))
    archive.symlink_to(archive.with_suffix(".elsewhere"))


def open_to_all(archive, tmp_path):
    archive.chmod(0o666)


def open_to_group(archive, tmp_path):
    archive.chmod(0o620)


def nothing(archive, tmp_path):
    archive.write_bytes(b"")


def folder(archive, tmp_path):
    archive.unlink()
    archive.mkdir()


def pipe(archive, tmp_path):
    archive.unlink()
    os.mkfifo(archive, 0o600)


def text(archive, tmp_path):
    archive.write_text("not an archive\n" * 1000)


def device(archive, tmp_path):
    archive.unlink()
    archive.symlink_to("/dev/zero")


def of_somebody_else(archive, tmp_path):
    if not support.IS_ROOT:
        pytest.skip("only root may give files away")
    os.chown(archive, support.NOBODY, support.NOBODY)


ODD = [link, open_to_all, open_to_group, nothing, folder, pipe, text, device, of_somebody_else]
NEVER_USED = [link, open_to_all, open_to_group, of_somebody_else]


@pytest.mark.parametrize("deed", ODD)
@pytest.mark.fault(
    "the archive is a link, a folder, a pipe, a device, some text, open to others, or of somebody else",
    "it is not used, and the boots are right",
)
def test_an_archive_that_is_none(tiny, tmp_path, deed):
    deed(tiny.archive, tmp_path)
    tiny.compared(deed.__name__, times=2)
    if deed in NEVER_USED:
        _, events = tiny.counted()
        assert not events.get("code hit"), events


@pytest.mark.fault("an archive in a place that cannot be written", "it is used and not written to")
def test_a_read_only_archive(tiny):
    tiny.archive.chmod(0o400)
    before = tiny.archive.read_bytes(), tiny.archive.stat().st_mtime_ns
    tiny.options["SNAPBOOT_ARCHIVE_READONLY"] = "1"
    assert used(tiny)
    source = tiny.program.folder / "late/first.rb"
    source.write_text("($marks ||= []) << 'bb first'\n")
    settle()
    assert "bb first" in tiny.compared("an edit", times=2).out
    assert (tiny.archive.read_bytes(), tiny.archive.stat().st_mtime_ns) == before


READ_ONLY = """
mount --bind "$1" "$1"
mount -o remount,ro,bind "$1"
shift
"$@" || echo status $?
"""


@pytest.mark.fault("an archive in a file system that is mounted read-only", "it is used and not written to")
def test_an_archive_in_a_read_only_file_system(tiny):
    script = support.in_mount_namespace(READ_ONLY, str(tiny.place), *tiny.argv())
    for edit in (False, True):
        if edit:
            (tiny.program.folder / "late/first.rb").write_text("($marks ||= []) << 'bb first'\n")
            settle()
        ordinary = tiny.ordinary()
        result = support.run(script, env=tiny.archive_environment(), cwd=tiny.program.cwd, log=False)
        assert result.out == f"{ordinary.out}status {ordinary.status}\n" and result.err == ordinary.err, result


@pytest.mark.parametrize(
    "variables",
    [
        {"SNAPBOOT_ARCHIVE": "/proc/nonexistent/folder/boot.archive"},
        {"SNAPBOOT_ARCHIVE": "/proc/boot.archive"},
        {"SNAPBOOT_ARCHIVE": "/dev/null"},
        {"SNAPBOOT_ARCHIVE": ""},
        {"SNAPBOOT_ARCHIVE": "off"},
        {"SNAPBOOT_ARCHIVE_POLICY": "nonsense"},
        {"SNAPBOOT_ARCHIVE_MAX": "nonsense"},
        {"SNAPBOOT_ARCHIVE_MAX": "0"},
        {"HOME": "/proc/nonexistent", "XDG_CACHE_HOME": "relative", "SNAPBOOT_ARCHIVE": ""},
    ],
    ids=str,
)
@pytest.mark.fault("the variables name a place where no archive can be, or nonsense", "the boots are right")
def test_variables_that_lead_nowhere(tmp_path, variables):
    boots_of = boots.made(boots.tiny, tmp_path, **variables)
    boots_of.program.env["HOME"] = variables.get("HOME", str(tmp_path))
    boots_of.program.env["XDG_CACHE_HOME"] = variables.get("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ordinary = boots_of.ordinary()
    for _ in range(2):
        booted = boots_of.boot()
        said = [line for line in booted.err.splitlines(True) if not line.startswith("snapboot: ")]
        assert (booted.status, booted.out, "".join(said)) == (ordinary.status, ordinary.out, ordinary.err), booted


@support.needs_root
@pytest.mark.fault("an archive that its user may read and not write", "it is used and not written to")
def test_an_archive_of_root_used_by_another_user(tmp_path):
    if subprocess.run(support.as_nobody(["test", "-r", boots.LIBRARY / "snapboot/setup.rb"]), cwd="/").returncode:
        pytest.skip("an ordinary user cannot reach this tree")
    place = pathlib.Path(tempfile.mkdtemp(prefix="snapboot-boots-"))
    place.chmod(0o755)
    try:
        boots_of = boots.made(boots.tiny, place)
        boots_of.warm()
        boots_of.archive.chmod(0o644)
        boots_of.place.chmod(0o755)
        ordinary = support.run(support.as_nobody(boots_of.argv()), env=boots_of.environment(), cwd="/", log=False)
        booted = support.run(support.as_nobody(boots_of.argv()), env=boots_of.archive_environment(), cwd="/", log=False)
        boots.same(ordinary, booted, "an archive of root")
    finally:
        shutil.rmtree(place)


FORKING = """\
require "first"
children = 5.times.map do |number|
  fork do
    require "second"
    puts "child #{number} #{$marks.size}"
    exit! if number == 2
    exit number
  end.tap { |pid| Process.wait(pid); puts $?.exitstatus }
end
require "later"
puts children.size, Later::WHAT
"""


@pytest.mark.fault("a program forks, and its children load and end in their own ways", "all is as ever")
def test_children(tmp_path):
    boots_of = boots.made(boots.tiny, tmp_path)
    (boots_of.program.folder / "main.rb").write_text(FORKING)
    settle()
    boots_of.compared("children", times=3)


ENDS = {
    "exit!": "exit!(4)",
    "abort": "abort 'aborted'",
    "raise": "raise 'an error'",
    "signal": "Process.kill(:TERM, Process.pid); sleep",
    "exec": "exec 'echo', 'executed'",
    "killed": "Process.kill(:KILL, Process.pid); sleep",
    "at_exit": "at_exit { require 'third'; exit 7 }",
    "closed": "$stderr.close; $stdout.close",
    "throw": "throw :nothing",
    "thread": "Thread.new { require 'third' }.join; Thread.new { sleep }",
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.fault("a program ends in any way", "it ends so with an archive, too")
def test_every_end(tmp_path, end):
    boots_of = boots.made(boots.tiny, tmp_path)
    main = boots_of.program.folder / "main.rb"
    main.write_text('require "first"\nrequire "later"\nputs $marks.inspect\n$stdout.flush\n' + ENDS[end] + "\n")
    settle()
    boots_of.compared(end, times=3)
