"""Each kind of change of a program between two boots, one at a time; then many at random. Never anything that is no longer true."""

import collections
import os
import random
import shutil

import pytest
from common import support
from common.waiting import settle
from staleness import changes, programs

from . import boots

pytestmark = pytest.mark.sample(3)

STEPS = int(os.environ.get("SNAPBOOT_STEPS", "20"))


def rewrite(*names):
    """A change that writes other text of the same size into one of the program's files."""

    def rewritten(program, random):
        path = program.folder / random.choice(names)
        text = path.read_text()
        other = text.replace("aa", "bb") if "aa" in text else text.replace("bb", "aa")
        assert other != text, path
        path.write_text(other)
        return f"rewrite {path.name}"

    rewritten.__name__ = "rewrite_" + "_".join(name.rpartition("/")[2].partition(".")[0] for name in names)
    return rewritten


def rewrite_same_times(*names):
    """The same, in the same size and with the old times, as unpacking an archive may do."""
    change = rewrite(*names)

    def rewritten(program, random):
        paths = [program.folder / name for name in names]
        before = [changes.times_of(path) for path in paths]
        what = change(program, random)
        for path, times in zip(paths, before, strict=True):
            os.utime(path, ns=times)
        return what + " with its old times"

    rewritten.__name__ = change.__name__ + "_same_times"
    return rewritten


def directory_for_file(program, random):
    """A folder by the name of a source stands earlier on the load path, or goes away again."""
    path = program.folder / "early" / "first.rb"
    if path.is_dir():
        path.rmdir()
    elif not path.exists():
        path.mkdir(parents=True)
    return "a folder early/first.rb"


def link_for_file(program, random):
    """A symbolic link to a later source stands earlier on the load path, or goes away again."""
    path = program.folder / "early" / "second.rb"
    path.parent.mkdir(exist_ok=True)
    path.unlink() if path.is_symlink() else path.symlink_to("../late/second.rb")
    return "a link early/second.rb"


def link_for_folder(program, random):
    """The folder with the sources becomes a link to a copy of itself, which is a little different, or the other copy."""
    late, first, second = (program.folder / name for name in ("late", "late.1", "late.2"))
    if not late.is_symlink():
        os.rename(late, first)
        shutil.copytree(first, second)
        (second / "first.rb").write_text(changes.RUBY_MARK % "the other folder")
    new = program.folder / "late.new"
    new.symlink_to(random.choice([first.name, second.name]))
    os.replace(new, late)
    return f"late -> {os.readlink(late)}"


def shadow(program, random):
    """As changes.shadow, also where folders stand in the way."""
    for path in program.shadows:
        if path.is_dir():
            path.rmdir()
    return changes.shadow(program, random)


def deploy(program, random):
    """As changes.swap_folders; a folder that has become a link stays one."""
    state = random.getstate()
    if random.choice(program.sources).parent.is_symlink():
        return "nothing"
    random.setstate(state)
    return changes.swap_folders(program, random)


def folder_goes_or_comes(program, random):
    """An earlier folder of the load path goes away, or comes back."""
    early, gone = program.folder / "early", program.folder / "early.gone"
    if early.exists():
        shutil.rmtree(gone, ignore_errors=True)
        os.rename(early, gone)
        return "early goes away"
    os.rename(gone, early)
    return "early comes back"


def broken_source(program, random):
    """A syntax error, or the text as it was."""
    source = program.sources[0]
    kept = source.with_name(source.name + ".kept")
    if kept.exists():
        os.replace(kept, source)
        return f"mend {source.name}"
    shutil.copy2(source, kept)
    source.write_text(source.read_text() + "def (\n")
    return f"break {source.name}"


def gemfile(program, random):
    """The Gemfile wants another version. Most editors keep the size here, and the second."""
    version = random.choice(["1.0", "1.1", "2.0"])
    (program.folder / "Gemfile").write_text(f"source 'https://gem.invalid'\ngem 'tiny', '{version}'\n")
    if random.random() < 0.5:
        (program.folder / "Gemfile.lock").unlink(missing_ok=True)
    return f"Gemfile with tiny {version}"


def lock(program, random):
    """The lock file names another version than the Gemfile allows, or goes away."""
    path = program.folder / "Gemfile.lock"
    if not path.exists() or random.random() < 0.3:
        path.unlink(missing_ok=True)
        return "no lock"
    text = path.read_text()
    path.write_text(text.replace("tiny (1.0)", "tiny (1.1)") if "tiny (1.0)" in text else text.replace("tiny (1.1)", "tiny (1.0)"))
    return "another version in the lock"


