"""After a thaw, what the image lacks comes from the boot archive: programs do what they do in an ordinary start, and load less slowly."""

import re

import pytest
from common.languages import PYTHON, both

from store.stores import Store

pytestmark = pytest.mark.sample(6, whole=True)

# Files that each start loads, from a folder that the program adds.
MANY = 12
# Loads them one by one, and shows what each knows of itself. What the arguments say is done before.
PROGRAMS = {
    "python": """import os, sys
HERE = os.path.dirname(os.path.abspath(__file__))
for word in sys.argv[1:]:
    exec(word)
sys.path.append(HERE + "/late")
for number in range(%d):
    print(__import__(f"late{number}").VALUE)
print(sorted(name for name in sys.modules if name.startswith("late")), flush=True)
if os.fork() == 0:
    import forked
    print(forked.VALUE, flush=True)
    os._exit(0)
os.wait()
print(".archive\\n" in open("/proc/self/maps").read())
""",
    "ruby": """ARGV.each { |word| eval(word) }
$LOAD_PATH << "#{__dir__}/late"
%d.times { |number| require "late#{number}"; puts VALUES.last }
puts $LOADED_FEATURES.grep(%%r{/late/\\w+\\.rb}).map { |path| File.basename(path) }
STDOUT.flush
Process.wait(fork { require "forked"; puts VALUES.last; STDOUT.flush; exit! })
puts File.read("/proc/self/maps").include?(".archive\\n")
""",
}
FILES = {
    "python": "import sys, inspect\nVALUE = (__name__, __file__, __spec__.origin, __loader__.__class__.__name__, %s)\n"
    "VALUE += ([frame.f_code.co_name for frame in [sys._getframe()]], inspect.getsource(sys.modules[__name__])[:20])\n",
    "ruby": "VALUES ||= []\nVALUES << [__FILE__, __dir__, __method__, %s, "
    "caller.grep(/late|app/).grep_v(/require/), caller.last].inspect\n",
}
# What is done before anything is loaded.
BEFORE = {
    "python": {
        "": "",
        "another folder": "os.chdir('/')",
        "another finder first": "sys.meta_path.insert(0, type('Own', (), {'find_spec': staticmethod(lambda *_: None)}))",
        "no finder": "sys.meta_path[:] = [it for it in sys.meta_path if not hasattr(it, 'is_of_archive')]",
        "another import": "import builtins; own = builtins.__import__; builtins.__import__ = lambda *a, **k: own(*a, **k)",
        "caches": "sys.path_importer_cache.clear()",
    },
    "ruby": {
        "": "",
        "another folder": "Dir.chdir('/')",
        "another name": "$0 = 'another'",
        "another require": "module Kernel; alias own require; def require(name) = own(name); end",
        "a provider of code": "def (RubyVM::InstructionSequence).load_iseq(_) = nil",
        "a tracer": "TracePoint.new(:script_compiled) {}.enable",
        "warnings": "$VERBOSE = true",
        "a ractor": "$VERBOSE = nil; Ractor.new { 1 }.take",
    },
}


class Program(Store):
    """A store, and a program in it whose starts load what no image has."""

    def __init__(self, folder, language):
        super().__init__(folder, XDG_CACHE_HOME=str(folder / "cache"))
        (folder / "late").mkdir()
        self.language, self.words = language, [language.program, "app" + language.ending]
        (folder / self.words[1]).write_text(PROGRAMS[language.name] % MANY)
        for name in [f"late{number}" for number in range(MANY)] + ["forked"]:
            self.late(name, repr(name))

    def late(self, name, value):
        (self.folder / "late" / (name + self.language.ending)).write_text(FILES[self.language.name] % value)

    def frozen(self):
        """Has an image made, which learns nothing."""
        self.run(*self.words)
        (row,) = self.wait()
        assert row["state"] == "fresh", row
        (self.folder / row["path"]).with_name("profile").mkdir()
        return self

    def plain(self, *arguments):
        """What an ordinary start prints."""
        result = self.run(*self.words, *arguments, options=["--no-freeze"], env={"SNAPBOOT_ARCHIVE": "off"}, log=False)
        assert result.status == 0, result
        return result

    def has_thawed(self, times):
        (row,) = self.list()
        assert (row["thawed"], row["fallen_back"]) == (times, 0), row

    def thawed(self, *arguments, **variables):
        """A thawed start, and how many answers of the archive it had; None: it was not open."""
        result = self.run(*self.words, *arguments, env={"SNAPBOOT_STATS": "1", **variables}, log=False)
        told = re.search(r"^snapboot: (\d+) hit.*\n", result.err, re.MULTILINE)
        result.err = result.err.replace(told[0], "") if told else result.err
        return result, int(told[1]) if told else None


