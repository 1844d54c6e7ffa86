"""What a program changes of its process' attributes while it boots is there after a thaw, or the freeze is refused by name."""

import json
import os
import re

import pytest
from common import sources, support
from common.support import ROOT

from . import attributes
from .attributes import ALONE, COMPARED_ONLY, REFUSED, REPEATED

pytestmark = pytest.mark.sample(10, whole=True)

LANGUAGES = ["python", "ruby"]
UNAVAILABLE = "UNAVAILABLE "


def changes(language, rows):
    """The source of a module that makes the changes of all rows, and tells which of them the kernel does not permit."""
    prelude = {"python": attributes.PYTHON, "ruby": attributes.RUBY}[language] + attributes.FILTERS[language]
    tell = 'print("%s%d", flush=True)' if language == "python" else 'STDOUT.syswrite("%s%d\\n")'
    lines = []
    for index, row in enumerate(rows):
        lines.append(f"changed_{index} = {row.change}")
        says, fails = tell % (UNAVAILABLE, index), f"changed_{index} == -1"
        lines.append(f"if {fails}: {says}" if language == "python" else f"{says} if {fails}")
    return prelude + "\n".join(lines) + "\n"


def shows(language, rows):
    """The source of a main part that shows the attributes of all rows, a line each."""
    if language == "python":
        return "from changes import *\nfor it in [" + ", ".join(row.shown for row in rows) + "]: print(json.dumps(it))\n"
    return 'require "json"\n[' + ", ".join(row.shown for row in rows) + "].each { |it| puts JSON.generate(it) }\n"


class Program:
    """A program in a folder of its own that changes attributes while it boots, and shows them in its main part."""

    def __init__(self, language, folder, rows):
        self.language, self.folder = language, folder
        self.ending = {"python": "py", "ruby": "rb"}[language]
        (folder / f"changes.{self.ending}").write_text(changes(language, rows))
        (folder / f"main.{self.ending}").write_text(self._load() + shows(language, [row for row in rows if row.shown]))
        (folder / f"nothing.{self.ending}").write_text(
            {"python": attributes.PYTHON, "ruby": attributes.RUBY}[language]
            + shows(language, [row for row in rows if row.shown]).replace("from changes import *\n", "")
        )

    def _load(self):
        return "import changes\n" if self.language == "python" else 'require_relative "changes"\n'

    def command(self, main="main"):
        return [support.PYTHON if self.language == "python" else support.RUBY, self.folder / f"{main}.{self.ending}"]

    def preload(self):
        return "changes" if self.language == "python" else "./changes"

    def environment(self):
        return support.environment(PYTHONPATH=str(self.folder))

    def start(self, command):
        return support.run(command, env=self.environment(), cwd=self.folder)

    def freeze(self, image, main="main"):
        return support.freeze(image, self.command(main), "--preload", self.preload(), env=self.environment(), cwd=self.folder)


def lines(result):
    assert result.status == 0, result
    return [json.loads(line) for line in result.out.splitlines() if not line.startswith(UNAVAILABLE)]


@pytest.fixture(scope="module", params=LANGUAGES)
def repeated(request, tmp_path_factory):
    """What a program of all rows shows: without its changes, in an ordinary start, and thawed; and the program and its image."""
    folder = tmp_path_factory.mktemp("repeated")
    program = Program(request.param, folder, REPEATED)
    before, ordinary = lines(program.start(program.command("nothing"))), lines(program.start(program.command()))
    result = program.freeze(folder / "app.img")
    assert result.status == 0, result
    return before, ordinary, lines(support.thawed([folder / "app.img"], env=program.environment(), cwd=folder)), program


@pytest.mark.parametrize("row", REPEATED, ids=lambda row: row.name)
def test_what_a_boot_changes_is_there_after_a_thaw(repeated, row):
    index = REPEATED.index(row)
    before, ordinary, thawed = (found[index] for found in repeated[:3])
    assert thawed == ordinary
    if before == ordinary:
        pytest.skip("this kernel does not let the attribute be changed")