def gemspec(program, random):
    """The gem wants another folder on the load path."""
    path = next((program.folder / "gems/specifications").glob("tiny-1.*.gemspec"), None)
    if path is None:
        return "no gem"
    folder = program.folder / f"gems/gems/{path.stem}/other"
    folder.mkdir(exist_ok=True)
    (folder / "tiny.rb").write_text("module Tiny; VERSION = 'aa other folder'; end\n")
    text = path.read_text()
    other = "; s.require_paths = ['other'] }"
    path.write_text(text.replace(other, " }") if other in text else text.replace(" }", other, 1) if text.count(" }") else text)
    return f"require_paths of {path.stem}"


def bundler_setting(program, random):
    """A group is left out, or is not."""
    config = program.folder / ".bundle/config"
    config.parent.mkdir(exist_ok=True)
    config.write_text(random.choice(['---\nBUNDLE_WITHOUT: "default"\n', "---\nBUNDLE_FROZEN: \"true\"\n", "---\n{}\n"]))
    return "bundle config"


LOAD_PATH = [directory_for_file, link_for_file, link_for_folder, folder_goes_or_comes, broken_source]
COMMON = [*(change for change in changes.COMMON if change not in (changes.swap_folders, changes.shadow)), deploy, shadow]
SMALL = [*COMMON, *(change for change in changes.SMALL if change not in (*changes.COMMON, changes.library))]
PROGRAMS = {
    "tiny": (boots.tiny, [*COMMON, *LOAD_PATH, rewrite("data.yml"), rewrite_same_times("data.yml")]),
    "ruby": (programs.small_ruby, [*SMALL, *LOAD_PATH, changes.gem]),
    "bundled": (boots.bundled, [changes.edit_same_size, shadow, deploy, changes.gem, gemfile, lock, gemspec, bundler_setting]),
}
# A boot takes a second or two.
SLOW = {
    "jekyll": (
        boots.jekyll,
        [
            rewrite("_config.yml"),
            rewrite_same_times("_data/values.yml"),
            rewrite("_data/more.json", "index.md"),
            changes.edit_same_size,
            changes.replace,
            changes.shadow,
            changes.touch,
        ],
    ),
    "rails": (
        boots.rails,
        [
            changes.edit_same_size,
            changes.edit,
            changes.replace,
            changes.touch,
            changes.shadow,
            rewrite_same_times("config/locales/en.yml"),
            rewrite("config/database.yml"),
            changes.swap_folders,
        ],
    ),
}
CASES = [
    pytest.param(name, make, change, id=f"{name}-{change.__name__}")
    for name, (make, all) in PROGRAMS.items()
    for change in all
]


def changed_and_compared(boots_of, change, state, walk):
    """One step: a change, and boots that must be right; the second one boots from what the first one stored."""
    walk.append(change(boots_of.program, state))
    if state.random() < 0.5:
        settle()
    boots_of.compared(", ".join(walk), times=2)


@pytest.mark.parametrize("name, make, change", CASES)
def test_a_boot_after_a_change_is_an_ordinary_one(tmp_path, name, make, change):
    state, walk = random.Random(f"{name} {change.__name__}"), []
    boots_of = boots.made(make, tmp_path).warm()
    for _ in range(2):  # what comes goes away the second time
        changed_and_compared(boots_of, change, state, walk)


@pytest.mark.parametrize("policy", ["content", "trust"])
def test_policies(tmp_path, policy):
    """Whatever the policy, an unchanged program boots right; only `trust` does not look."""
    boots_of = boots.made(boots.tiny, tmp_path, SNAPBOOT_ARCHIVE_POLICY=policy).warm()
    source = boots_of.program.folder / "late/first.rb"
    source.write_text("($marks ||= []) << 'bb first'\n")
    booted = boots_of.boot()
    assert ("bb first" in booted.out) == (policy == "content"), booted
    if policy == "content":
        boots.same(boots_of.ordinary(), booted, "an edit")


@pytest.mark.parametrize("name", SLOW)
def test_a_framework_after_each_change(tmp_path, name):
    make, kinds = SLOW[name]
    boots_of, walk = boots.made(make, tmp_path).warm(), []
    for change in support.sampled(kinds):
        changed_and_compared(boots_of, change, random.Random(f"{name} {change.__name__}"), walk)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_unchanged_is_used(tmp_path, name):
    """Without this the other tests could pass with an archive that is never used."""
    boots_of = boots.made(PROGRAMS[name][0], tmp_path).warm()
    for harmless in (changes.touch, changes.copy, changes.hard_link, changes.unrelated):
        what = harmless(boots_of.program, random.Random(1))
        settle()
        boots_of.compared(what)
        _, events = boots_of.counted()
        assert events["code hit"] and not events.get("code miss") and not events.get("code stale"), (what, events)


