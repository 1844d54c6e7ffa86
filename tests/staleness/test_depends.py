"""What an image depends on that its user may not expect is said at the freeze, and by `snapboot inspect`."""

import json

import pytest
from common import support, terminal
from common.languages import PYTHON, RUBY, both

pytestmark = pytest.mark.sample(12, whole=True)


def inspected(image):
    """What `snapboot inspect` says, and the entries that `--json` has."""
    shown, entries = (support.run([support.SNAPBOOT, "inspect", *more, image], log=False).out for more in ([], ["--json"]))
    return " ".join(shown.split()), json.loads(entries)["depends"]


@both
def test_the_current_directory_is_named_with_its_reader(language, tmp_path):
    source = "import os\nVALUE = len(os.getcwd())" if language is PYTHON else "\nVALUE = Dir.pwd"
    env, path = language.write(tmp_path, source)
    image = tmp_path / "x.img"
    result = support.freeze(image, [language.program], "--preload", language.preload(), env=env, cwd=tmp_path)
    words = f"the current directory ({tmp_path}), read by {path.name}:2"
    if language is PYTHON:
        words += " (boot.VALUE depends on it)"
    assert result.status == 0 and f"\ndepends on {words}\n" in result.out, result
    shown, depends = inspected(image)
    assert depends == [words] and words in shown


@both
def test_nothing_is_said_where_there_is_nothing(language, tmp_path):
    env, _ = language.write(tmp_path, "VALUE = 1")
    image = tmp_path / "x.img"
    result = support.freeze(image, [language.program], "--preload", language.preload(), env=env, cwd=tmp_path)
    assert result.status == 0 and "depends on" not in result.out, result
    assert inspected(image)[1] == []


@both
def test_a_variable_is_named_with_its_reader(language, tmp_path):
    asks = "import os\nVALUE = os.environ.get('OWN_WORD')" if language is PYTHON else "\nVALUE = ENV['OWN_WORD']"
    env, path = language.write(tmp_path, asks)
    env["OWN_WORD"] = "1"
    image = tmp_path / "x.img"
    result = support.freeze(image, [language.program], "--preload", language.preload(), env=env, cwd=tmp_path)
    words = f"OWN_WORD (read by {path.name}:2)"
    assert result.status == 0 and f"\ndepends on {words}" in result.out, result
    shown, depends = inspected(image)
    assert words in depends and words in shown


@both
def test_a_guard_is_named_with_the_argument_that_it_matches(language, tmp_path):
    env, _ = language.write(tmp_path, "VALUE = 1")
    guards = ["--guard", "--other", "--guard", "--mode*"]
    image = support.frozen(tmp_path / "x.img", [language.program], *guards, env=env)
    said = support.run([*language.argv(image)[:2], "", "--mode=fast"], env=env).err
    assert ": --mode=fast; it matches the guard --mode*; starting the ordinary way\n" in said, said


def test_what_an_import_reads_that_is_left_to_each_start_is_no_input(tmp_path):
    """A child tries the imports of the main part. It reads what no image holds."""
    (tmp_path / "asks.py").write_text("import sys\nIS_TERMINAL = sys.stdout.isatty()\nsys.stdout.write('loaded\\n')\n")
    (tmp_path / "main.py").write_text("import json\nimport asks\nprint(asks.IS_TERMINAL)\n")
    env = support.environment()
    result = support.freeze(tmp_path / "x.img", [support.PYTHON, "main.py"], env=env, cwd=tmp_path)
    assert result.status == 0 and "terminal" not in result.out and "leaves the import of asks" in result.out, result
    assert support.thawed([tmp_path / "x.img"], env=env, cwd=tmp_path).out == "loaded\nFalse\n"
    shown, _ = terminal.shown_on([tmp_path / "x.img"], env, cwd=tmp_path)
    assert shown.split() == [b"loaded", b"True"], shown


@both
def test_names_that_change_all_the_time_are_named(language, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    lists = {PYTHON: "import os\nNAMES = os.listdir(os.environ['TMPDIR'])\n", RUBY: "NAMES = Dir.children(ENV['TMPDIR'])\n"}
    env, _ = language.write(tmp_path, lists[language])
    env["TMPDIR"] = str(shared)
    made = support.freeze(tmp_path / "x.img", [language.program], "--preload", language.preload(), env=env, cwd=tmp_path)
    assert made.status == 0, made
    assert f"depends on which names are in {shared}" in made.err, made
    plain = support.freeze(tmp_path / "x.img", [language.program], "--preload", "json", env=env)
    assert "which names are in" not in plain.err, plain
