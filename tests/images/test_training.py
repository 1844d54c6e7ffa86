"""What training runs show is in the image, unless it belongs to a start; and whatever they show, an image does what the command does."""

import stat

import pytest
from common import support

from . import training

pytestmark = pytest.mark.sample(12, whole=True)

# A program that loads everything late.
PROGRAM = """import sys

def main():
    for name in sys.argv[1:]:
        module = __import__(name)
        print(name, getattr(module, "VALUE", None))

if __name__ == "__main__":
    sys.exit(main())
"""


class Program(training.Program):
    """A program in a folder, with modules beside it."""

    def __init__(self, folder, source=PROGRAM):
        super().__init__(folder, support.PYTHON, "app.py", source)

    def module(self, name, source):
        path = self.folder / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)

    def starts_alike(self, *arguments, **variables):
        """Starts image and command. Returns what both print."""
        thawed, _ = self.start(arguments, variables, self.folder, "app.py")
        return thawed.out


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


def test_a_late_import_is_in_the_image(program):
    program.module("late", "import earlier\nVALUE = earlier.VALUE + 1\n")
    program.module("earlier", "import os\nVALUE = 1\nLOADED_BY = os.getpid()\n")
    said = program.freeze("late")
    assert "learnt 2 modules from training runs\n" in said.out
    (program.folder / "app.py").write_text(PROGRAM + "# another one\n")
    program.freeze("late")
    assert program.starts_alike("late") == "late 2\n"
    # Both are its inputs now.
    program.module("earlier", "VALUE = 5\n")
    changed = support.run([program.image, "late"], cwd=program.folder)
    assert changed.fell_back
    assert changed.out == "late 6\n"


def test_a_replaced_function_of_which_a_recipe_says_that_nobody_notices(program):
    """As typing_extensions replaces it (recipes/typing_extensions). Any other counts."""
    source = "import typing\ntyping.{name} = lambda *given: given\nVALUE = 1\n"
    program.module("harmless", source.format(name="_check_generic"))
    program.module("other", source.format(name="get_type_hints"))
    program.module("user", "import harmless\nVALUE = 2\n")
    said = program.freeze("user", "other")
    assert "; 1 more must be left to each start:\n  other changes typing.get_type_hints" in said.out, said
    assert program.starts_alike("user", "other") == "user 2\nother 1\n"


def test_runs_add_up(program):
    program.module("one", "VALUE = 1\n")
    program.module("two", "VALUE = 2\n")
    assert "learnt 2 modules" in program.freeze("one", "two").out
    assert program.starts_alike("two", "one") == "two 2\none 1\n"


LEFT = {
    "import sys\nVALUE = sys.argv[1:]\nCOUNT = len(VALUE)": "reads sys.argv",
    "import os\nVALUE = os.getcwd()": "reads the current directory",
    "import sys\nVALUE = sys.stdout.isatty()": "reads what its terminal is",
    "import os\nVALUE = len(dict(os.environ)) > 0": "reads the whole environment",
    "import os\nVALUE = os.environ.get('COLUMNS')": "reads the variable COLUMNS",
    "import os\nos.environ['NEW'] = '1'": "changes variables of the environment",
    "import sys\nsys.path.append('/nowhere')": "changes sys.path",
    "import signal\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)": "changes a signal handler",
    "import warnings\nwarnings.simplefilter('ignore')": "changes the filters of warnings",
    "import logging\nlogging.basicConfig()": "changes the root logger",
    "import socket\nsocket.create_connection = len": "changes socket.create_connection",
    "import os\nVALUE = os.fstat(0).st_size < 0": "reads what standard input is",
    "import os\nos.close(0)": "changes a standard stream",
    "import sys\nsys.stdin.close()": "changes a standard stream",
    "import tempfile\nVALUE = len(tempfile.mkdtemp()) > 0": "makes a temporary file or directory",
    "import tempfile\nwith tempfile.NamedTemporaryFile() as file:\n    VALUE = 1\nKEPT = {'of': (file.name,)}\nfile = None":
        "makes a temporary file or directory",
    "import tempfile\nVALUE = tempfile.TemporaryFile().close() is None\nKEPT = tempfile.TemporaryFile()":
        "makes a temporary file or directory",
    "import tempfile\nwith tempfile.TemporaryDirectory() as path:\n    KEPT = path[-8:].encode()\npath, VALUE = '', 1":
        "makes a temporary file or directory",
    "import os\nVALUE = len(os.listdir('/tmp')) > 0": "lists /tmp",
    "open('made', 'w').close()": "opens made for writing",
    "import os\nVALUE = len(os.popen('pwd').read())": "starts another process",
    "import subprocess\nVALUE = subprocess.run(['true']).returncode": "starts another process",
    "import os\nVALUE = os.system('true')": "starts another process",
    "print('loaded')": "prints",
    "import warnings\nwarnings.warn('soon gone')": "prints",
    "import time\nVALUE = None\nBEGUN = time.time()": "keeps the time of its import",
}