def test_a_start_that_has_inherited_another_value_is_an_ordinary_one(repeated):
    *_, program = repeated
    image = program.folder / "app.img"
    nice = ["nice", "-n", "2"]
    ordinary, thawed = program.start([*nice, *program.command()]), program.start([*nice, image])
    assert thawed.out == ordinary.out
    assert "cannot change its nice value" in thawed.err, thawed


def test_what_an_ordinary_start_inherits_stays_its_own(tmp_path, python_image):
    code = "import os, resource; print(os.getpriority(0, 0), resource.getrlimit(7)[0], os.getcwd())"
    command = ["sh", "-c", 'ulimit -Sn 77; exec nice -n 3 "$@"', "sh"]
    ordinary = support.run([*command, support.PYTHON, "-c", code], cwd=tmp_path)
    assert support.thawed([*command, python_image, "-c", code], cwd=tmp_path).out == ordinary.out


@pytest.fixture(scope="module", params=LANGUAGES)
def refused(request, tmp_path_factory):
    """What the freeze of a program says that makes the changes of all rows; and which of them the kernel has not permitted."""
    folder = tmp_path_factory.mktemp("refused")
    program = Program(request.param, folder, REFUSED)
    result = program.freeze(folder / "app.img")
    assert result.status == 2 and not (folder / "app.img").exists(), result
    return result, {int(number) for number in re.findall(UNAVAILABLE + "([0-9]+)", result.out + result.err)}, program


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.name)
def test_a_change_that_a_thaw_cannot_make_is_refused_by_name(refused, row):
    result, unavailable, _ = refused
    is_named = f"cannot freeze: the program has changed its {row.name} while it booted" in result.err
    if not is_named and REFUSED.index(row) in unavailable:
        pytest.skip("this kernel does not let the attribute be changed")
    assert is_named, result


@pytest.mark.skipif(not support.IS_ROOT, reason="only root has rights to give up")
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("row", ALONE, ids=lambda row: row.name)
def test_a_program_that_is_another_afterwards_is_refused_by_name(row, language, tmp_path):
    program = Program(language, tmp_path, [row])
    result = program.freeze(tmp_path / "app.img")
    assert result.status == 2 and f"the program has changed its {row.name} while it booted" in result.err, result
    assert "Traceback" not in result.err and "snapboot/front_end" not in result.err, result


PLACES = {
    "python": ("import os\nos.setgroups([5, 6])\n", 2),
    "ruby": ("\nProcess.groups = [5, 6]\n", 2),
}


@pytest.mark.skipif(not support.IS_ROOT, reason="only root has rights to give up")
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("user", ["", "Process::Sys.setuid(65534)"])
def test_the_line_of_the_program_is_told(language, user, tmp_path):
    program = Program(language, tmp_path, [])
    source, line = PLACES[language]
    module = tmp_path / f"changes.{program.ending}"
    module.write_text(source + (user.replace("Process::Sys", "os") if language == "python" else user) + "\n")
    result = program.freeze(tmp_path / "app.img")
    assert result.status == 2 and "Traceback" not in result.err, result
    assert "supplementary groups while it booted (in " in result.err, result
    assert f"{module}:{line})" in result.err, result