@pytest.mark.parametrize("name", PROGRAMS)
def test_random_changes(tmp_path, name):
    """A walk of SNAPBOOT_STEPS changes; the seed is printed, and SNAPBOOT_SEED repeats it."""
    state, seed = support.seeded()
    make, kinds = PROGRAMS[name]
    boots_of, walk = boots.made(make, tmp_path).warm(), [seed]
    events = collections.Counter()
    for step in range(1, STEPS + 1):
        changed_and_compared(boots_of, state.choice(kinds), state, walk)
        # How much there is to ask for depends on the changes: a program that they have broken loads little.
        events.update(boots_of.counted()[1])
        if step % 20 == 0 and step < STEPS:  # what has been changed for good piles up
            top = tmp_path / str(step)
            top.mkdir()
            boots_of, walk = boots.made(make, top).warm(), walk[:1]
    assert events["code hit"] >= events["code miss"] + events["code stale"], (seed, events)


OPTIONS = [
    {"RUBYOPT": "-W0"},
    {"RUBYOPT": "-w"},
    {"RUBYOPT": "--enable-frozen-string-literal"},
    {"RUBYOPT": "-d"},
    {"RUBYOPT": "-Ku"},
    {"RUBYOPT": "-rcoverage"},
    {"LANG": "C"},
    {},
]


def test_options_that_compile_otherwise(tmp_path):
    """Boots with other options share an archive, and none takes what another compiled."""
    boots_of = boots.made(boots.tiny, tmp_path)
    before = dict(boots_of.program.env)
    outputs = set()
    for _ in range(2):
        for options in OPTIONS:
            if options.get("RUBYOPT") == "-d":
                continue  # prints each exception, those of this library, too
            boots_of.program.env = {**before, **options}
            outputs.add(boots_of.compared(str(options), times=2).out)
    assert len(outputs) > 1, "the options should show"


COMPILE_OPTION = "RubyVM::InstructionSequence.compile_option = { %s }\n"


@pytest.mark.parametrize("option", ["frozen_string_literal: true", "inline_const_cache: false", "tailcall_optimization: true"])
def test_compile_options_set_by_the_program(tmp_path, option):
    boots_of = boots.made(boots.tiny, tmp_path).warm()
    main = boots_of.program.folder / "main.rb"
    text = main.read_text()
    for line in (COMPILE_OPTION % option, "", COMPILE_OPTION % option):
        main.write_text(line + text)
        boots_of.compared(line, times=2)


COVERAGE = """\
require "coverage"
Coverage.start
require "first"
require "second"
puts Coverage.result.select { |path, _| path.include?("/app/") }.inspect
"""


def test_coverage_is_measured(tmp_path):
    boots_of = boots.made(boots.tiny, tmp_path).warm()
    (boots_of.program.folder / "main.rb").write_text(COVERAGE)
    assert "first.rb" in boots_of.compared("coverage", times=2).out


TRACED = """\
lines = []
trace = TracePoint.new(:line, :call, :class) do |point|
  lines << [point.event, point.path[/app.*/], point.lineno] if point.path.include?("/app/")
end
trace.enable
require "first"
require "second"
require "later"
trace.disable
puts lines.inspect
"""


def test_a_trace_sees_the_same(tmp_path):
    boots_of = boots.made(boots.tiny, tmp_path).warm()
    (boots_of.program.folder / "main.rb").write_text(TRACED)
    assert ":class" in boots_of.compared("a trace", times=2).out


def test_an_application_that_moves_takes_its_archive_along(tmp_path):
    boots_of = boots.made(boots.tiny, tmp_path)
    program, archive = boots_of.program, boots_of.program.folder / "tmp/boot.archive"
    archive.parent.mkdir(mode=0o700)
    boots_of.archive = archive
    boots_of.warm()
    there = tmp_path / "there" / "app"
    shutil.copytree(program.folder, there, symlinks=True)
    shutil.rmtree(program.folder)
    moved = programs.Program(there, [support.RUBY, "--disable-gems", str(there / "main.rb")], [])
    moved.env["RUBYLIB"] = f"{there}/early:{there}/late"
    boots_of.program, boots_of.archive = moved, there / "tmp/boot.archive"
    boots_of.compared("the move")
    (there / "late/first.rb").write_text(changes.RUBY_MARK % "bb first")
    assert "bb first" in boots_of.compared("the move and an edit", times=2).out