@pytest.mark.parametrize("source", LEFT, ids=LEFT.values())
def test_what_belongs_to_a_start_is_left_to_it_and_named(program, source):
    program.module("left", source + "\n")
    program.module("imports_it", "import left\nVALUE = 3\n")
    program.module("harmless", "VALUE = 4\n")
    variables = {"COLUMNS": "99"}
    result = program.freeze("imports_it harmless", "harmless", **variables)
    said = result.out
    assert f"  left {LEFT[source]}" in said, result
    assert "will hardly ever be used" not in result.err, "what a trial lists is no input"
    assert "; 2 more must be left to each start:" in said
    assert "imports_it 3\n" in program.starts_alike("harmless", "imports_it", **variables)
    # In a start that never loads it, nothing of it is to be seen.
    assert program.starts_alike("harmless", COLUMNS="98") == "harmless 4\n"


# Ways in which a module reads a file of the directory in which the program is started, if it is there.
READS_HERE = {
    "by open": "open('settings').read()",
    "by pathlib": "__import__('pathlib').Path('settings').read_text()",
    "by a descriptor": "os.read(os.open(b'./settings'[2:], os.O_RDONLY), 9).decode()",
    "by a parser": "__import__('fileinput').input('settings').readline()",
}


@pytest.mark.parametrize("read", READS_HERE.values(), ids=READS_HERE)
def test_a_tool_that_reads_where_it_is_started(tmp_path, read):
    (tmp_path / "tool").mkdir()
    program = Program(tmp_path / "tool")
    program.module("left", f"import os\nVALUE = {read} if os.path.exists('settings') else None\n")
    program.module("harmless", "VALUE = 4\n")
    training.a_tool_that_reads_where_it_is_started(program, tmp_path / "starts", "left", "left")


# Sets attributes before it imports what does.
ATTRIBUTES = """import builtins, config, sys

config.handler = builtins.handler = handler = None

def main():
    import late
    print(config.handler, builtins.handler, handler, len(sys.argv))

if __name__ == "__main__":
    main()
"""
SETS_ATTRIBUTES = {
    "import config\nconfig.handler = 'late'\n": "sets config.handler",
    "def install():\n    import config\n    config.handler = 'late'\ninstall()\n": "sets config.handler",
    "import config\nsetattr(config, 'handler', 'late')\n": "sets config.handler",
    "import builtins\nbuiltins.handler = 'late'\n": "sets builtins.handler",
    "import __main__\n__main__.handler = 'late'\n": "sets __main__.handler",
    "import sys\nsys.modules['config'] = sys\n": "sets sys.modules.config",
}


@pytest.mark.parametrize("source", SETS_ATTRIBUTES, ids=range(len(SETS_ATTRIBUTES)))
def test_a_module_that_sets_what_the_script_sets_is_left_to_each_start(tmp_path, source):
    program = Program(tmp_path, ATTRIBUTES)
    program.module("config", "handler = 'none'\n")
    program.module("late", source)
    assert f"  late {SETS_ATTRIBUTES[source]}" in program.freeze("", "").out
    program.starts_alike()


def test_a_module_that_another_sets_is_left_to_each_start_unless_all_have_it(tmp_path):
    source = PROGRAM.replace("import sys", "import sys\nimport config, early")
    program = Program(tmp_path, source)
    program.module("config", "handler = VALUE = 1\n")
    program.module("early", "import config\ndef choose():\n    config.handler = 2\n")
    program.module("late", "import config, lately.part\nconfig.handler = 3\nlately.part.other = 4\n")
    program.module("lately.part", "import config\nVALUE = config.handler\n")
    program.module("lately.__init__", "")
    for module, left in (("def choose(): pass\n", False), ("import config\ndef choose():\n    config.handler = 2\n", True)):
        program.module("early", module)
        assert ("late sets config.handler" in program.freeze("late", "late config").out) == left
        program.starts_alike("late", "config")
    program.module("early", "")
    assert "late sets config.handler" in program.freeze("late", "config").out


