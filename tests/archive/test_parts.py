"""Each part of the boot archive can be switched off: the program does the same then, and that part of the archive stays empty."""

import itertools
import json
import os
import subprocess

import pytest

from .rubies import KINDS, ROOT, archive_options, environment

pytestmark = pytest.mark.sample(2)

SNAPBOOT = ROOT / "target/release/snapboot"
PARTS = ("code", "lookups", "data", "gems")
BY_KIND = {"code": "code", "data": "data", "directory": "lookups"}
SEARCHES = ("load path 1", "did_you_mean")  # of kind memo; all else of that kind is about gems
PROGRAM = """
$:.unshift("#{__dir__}/lib")
require "one"
require_relative "lib/two"
load "three.rb"
autoload :Four, "four"
p Four
begin
  require "nowhere_at_all"
rescue LoadError => e
  puts e.message
end
require "yaml"
p YAML.load_file("#{__dir__}/data.yml")
p Gem::Specification.stubs.size
p $".grep(/^#{__dir__}/).size
"""


@pytest.fixture
def program(tmp_path):
    """A program that has something for each part."""
    (tmp_path / "lib").mkdir()
    for name in ("one", "two", "three", "four"):
        (tmp_path / f"lib/{name}.rb").write_text(f"puts :{name}; {name.capitalize()} = 1\n")
    (tmp_path / "data.yml").write_text("a: [1, 2]\n")
    (tmp_path / "main.rb").write_text(PROGRAM)
    for path in [*tmp_path.rglob("*"), tmp_path]:
        os.utime(path, (1, 1))
    return tmp_path


def parts_in(archive, cwd):
    """Which parts an archive has something of."""
    done = subprocess.run([SNAPBOOT, "archive", "list", "--json", archive], cwd=cwd, capture_output=True, text=True, check=True)
    entries = json.loads(done.stdout)["entries"]
    return {BY_KIND.get(entry["kind"]) or ("lookups" if entry["name"] in SEARCHES else "gems") for entry in entries}


def switched_off(parts):
    return {f"SNAPBOOT_ARCHIVE_{part.upper()}": "off" for part in parts}


@pytest.mark.parametrize("kind", KINDS[:2], ids=str)
def test_every_combination(kind, rubies, program):
    ruby = rubies(kind.name)
    plain = ruby.boot(program, ["main.rb"])
    switch, variables = archive_options(kind, program)
    archive = program / "boot.archive"
    possible = set(PARTS) if kind.back_end == "native" else set(PARTS) - {"code"}
    for number in range(len(PARTS) + 1):
        for off in itertools.combinations(PARTS, number):
            archive.unlink(missing_ok=True)
            for start in ("filling", "served"):
                boot = ruby.boot(program, [*switch, "main.rb"], **variables, **switched_off(off))
                assert (boot.status, boot.out, boot.err) == (plain.status, plain.out, plain.err), (off, start)
            found = parts_in(archive, program) if archive.exists() else set()
            assert found == possible - set(off), off


@pytest.mark.parametrize("kind", KINDS[:2], ids=str)
def test_what_is_there_is_not_used(kind, rubies, program):
    """With all parts off, an archive that has them serves nothing; a look-up would be counted."""
    ruby = rubies(kind.name)
    switch, variables = archive_options(kind, program)
    for _ in range(2):
        ruby.boot(program, [*switch, "main.rb"], **variables)
    counted = ruby.boot(program, [*switch, "main.rb"], **variables, SNAPBOOT_STATS="1").err
    assert not counted.startswith("snapboot: 0 hit"), counted
    counted = ruby.boot(program, [*switch, "main.rb"], **variables, **switched_off(PARTS), SNAPBOOT_STATS="1").err
    assert counted.startswith("snapboot: 0 hit, 0 miss, 0 stale, 0 revalidated;"), counted


@pytest.mark.parametrize("value", ["0", "off"])
def test_values(value, rubies, program):
    """`off` and `0` switch off; what is not known is named, and counts as not set."""
    ruby, kind = rubies("cruby"), KINDS[0]
    switch, variables = archive_options(kind, program)
    boot = ruby.boot(program, [*switch, "main.rb"], **variables, SNAPBOOT_ARCHIVE_DATA=value, SNAPBOOT_LOG="1")
    assert (boot.status, boot.err) == (0, "")
    assert parts_in(program / "boot.archive", program) == {"code", "lookups", "gems"}
    boot = ruby.boot(program, [*switch, "main.rb"], **variables, SNAPBOOT_ARCHIVE_DATA="no", SNAPBOOT_LOG="1")
    assert boot.err == "snapboot: SNAPBOOT_ARCHIVE_DATA was expected to be on or off, not no: it is ignored\n"
    assert parts_in(program / "boot.archive", program) == set(PARTS)


def test_run_and_build(program):
    """`snapboot run` hands the switches on; `snapboot archive build` leaves out what they say."""
    environ = {**environment(), "HOME": os.fspath(program / "home"), "SNAPBOOT_ARCHIVE": os.fspath(program / "boot.archive")}
    off = switched_off(["code", "gems"])
    for words in (["run", "--no-freeze", "--", "ruby", "main.rb"], ["archive", "build", "--", "ruby", "-Ilib", "main.rb"]):
        done = subprocess.run([SNAPBOOT, *words], cwd=program, env={**environ, **off}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert parts_in(program / "boot.archive", program) & {"code", "gems"} == set()
        assert "lookups" in parts_in(program / "boot.archive", program)