DIRECTORIES = {
    "python": ('import os\nos.chdir("data")\n', "import changes\nprint(open('greeting').read())\n"),
    "ruby": ('Dir.chdir("data")\n', "require_relative 'changes'\nputs File.read('greeting')\n"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_directory_that_was_named_from_the_start_binds_to_that(language, tmp_path):
    program = Program(language, tmp_path, [])
    module, main = DIRECTORIES[language]
    (tmp_path / f"changes.{program.ending}").write_text(module)
    (tmp_path / f"main.{program.ending}").write_text(main)
    other = tmp_path / "other"
    for folder, greeting in ((tmp_path, "here"), (other, "there")):
        (folder / "data").mkdir(parents=True)
        (folder / "data/greeting").write_text(greeting)
    image = tmp_path / "app.img"
    assert program.freeze(image).status == 0
    assert support.thawed([image], env=program.environment(), cwd=tmp_path).out == "here\n"
    assert support.run([image], env=program.environment(), cwd=other).out == "there\n"


SECOND = {
    "python": 'import os\nos.chdir("/usr/share")\nHERE = os.getcwd()\n',
    "ruby": 'Dir.chdir("/usr/share")\nHERE = Dir.pwd\n',
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_read_of_the_new_directory_is_not_that_of_the_start(language, tmp_path):
    program = Program(language, tmp_path, [])
    (tmp_path / f"changes.{program.ending}").write_text(SECOND[language])
    main = {"python": "import changes, os\nprint(changes.HERE, os.getcwd())\n", "ruby": "require_relative 'changes'\nputs HERE, Dir.pwd\n"}
    (tmp_path / f"main.{program.ending}").write_text(main[language])
    ordinary = program.start(program.command())
    assert program.freeze(tmp_path / "app.img").status == 0
    for folder in (tmp_path, "/"):
        assert support.run([tmp_path / "app.img"], env=program.environment(), cwd=folder).out == ordinary.out


SAME = {
    "python": (
        "import os, resource, subprocess\nFOLDER = os.path.dirname(os.path.realpath(__file__))\n"
        "os.chdir(FOLDER)\nresource.setrlimit(resource.RLIMIT_CORE, (100, 200))\n",
        "import changes, os, resource\nprint(os.getcwd(), resource.getrlimit(resource.RLIMIT_CORE))\n",
    ),
    "ruby": (
        'Dir.chdir(File.realpath(__dir__))\nProcess.setrlimit(:CORE, 100, 200)\n',
        "require_relative 'changes'\nputs Dir.pwd, Process.getrlimit(:CORE)\n",
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_set_to_what_it_was_counts_in_other_starts(language, tmp_path):
    program = Program(language, tmp_path, [])
    module, main = SAME[language]
    (tmp_path / f"changes.{program.ending}").write_text(module)
    (tmp_path / f"main.{program.ending}").write_text(main)
    image = tmp_path / "app.img"
    limited = ["sh", "-c", 'ulimit -Hc "$0" && ulimit -Sc 100 && exec "$@"']
    freeze = [support.SNAPBOOT, "freeze", "-o", image, "--preload", program.preload(), "--", *program.command()]
    result = support.run([*limited, "200", *freeze], env=program.environment(), cwd=tmp_path)
    if "ulimit" in result.err:
        pytest.skip("the limit of core dumps cannot be chosen here")
    assert result.status == 0, result
    thawed = support.thawed([*limited, "300", image], env=program.environment(), cwd="/")
    assert thawed.out.split() == support.run([*limited, "300", *program.command()], env=program.environment(), cwd="/").out.split()


def test_what_a_child_sets_is_not_the_programs(tmp_path):
    program = Program("python", tmp_path, [])
    (tmp_path / "changes.py").write_text('import subprocess\nsubprocess.run(["true"], cwd="/usr")\n')
    (tmp_path / "main.py").write_text("import changes, os\nprint(os.getcwd())\n")
    assert program.freeze(tmp_path / "app.img").status == 0
    assert support.thawed([tmp_path / "app.img"], env=program.environment(), cwd="/").out == "/\n"


def test_each_attribute_has_a_row():
    table = sources.tables()["attributes"]
    rows = [row.name for row in [*REPEATED, *REFUSED, *ALONE]] + list(COMPARED_ONLY)
    assert sorted(table) == sorted(rows)
    repeated = {name for name, kind in table.items() if kind.startswith("Repeated")}
    assert repeated == {row.name for row in REPEATED}
    assert {name for name, kind in table.items() if kind == "RepeatedFromSame"} == {row.name for row in REPEATED if row.from_same}
    assert all(os.path.exists(ROOT / test) for *_, test in attributes.ELSEWHERE)
