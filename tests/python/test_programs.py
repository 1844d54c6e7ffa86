"""Ordinary against thawed: what a program prints, how it ends, which files it leaves."""

import os
import re

import pytest
from harness import ordinary
from programs import PROGRAMS

pytestmark = pytest.mark.sample(3)


def tidy(result):
    """Addresses differ from process to process."""
    for name in ("stdout", "stderr"):
        setattr(result, name, re.sub("0x[0-9a-f]{8,}", "0x", getattr(result, name)))
    return result


def observe(run, arguments, folder, input):
    """Runs in an empty folder but for the program; returns the result and the files left."""
    for name in os.listdir(folder):
        if name not in ("program.py", "__pycache__"):
            os.remove(os.path.join(folder, name))
    result = tidy(run(arguments, input=input, cwd=folder))
    files = {}
    for name in sorted(os.listdir(folder)):
        if os.path.isfile(os.path.join(folder, name)):
            with open(os.path.join(folder, name), "rb") as file:
                files[name] = file.read()
    return result, files


# Every program runs in two forms; these, which show the form's own traits, in all four.
IN_ALL_FORMS = (
    "exit_status", "finalisers", "hello", "interpreter_state", "keyboard_interrupt", "read_stdin", "stack", "uncaught", "warnings"
)  # fmt: skip
CASES = [(name, form) for name in PROGRAMS for form in ("-c", "script")]
CASES += [(name, form) for name in IN_ALL_FORMS for form in ("stdin", "-m")]


@pytest.mark.parametrize("name, form", CASES)
def test_same_as_ordinary(python, bare, name, form, tmp_path):
    source = PROGRAMS[name]
    (tmp_path / "program.py").write_text(source)
    input = source.encode() if form == "stdin" else b"first\nsecond\nthird"
    arguments = {
        "-c": ["-c", source, "x", "-y"],
        "script": ["program.py", "x", "-y"],
        "stdin": ["-", "x"],
        "-m": ["-m", "program", "x"],
    }[form]

    def command(arguments, **options):
        return ordinary([python] + arguments, **options)

    if form == "-m":
        observe(command, arguments, str(tmp_path), input)  # writes the .pyc
    expected = observe(command, arguments, str(tmp_path), input)
    assert observe(bare.run, arguments, str(tmp_path), input) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ["nosuch.py"],
        ["-m", "nosuch"],
        ["-V"],
        ["-c"],
        ["-X", "utf8", "-c", "print(1)"],
        ["-I", "-c", "print(1)"],
        ["."],
        ["/"],
    ],
)
def test_what_falls_back(python, bare, arguments, tmp_path):
    expected = ordinary([python] + arguments, cwd=str(tmp_path))
    assert bare.run(arguments, cwd=str(tmp_path)) == expected


def test_folders_and_archives_are_run(python, bare, tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text(
        "import sys, other; print(sys.argv, sys.path[0], __name__, __package__)"
    )
    (tmp_path / "app" / "other.py").write_text("print(__name__)")
    ordinary([python, "-m", "zipfile", "-c", "../app.zip", "__main__.py", "other.py"], cwd=str(tmp_path / "app"))
    for target in ("app", "app.zip", str(tmp_path / "app")):
        expected = ordinary([python, target, "x"], cwd=str(tmp_path))
        assert expected.status == 0
        assert bare.run([target, "x"], cwd=str(tmp_path)) == expected


def test_a_script_behind_a_link(python, bare, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "program.py").write_text("import sys; print(sys.argv, sys.path[0], __file__)")
    (tmp_path / "link.py").symlink_to("real/program.py")
    expected = ordinary([python, "link.py"], cwd=str(tmp_path))
    assert bare.run(["link.py"], cwd=str(tmp_path)) == expected
