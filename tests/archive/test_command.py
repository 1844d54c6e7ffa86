"""`snapboot archive` and `snapboot run -- COMMAND`, with a real Ruby."""

import json
import os
import shutil
import subprocess

import pytest

from .rubies import ROOT, environment

SNAPBOOT = ROOT / "target/release/snapboot"
APP = """
require "one"
require_relative "lib/two"
puts [ONE, TWO, ENV["RUBYOPT"].inspect, `ruby -e 'print defined?(Snapboot).inspect'`].join(" ")
"""


@pytest.fixture
def program(tmp_path):
    """A program with two files besides its main script, one of them on its load path."""
    if shutil.which("ruby") is None:
        pytest.skip("there is no ruby")
    for name, text in {
        "Gemfile.none": "",
        "app.rb": APP,
        "lib/two.rb": "TWO = 2\n",
        "path/one.rb": "ONE = 1\n",
        "path/never.rb": 'abort "it was run"\n',
        "path/wrong.rb": "def\n",
        "tmp/keep": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    # Files that changed just now are not stored.
    os.utime(tmp_path, (1, 1))
    return tmp_path


def snapboot(*words, cwd, **variables):
    """Run the command; returns how it ended."""
    home = os.fspath(cwd / "home")
    env = {**environment(), "HOME": home, **variables}
    return subprocess.run([SNAPBOOT, *map(str, words)], cwd=cwd, env=env, capture_output=True, text=True, timeout=600)


def listing(program):
    """All files, but those of the archive's place."""
    return sorted(os.fspath(path.relative_to(program)) for path in program.rglob("*") if path.is_file())


def contents(archive, cwd):
    """What `list --json` says."""
    done = snapboot("archive", "list", "--json", archive, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def code(archive, cwd):
    """Names of the code in an archive."""
    return {entry["name"] for entry in contents(archive, cwd)["entries"] if entry["kind"] == "code"}


def test_run_switches_the_archive_on_and_nothing_else(program):
    words = ["-Ipath", "app.rb"]
    for expected in ["nil", "nil", '"-W0"']:
        variables = {} if expected == "nil" else {"RUBYOPT": "-W0"}
        done = snapboot("run", "--", "ruby", *words, cwd=program, **variables, SNAPBOOT_ARCHIVE=os.fspath(program / "a"))
        assert (done.stdout, done.stderr) == (f"1 2 {expected} nil\n", "")
    assert {"./app.rb"} < {f"./{name}" for name in listing(program)}
    assert {"./lib/two.rb", "./path/one.rb"} <= code(program / "a", program)


def test_run_says_what_cannot_be_run(program):
    done = snapboot("run", "--", "nothing-of-that-name", cwd=program)
    assert done.returncode == 127
    assert done.stderr.startswith("snapboot: cannot run nothing-of-that-name")


def test_build_compiles_everything_and_leaves_nothing_else(program):
    before = listing(program)
    done = snapboot("archive", "build", "-o", "out.archive", "--", "ruby", "-Ipath", "app.rb", cwd=program)
    assert done.returncode == 0, done.stderr
    assert "cannot be compiled" in done.stderr
    assert set(listing(program)) - set(before) == {"out.archive"}
    assert {"./app.rb", "./lib/two.rb", "./path/one.rb", "./path/never.rb"} <= code("out.archive", program)
    assert "./path/wrong.rb" not in code("out.archive", program)
    # Who cannot reach a source, as in a folder that is closed to others, cannot read the archive.
    is_open = all(folder.stat().st_mode & 0o001 for folder in program.parents)
    assert (program / "out.archive").stat().st_mode & 0o777 == (0o644 if is_open else 0o600)

    variables = {"SNAPBOOT_ARCHIVE": os.fspath(program / "out.archive"), "SNAPBOOT_STATS": "1"}
    done = snapboot("run", "--no-freeze", "--", "ruby", "-Ipath", "app.rb", cwd=program, SNAPBOOT_ARCHIVE_READONLY="1", **variables)
    assert done.stdout == "1 2 nil nil\n"
    hits, misses = (int(done.stderr.split(f" {word}")[0].split()[-1]) for word in ("hit", "miss"))
    assert hits >= 2 and misses == 0, done.stderr


def test_build_fails_without_leaving_anything(program):
    before = listing(program)
    (program / "Gemfile").write_text('gem "not-installed-anywhere"\n')
    done = snapboot("archive", "build", cwd=program)
    assert done.returncode == 1
    assert "Nothing was written" in done.stderr
    assert listing(program) == sorted([*before, "Gemfile"])
    done = snapboot("archive", "build", "--", "true", cwd=program)
    assert done.returncode == 2
    assert "should be a Ruby or Python command" in done.stderr


@pytest.mark.parametrize("place", ["notes", "notes.building", "folder", "link", "pipe"])
def test_build_overwrites_nothing_but_archives(program, place):
    there = program / place
    if place == "folder":
        there.mkdir()
    elif place == "link":
        (program / "elsewhere").write_text("text")
        there.symlink_to("elsewhere")
    elif place == "pipe":
        os.mkfifo(there)
    else:
        there.write_text("text that is longer than the header of an archive")
    before = {path: path.read_bytes() if path.is_file() else path.lstat().st_mode for path in program.rglob("*")}
    output = "notes" if place == "notes.building" else place
    done = snapboot("archive", "build", "-o", output, "--", "ruby", "-Ipath", "app.rb", cwd=program)
    assert done.returncode == 2 and f"{there} should be a boot archive, or not exist yet, but it" in done.stderr, done.stderr
    assert "Nothing was written and the file is unchanged" in done.stderr and "-o" in done.stderr
    assert {path: path.read_bytes() if path.is_file() else path.lstat().st_mode for path in program.rglob("*")} == before


def test_build_overwrites_archives_and_empty_files(program):
    build = ["archive", "build", "-o", "out.archive", "--", "ruby", "-Ipath", "app.rb"]
    for content in [b"", None, b"\x89SNAPAR\n" + b"damaged" * 1000]:
        if content is not None:
            (program / "out.archive").write_bytes(content)
        done = snapboot(*build, cwd=program)
        assert done.returncode == 0, done.stderr
        assert "./app.rb" in code("out.archive", program)


@pytest.mark.parametrize("command", ["run", "prune"])
def test_files_that_are_no_archives_are_left_alone(program, command):
    notes = program / "notes"
    notes.write_text("text that is longer than the header of an archive")
    if command == "run":
        words = ["run", "--no-freeze", "--", "ruby", "-Ipath", "app.rb"]
        done = snapboot(*words, cwd=program, SNAPBOOT_ARCHIVE=os.fspath(notes), SNAPBOOT_LOG="1")
        assert (done.returncode, done.stdout) == (0, "1 2 nil nil\n")
    else:
        done = snapboot("archive", "prune", notes, cwd=program)
        assert done.returncode == 2
    assert "should be a boot archive" in done.stderr
    assert notes.read_text() == "text that is longer than the header of an archive" and not (program / "notes.new").exists()


def test_archives_are_found_by_their_program(program):
    done = snapboot("archive", "list", ".", cwd=program)
    assert done.returncode == 2
    assert "snapboot archive build" in done.stderr
    shutil.move(program / "Gemfile.none", program / "Gemfile")
    assert snapboot("run", "--no-freeze", "--", "ruby", "-Ipath", "app.rb", cwd=program).returncode == 0
    assert "./lib/two.rb" in snapboot("archive", "list", ".", cwd=program).stdout
    done = snapboot("archive", "verify", ".", cwd=program)
    assert (done.returncode, done.stdout.count(": whole (")) == (0, 1)


def test_verify_finds_damage_and_prune_takes_it_away(program):
    archive = program / "a.archive"
    assert snapboot("archive", "build", "-o", archive, "--", "ruby", "-Ipath", "app.rb", cwd=program).returncode == 0
    entries = len(contents(archive, program)["entries"])
    whole = archive.read_bytes()
    archive.write_bytes(whole + b"left by somebody who was killed")
    done = snapboot("archive", "verify", archive, cwd=program)
    assert done.returncode == 1 and "31 B at its end belong to no segment" in done.stderr, done.stderr
    spoiled = bytearray(whole)
    spoiled[4096 + 60] ^= 1
    archive.write_bytes(spoiled)
    done = snapboot("archive", "verify", archive, cwd=program)
    assert done.returncode == 1 and "damaged" in done.stderr, done.stderr
    assert snapboot("archive", "prune", archive, cwd=program).returncode == 0
    assert snapboot("archive", "verify", archive, cwd=program).returncode == 0
    assert len(contents(archive, program)["entries"]) >= entries - 1

    (program / "path/one.rb").unlink()
    done = snapboot("archive", "prune", "--max", "1", archive, cwd=program)
    assert done.returncode == 0 and " entries kept" in done.stdout
    assert archive.stat().st_size <= 1 << 20


@pytest.mark.parametrize("words", [["list"], ["verify"], ["prune"]])
def test_what_is_no_archive_is_named(program, words):
    (program / "notes").write_text("something else altogether\n")
    done = snapboot("archive", *words, "notes", cwd=program)
    assert done.returncode == 2
    assert "its first bytes are not those of one" in done.stderr
    assert (program / "notes").read_text() == "something else altogether\n"
    assert snapboot("archive", *words, "missing", cwd=program).returncode == 2