def test_what_the_freeze_itself_puts_in_the_place_of_a_function_is_set_by_nobody(program):
    program.module("harmless", "import platform\nVALUE = 4\n")
    program.module("late", "import os, platform\nVALUE = os.uname().machine and platform.system()\n")
    assert "left to each start" not in program.freeze("harmless", "harmless late").out
    program.starts_alike("harmless", "late")


def test_where_temporary_files_would_go_may_be_known_early(program):
    program.module("late", "import tempfile\nVALUE = tempfile.gettempdir()\n")
    assert "must be left" not in program.freeze("late").out
    assert program.starts_alike("late") == "late /tmp\n"


GONE_AGAIN = """import os, tempfile


def works(folder):
    with open(os.path.join(folder, "a"), "w") as made, tempfile.NamedTemporaryFile(dir=folder) as other:
        return made.name != other.name


with tempfile.TemporaryDirectory() as folder:
    VALUE = works(folder)
del folder
"""


def test_a_temporary_file_of_which_nothing_is_left_is_no_reason_to_leave_its_maker(program):
    program.module("late", GONE_AGAIN)
    assert "must be left" not in program.freeze("late").out
    assert program.starts_alike("late") == "late True\n"


def test_where_a_library_is_may_be_known_early(program):
    program.module("late", "from ctypes.util import find_library\nVALUE = find_library('c')\n")
    assert "must be left" not in program.freeze("late").out
    assert program.starts_alike("late") == "late libc.so.6\n"


def test_a_read_of_which_a_library_keeps_nothing_is_no_reason_to_leave_who_calls_it(program):
    program.module("late", "import sysconfig\nVALUE = sysconfig.get_platform()\n")
    assert "learnt 2 modules" in program.freeze("late").out  # sysconfig asks for the name of the host, among others
    assert program.starts_alike("late").startswith("late linux")


def test_a_reader_of_the_environment_of_which_is_known_what_it_wants_is_loaded_early(program):
    program.module("tqdm.utils", "import os\nVALUE = [name for name, _ in os.environ.items() if name.startswith('TQDM_')]\n")
    program.module("late", "import tqdm.utils\nVALUE = tqdm.utils.VALUE\n")
    assert "learnt 2 modules from" in program.freeze("late").out
    assert program.starts_alike("late") == program.starts_alike("late", OTHER="1") == "late []\n"
    other = support.run([program.image, "late"], env=support.environment(TQDM_ASCII="1"), cwd=program.folder)
    assert (other.fell_back, other.out) == (True, "late ['TQDM_ASCII']\n")


def test_a_guarded_import_of_what_is_left_is_no_other_program(program):
    program.module("left", "print('loaded')\nVALUE = 1\n")
    program.module("guarded", "try:\n    from left import VALUE\nexcept ImportError:\n    VALUE = 0\n")
    program.module("careless", "try:\n    from left import VALUE\nexcept:\n    VALUE = 0\n")
    program.freeze("guarded careless")
    assert program.starts_alike("guarded", "careless") == "loaded\nguarded 1\ncareless 1\n"


def test_what_the_program_sets_before_it_loads_something(tmp_path):
    source = "import os\ndef main():\n    os.environ['MODE'] = 'fast'\n    import late\n    print(late.MODE)\nmain()\n"
    program = Program(tmp_path, source)
    program.module("late", "import os\nMODE = os.environ.get('MODE')\n")
    assert "late reads the variable MODE" in program.freeze("").out
    assert program.starts_alike() == "fast\n"


def test_a_variable_that_modules_set_themselves(program):
    program.module("sets", "import os\nos.environ.get('MODE')\nos.environ['MODE'] = 'fast'\nimport late\nVALUE = late.VALUE\n")
    program.module("late", "import os\nVALUE = os.environ['MODE']\n")
    assert "must be left" not in program.freeze("sets").out
    assert program.starts_alike("sets") == "sets fast\n"
    # With a run that does not load it, nobody knows whether it is set.
    assert "sets changes variables of the environment" in program.freeze("sets", "").out
    assert program.starts_alike("sets") == "sets fast\n"


