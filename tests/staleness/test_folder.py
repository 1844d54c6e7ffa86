"""The current directory, where a program has asked for it while it booted: renewed where it is only kept, or else an input."""

import os

import pytest
from common import support
from common.languages import PYTHON, RUBY, both, names

from .test_other_start import Program

pytestmark = pytest.mark.sample(20, whole=True)

# What a preload may do with the answer: for each language an expression, and whether a thaw in another folder can have it renewed.
KEPT = {
    "the answer": (PYTHON, "VALUE = os.getcwd()", True),
    "its absolute path": (PYTHON, "VALUE = os.path.abspath(os.getcwd())", True),
    "a path": (PYTHON, "import pathlib\nVALUE = pathlib.Path.cwd()", True),
    "bytes": (PYTHON, "VALUE = os.getcwdb()", True),
    "in a class": (PYTHON, "class A:\n    folder = os.getcwd()\nVALUE = A", True),
    "in an instance": (PYTHON, "class A:\n    def __init__(self): self.folder = os.getcwd()\nVALUE = A()", True),
    "in slots": (PYTHON, "class A:\n    __slots__ = 'folder'\n    def __init__(self): self.folder = os.getcwd()\nVALUE = A()", True),
    "in a list and a table": (PYTHON, "KEPT = os.getcwd()\nVALUE = [KEPT, {'a': KEPT}]", True),
    "in a table only": (PYTHON, "VALUE = [{'a': os.getcwd()}]", True),
    "in a tuple in a table of a class": (PYTHON, "class A:\n    folder = {'a': ('b', os.path.abspath('.'))}\nVALUE = A", True),
    "a key in a table of a class": (PYTHON, "class A:\n    folder = {'a': {os.getcwd(): 1}}\nVALUE = A", True),
    "in a tuple": (PYTHON, "KEPT = os.getcwd()\nVALUE = (KEPT, 1)", True),
    "in a tuple that others hold": (PYTHON, "VALUE = (os.getcwd(), 1)\nOTHERS = {VALUE}", True),
    "in a tuple in a tuple": (PYTHON, "KEPT = os.getcwd()\nVALUE = ((KEPT, 1), 2)", True),
    "a default": (PYTHON, "def VALUE(folder=os.getcwd()): return folder", True),
    "a path below it": (PYTHON, "KEPT = os.getcwd()\nVALUE = KEPT + '/x'", True),
    "a resolved path below it": (PYTHON, "import pathlib\nVALUE = pathlib.Path('src').resolve() / 'x'", True),
    "a part of a text": (PYTHON, "KEPT = os.getcwd()\nVALUE = 'in ' + KEPT", True),
    "what is above it": (PYTHON, "KEPT = os.getcwd()\nVALUE = os.path.dirname(KEPT)", False),
    "its last name": (PYTHON, "KEPT = os.getcwd()\nVALUE = os.path.basename(KEPT)", False),
    "its names": (PYTHON, "KEPT = os.getcwd()\nVALUE = os.listdir(KEPT)", False),
    "looked for above it": (PYTHON, "KEPT = os.getcwd()\nVALUE = os.path.exists(os.path.dirname(KEPT) + '/setting')", False),
    "asked by inspect": (PYTHON, "import inspect\nVALUE = len(inspect.stack()) > 1", True),
    "a key": (PYTHON, "KEPT = os.getcwd()\nVALUE = {KEPT: 1}", True),
    "a pattern": (PYTHON, "import re\nKEPT = os.getcwd()\nVALUE = re.compile(KEPT)", False),
    "decided by it": (PYTHON, "VALUE = len(os.getcwd())", False),
    "Ruby: the answer": (RUBY, "VALUE = Dir.pwd", True),
    "Ruby: in an instance": (RUBY, "class A; def initialize; @folder = Dir.getwd; end; end; VALUE = [A.new, Dir.pwd]", True),
    "Ruby: in a hash": (RUBY, "VALUE = { folder: Dir.pwd }", True),
    "Ruby: a path below it": (RUBY, "KEPT = Dir.pwd; VALUE = \"#{KEPT}/x\"", True),
    "Ruby: a part of a text": (RUBY, "KEPT = Dir.pwd; VALUE = \"in #{KEPT}\"", True),
    "Ruby: what is above it": (RUBY, "KEPT = Dir.pwd; VALUE = File.dirname(KEPT)", False),
    "Ruby: its last name": (RUBY, "KEPT = Dir.pwd; VALUE = File.basename(KEPT)", False),
    "Ruby: its last name as a symbol": (RUBY, "KEPT = Dir.pwd; VALUE = File.basename(KEPT).to_sym", False),
    "Ruby: its names": (RUBY, "KEPT = Dir.pwd; VALUE = Dir.children(KEPT)", False),
    "Ruby: looked for above it": (RUBY, "KEPT = Dir.pwd; VALUE = File.exist?(File.dirname(KEPT) + '/setting')", False),
    "Ruby: frozen": (RUBY, "VALUE = Dir.pwd.freeze", True),
    "Ruby: a pattern": (RUBY, "KEPT = Dir.pwd; VALUE = Regexp.new(KEPT)", False),
    "Ruby: decided by it": (RUBY, "VALUE = Dir.pwd.size", False),
}
SHOW = {
    PYTHON: "print(getattr(VALUE, '__defaults__', getattr(VALUE, 'folder', VALUE)))",
    RUBY: "puts VALUE.inspect.gsub(/0x\\h+/, '')",
}


