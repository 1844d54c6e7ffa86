"""A file of which the boot has asked only whether it is there, and of what kind, may be edited: an autoloader asks so of all it finds."""

import pytest
from common import support

from .one_script import Program

pytestmark = [pytest.mark.sample(4, whole=True), support.needs_ruby]

# By its path, as an autoloader does, and by a name relative to the start directory.
NAMES = ["absolute", "relative"]


@pytest.fixture
def ruby(tmp_path):
    program = Program(tmp_path, support.RUBY, "main.rb", RUBYLIB=f"{tmp_path}/lib")
    program.write("main.rb", "require \"helper\"\np HELPER, File.method(:file?).source_location\n")
    program.asked = program.write("data/asked.txt", "one")
    return program


def named(program, name):
    return str(program.asked) if name == "absolute" else "data/asked.txt"


def frozen_that_asks(program, code, name):
    program.write("lib/helper.rb", f"PATH = {named(program, name)!r}\nHELPER = [{code}]\n")
    return program.frozen("--preload", "helper")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("question", ["File.file?(PATH)", "FileTest.exist?(PATH)", "File.directory?(PATH)", "File.ftype(PATH)"])
def test_its_content_does_not_count(ruby, question, name):
    frozen_that_asks(ruby, question, name)
    before = ruby.run().out
    ruby.asked.write_text("two, longer")
    assert ruby.is_fresh()
    # The methods are Ruby's own again.
    assert ruby.run().out == before and before.endswith("]\nnil\n")


@pytest.mark.parametrize("name", NAMES)
def test_its_kind_counts(ruby, name):
    frozen_that_asks(ruby, "File.file?(PATH)", name)
    asked = ruby.asked
    asked.unlink()
    assert ruby.is_stale_for(named(ruby, name))
    asked.mkdir()
    assert ruby.is_stale_for(named(ruby, name))
    asked.rmdir()
    asked.write_text("again")
    assert ruby.is_fresh()


@pytest.mark.parametrize("name", NAMES)
def test_a_link_that_was_not_asked_for_counts_by_where_it_leads(ruby, name):
    target = ruby.write("data/target.txt", "one")
    ruby.asked.unlink()
    ruby.asked.symlink_to("target.txt")
    frozen_that_asks(ruby, "File.file?(PATH)", name)
    target.unlink()
    assert ruby.run().fell_back and ruby.run().out.startswith("[false]")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "look",
    [
        "File.size(PATH)",
        "File.mtime(PATH)",
        "File.read(PATH)",
        "File.stat(PATH).size",
        "File.size?(PATH)",
        "File.zero?(PATH)",
        "File.lstat(PATH).size",
        "Dir.glob(PATH, File::FNM_DOTMATCH).map { File.size(_1) }",
        "File.identical?(PATH, __FILE__)",
        "File.new(PATH).size",
        "File.executable?(PATH)",
        "`cat #{PATH}`",
    ],
)
def test_its_content_counts_once_the_boot_has_looked_more_closely(ruby, look, name):
    frozen_that_asks(ruby, f"File.file?(PATH), ({look}; File.exist?(PATH))", name)
    ruby.asked.write_text("two, longer")
    assert ruby.is_stale_for(named(ruby, name))


def test_an_object_that_names_a_file_may_look_at_others(ruby):
    """Ruby calls its method in the middle of the question."""
    inside = "Class.new { def to_path = (File.size(PATH); __FILE__) }.new"
    frozen_that_asks(ruby, f"File.file?(PATH), File.file?({inside})", "absolute")
    ruby.asked.write_text("two, longer")
    assert ruby.is_stale_for(ruby.asked)