def test_a_module_of_the_same_name_elsewhere_is_left(tmp_path):
    source = "import sys\ndef main():\n    sys.path.insert(0, 'other')\n    import late\n    print(late.VALUE)\nmain()\n"
    program = Program(tmp_path, source)
    program.module("late", "VALUE = 'beside the program'\n")
    program.module("other.late", "VALUE = 'other'\n")
    assert "late is found in another place" in program.freeze("").out
    assert program.starts_alike() == "other\n"


def test_a_module_that_ends_the_process_in_its_import(program):
    program.module("ends", "import os, sys\nif not hasattr(sys.modules['__main__'], 'main'):\n    os._exit(3)\nVALUE = 1\n")
    program.module("harmless", "VALUE = 4\n")
    said = program.freeze("ends harmless").out
    assert "  ends its import ends the process" in said or "  ends reads __main__" in said
    assert program.starts_alike("ends", "harmless") == "ends 1\nharmless 4\n"


def test_an_image_that_prints_something_else_is_made_without_what_was_learnt(tmp_path):
    source = "import sys\ndef main():\n    print('late' in sys.modules)\n    import late\nmain()\n"
    program = Program(tmp_path, source)
    program.module("late", "")
    said = program.freeze("")
    assert 'started from the image, "" printed "True" where an ordinary start prints "False"' in said.err
    assert "learnt" not in said.out
    assert program.starts_alike() == "False\n"


def test_what_is_not_the_same_twice_proves_nothing(tmp_path):
    program = Program(tmp_path, "import random\ndef main():\n    import late\n    print(random.random())\nmain()\n")
    program.module("late", "")
    said = program.freeze("")
    assert "learnt 1 module from" in said.out
    assert "started from the image" not in said.err


BY_CHANCE = """import os, pathlib
def main():
    import late
    runs = pathlib.Path(__file__).with_name("runs")
    if os.readlink("/proc/self/exe").endswith(".img"):
        return print("b, a")
    with runs.open("a") as file:
        file.write("x")
    print("a, b" if len(runs.read_text()) < 3 else "b, a")
main()
"""


def test_what_two_ordinary_runs_have_alike_by_chance_proves_nothing(tmp_path):
    # As an order that follows from the hash seed, which one image always has.
    program = Program(tmp_path, BY_CHANCE)
    program.module("late", "")
    said = program.freeze("")
    assert "learnt 1 module from" in said.out
    assert "started from the image" not in said.err


def test_a_refusal_of_what_was_learnt_is_none_of_the_program(program):
    # Only the freezer sees this.
    program.module("late", "VALUE = 2\n" + support.MAPPED_MEMFD)
    said = program.freeze("late")
    assert "with it the program cannot be frozen" in said.err
    assert program.starts_alike("late") == "late 2\n"


def test_what_fails_in_the_boot_alone_is_none_of_the_program(program):
    # Other than the child that tries it, the boot has its own output; other than an ordinary start, it finds descriptor 50 taken.
    boots = "os.path.exists('/proc/self/fd/50') and 'rehearsal' not in os.readlink('/proc/self/fd/1')"
    program.module("late", f"import os\nVALUE = 2\nif {boots}:\n    raise RuntimeError('not here')\n")
    said = program.freeze("late")
    why = "cannot freeze: the program failed while it booted (exit status 1; its output stands above)"
    assert f"with it the freeze failed: {why}" in said.err
    assert program.starts_alike("late") == "late 2\n"


def test_a_run_that_tells_nothing_is_named(program):
    program.module("kills", "import os\nos._exit(0)\n")
    said = program.freeze("kills")
    assert 'nothing was learnt from the training run "kills": it ended without its exit handlers' in said.err


def test_a_script_that_nobody_has_generated_is_never_run_unasked(program):
    (program.folder / "app.py").write_text("open('ran', 'a').write('x')\n")
    program.freeze()
    assert not (program.folder / "ran").exists()


GENERATED = """#!{python}
import re
import sys
from tool import main
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(main())
"""