class Case:
    """A preload outside of the folders, an image that was made in one of them, and another folder."""

    def __init__(self, language, tmp_path, source):
        library = tmp_path / "library"
        self.frozen, self.other = tmp_path / "one", tmp_path / "the_other"
        for folder in (library, self.frozen, self.other):
            folder.mkdir()
        before = "import os\n" if language is PYTHON else ""
        self.env, path = language.write(library, before + source)
        self.image = tmp_path / "x.img"
        preload = "boot" if language is PYTHON else str(path.with_suffix(""))
        self.result = support.freeze(self.image, [language.program], "--preload", preload, env=self.env, cwd=self.frozen)
        assert self.result.status == 0, self.result
        load = "from boot import *" if language is PYTHON else f"require {preload!r}"
        self.arguments = ["-c" if language is PYTHON else "-e", f"{load}\n{SHOW[language]}"]
        self.program = language.program

    def check(self, folder, thaws):
        """A start in that folder is as without an image; whether it thaws."""
        image, ordinary = (
            support.run([program, *self.arguments], env=self.env, cwd=folder) for program in (self.image, self.program)
        )
        assert (image.out, image.status) == (ordinary.out, ordinary.status)
        assert ("current directory" not in image.err) == thaws, image


@pytest.mark.parametrize("name", names(KEPT))
def test_what_is_only_kept_is_renewed(name, tmp_path):
    language, source, is_renewed = KEPT[name]
    case = Case(language, tmp_path, source)
    assert ("depends on the current directory" in case.result.out) != is_renewed, case.result
    case.check(case.frozen, thaws=True)
    case.check(case.other, thaws=is_renewed)


@pytest.mark.parametrize("name", ["getcwd", "getcwdb", "isatty", "get_terminal_size", "umask", "getppid", "fstat", "uname"])
def test_a_function_of_c_that_a_class_keeps_is_no_method_of_it(name, tmp_path):
    """As the pathlib of Python 3.10 keeps os.getcwd."""
    case = Case(PYTHON, tmp_path, f"class A:\n    function = os.{name}\n    name = function.__name__\nVALUE = A()")
    asked = {"isatty": "1", "umask": "18", "fstat": "0", "get_terminal_size": "1"}.get(name, "")
    show = f"try:\n    print(VALUE.name, type(VALUE.function({asked})))\nexcept OSError: print('no terminal')"
    case.arguments = ["-c", f"from boot import *\n{show}"]
    case.check(case.frozen, thaws=True)


@both
def test_who_keeps_where_something_lies_does_not_mean_the_current_directory(language, tmp_path):
    """A folder of the program that happens to be the current one."""
    root = {PYTHON: "os.path.dirname(os.path.dirname(os.path.abspath(__file__)))", RUBY: "File.expand_path('..', __dir__)"}
    asked = {PYTHON: "ASKED = os.getcwd()", RUBY: "ASKED = Dir.pwd"}
    case = Case(language, tmp_path, f"VALUE = {root[language]}\n{asked[language]}")
    preload = "boot" if language is PYTHON else str(tmp_path / "library/boot")
    again = support.freeze(case.image, [language.program], "--preload", preload, env=case.env, cwd=tmp_path)
    assert "depends on the current directory" not in again.out, again
    case.check(case.other, thaws=True)


@both
def test_what_is_looked_for_below_it_is_compared_where_the_image_starts(language, tmp_path):
    source = {
        PYTHON: "VALUE = os.getcwd()\nFOUND = os.path.exists(os.path.join(VALUE, 'setting'))",
        RUBY: "VALUE = Dir.pwd\nFOUND = File.exist?(File.join(VALUE, 'setting'))",
    }
    case = Case(language, tmp_path, source[language])
    assert "depends on" not in case.result.out, case.result
    case.check(case.other, thaws=True)
    (case.other / "setting").touch()
    result = support.run([case.image, *case.arguments], env=case.env, cwd=case.other)
    assert "setting" in result.err and "ordinary way" in result.err, result


@both
def test_a_directory_that_is_gone_leads_to_the_ordinary_start(language, tmp_path):
    case = Case(language, tmp_path, "VALUE = os.getcwd()" if language is PYTHON else "VALUE = Dir.pwd")
    words = [str(case.image), *case.arguments]
    gone = tmp_path / "gone"
    gone.mkdir()
    result = support.run(["sh", "-c", 'cd "$0" && rmdir "$0" && exec "$@"', str(gone), *words], env=case.env)
    assert "current directory" in result.err and "ordinary way" in result.err, result


def test_temporary_files_do_not_bind_an_image(tmp_path):
    """`tempfile` asks for the directory as the last of its candidates."""
    case = Case(PYTHON, tmp_path, "import tempfile\nVALUE = tempfile.gettempdir()")
    assert "depends on" not in case.result.out, case.result
    case.check(case.other, thaws=True)


def test_who_looks_above_the_current_directory_is_bound_to_that_alone(tmp_path):
    path = os.environ["PATH"]
    above = "[os.path.exists(f'{folder}/.no-such') for folder in pathlib.Path.cwd().parents]"
    program = Program(tmp_path, f"VALUE = any({above}), shutil.which('no-such-thing')", {"PATH": path})
    program.check(True, PATH=f"{path}:/nowhere")
    program.start = tmp_path.parent
    program.check(False)
    why = support.run([support.SNAPBOOT, "inspect", "--why", program.image], env=program.env, cwd=program.start).out
    assert ".no-such above it, which it uses, depends on it" in why, why