def said(result):
    """What a start has printed but for its last line, which tells whether there was an archive."""
    return result.out.splitlines()[:-1]


@both
def test_what_an_image_lacks_comes_from_the_archive(tmp_path, language):
    program = Program(tmp_path, language).frozen()
    plain = program.plain()
    for number in (1, 2):
        result, hits = program.thawed()
        assert (result.status, result.err, said(result)) == (0, "", said(plain)), (result, plain)
        # Those that come before it is open do not.
        assert hits is not None and (number == 1 or hits >= MANY - 3), hits
        assert result.out.lower().endswith("true\n" if number == 2 else "false\n"), "the archive is mapped where there is one"
    program.late("late9", "'changed'")
    assert "changed" in program.thawed()[0].out
    result, hits = program.thawed(SNAPBOOT_ARCHIVE="off")
    assert (hits, result.err) == (None, "") and result.out.endswith("alse\n"), result
    program.has_thawed(4)


@both
def test_programs_that_change_what_loads(tmp_path, language):
    program = Program(tmp_path, language).frozen()
    for what, before in BEFORE[language.name].items():
        plain = program.plain(before)
        for _ in (1, 2):
            result, _ = program.thawed(before)
            assert (result.status, result.err, said(result)) == (0, plain.err, said(plain)), (what, result, plain)
    program.has_thawed(2 * len(BEFORE[language.name]))


@both
def test_a_thaw_that_loads_nothing_opens_no_archive(tmp_path, language):
    program = Program(tmp_path, language)
    source = {
        "python": "print('libsnapboot_' in open('/proc/self/maps').read())\n",
        "ruby": "puts File.read('/proc/self/maps').include?('libsnapboot_')\n",
    }
    (tmp_path / program.words[1]).write_text(source[language.name])
    program.frozen()
    result, hits = program.thawed()
    assert (result.out.strip().lower(), result.err, hits) == ("false", "", None), result
    assert not (tmp_path / "cache/snapboot/archives").exists()


# An installed tool, by what stands in it, that does more in a thawed process than in an ordinary one.
TOOL = """#!%s
# sys.argv[0] .exe sys.exit(
import os, sys, json
if sys.argv[0].endswith("tool") and os.readlink("/proc/self/exe").endswith(".img"):
    sum(range(%d))
print("tool 1.0")
"""


def test_an_image_that_gains_nothing_is_dropped_until_the_program_changes(tmp_path):
    store, tool = Store(tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache")), tmp_path / "tool"

    def write(number):
        tool.write_text(TOOL % (PYTHON.program, number))
        tool.chmod(0o755)

    write(30_000_000)
    store.run("./tool", "--version")
    (row,) = store.wait()
    assert row["state"] == "vain" and not list(tmp_path.glob("store/*/*/*.img")), row
    assert "with the boot archive alone" in row["why"][0], row
    result = store.run("./tool", "--version")
    assert "is no faster than the boot archive" in result.err and result.out == "tool 1.0\n", result
    assert not store.builders()
    write(0)
    store.run("./tool", "--version")
    (row,) = store.wait()
    assert row["state"] == "fresh", row