def test_a_console_script_is_trained_with_version_and_help(program):
    program.module("tool", "import sys\ndef main():\n    import late\n    open('ran', 'a').write(sys.argv[-1] + '\\n')\n")
    program.module("late", "VALUE = 1\n")
    script = program.folder / "tool"
    script.write_text(GENERATED.format(python=support.PYTHON))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    ran = program.folder / "ran"
    result = support.freeze(program.image, ["./tool"], cwd=program.folder)
    assert "learnt 1 module " in result.out, result
    # Ordinarily, and from the image.
    assert ran.read_text().split() == ["--version", "--help"] * 2
    ran.unlink()
    result = support.freeze(program.image, ["./tool"], "--no-train", cwd=program.folder)
    assert "learnt" not in result.out, result
    assert not ran.exists()


def test_arguments_are_taken_apart_as_a_shell_does(program):
    (program.folder / "app.py").write_text("import sys\nopen('ran', 'a').write(repr(sys.argv[1:]))\n")
    program.freeze("-x 'a b' \"c\"")
    assert (program.folder / "ran").read_text().startswith("['-x', 'a b', 'c']")
    result = support.freeze(program.image, [support.PYTHON, "app.py"], "--train", "'a", cwd=program.folder)
    assert result.status == 2
    assert "has an opening quote without its end" in result.err


def test_a_parser_of_arguments_that_a_module_makes_asks_for_no_terminal(program):
    # Each add_argument formats the option's help once, for nothing.
    parser = "import argparse\nPARSER = argparse.ArgumentParser()\nPARSER.add_argument('--x', help='some')\nVALUE = 1\n"
    program.module("late", parser)
    said = program.freeze("late", COLUMNS="99")
    assert "must be left" not in said.out
    assert "terminal" not in said.out
    assert program.starts_alike("late", COLUMNS="33") == "late 1\n"
    program.module("formats", parser + "VALUE = len(PARSER.format_help())\n")
    assert "formats reads the size of its terminal" in program.freeze("formats", COLUMNS="99").out


WRITER = """import sys

def faults():
    with open("/proc/self/stat") as file:
        return int(file.read().rpartition(")")[2].split()[7])

def memory():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Anonymous:"))

def main():
    import data
    faults()
    size, before = memory(), faults()
    if sys.argv[1] != "idle":
        for thing in data.THINGS:
            thing[0] = None
    print(faults() - before, size, file=sys.stderr)

main()
"""


def writer(folder):
    (folder / "data.py").write_text("THINGS = [[n] for n in range(20000)]\n")
    return training.Program(folder, support.PYTHON, "app.py", WRITER)


def test_what_a_run_writes_a_start_like_it_has_at_once(tmp_path):
    training.pages_come_with_the_start(writer(tmp_path))


def test_pages_count_in_an_image_that_checks_them_and_counts_its_thaws(tmp_path):
    training.pages_come_with_the_start(writer(tmp_path), "--check-pages", "--max-thaws", "50", "--variants", "2")


# Compiles regular expressions, or says which ones are compiled already.
PATTERNS = """import os
import re
import sys

PATTERNS = {"str": "a\\\\\\\\\\n\\xe9\\ud800+", "bytes": b"\\0\\xff+", "flags": "(?x) b", "warns": "[[c]"}
PATTERNS["secret"] = "d-" + re.escape(os.environ["KEY"])

def main():
    for name, pattern in PATTERNS.items():
        if sys.argv[1] == "compile":
            print(bool(re.compile(pattern, re.S).match(pattern)))
        elif (type(pattern), pattern, int(re.S)) in re._cache:
            print(name)

if __name__ == "__main__":
    main()
"""


def test_regular_expressions_that_a_run_compiles_are_in_the_image(tmp_path):
    """But for those that warn, and those that hold the value of a variable."""
    program = Program(tmp_path, PATTERNS)
    env = {"KEY": "a-secret-key", "PYTHONWARNINGS": "always"}
    said = program.freeze("compile", **env)
    assert " and 3 regular expressions from training runs\n" in said.out
    asked = support.run([program.image, "ask"], env=support.environment(**env), cwd=tmp_path)
    assert (asked.fell_back, asked.out) == (False, "str\nbytes\nflags\n")
    thawed, ordinary = program.start(["compile"], env, tmp_path, "app.py")
    assert "FutureWarning" in ordinary.err
    assert thawed.err == ordinary.err
