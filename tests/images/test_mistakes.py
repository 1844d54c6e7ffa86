"""A command that no start could run is refused at once, with what was looked for, where, and what to do."""

import pytest
from common import support

pytestmark = pytest.mark.sample(3, whole=True)


def refusal(folder, *command, **variables):
    """What a refused freeze in folder says; nothing is written, and nothing of ours runs through to the user."""
    result = support.freeze("x.img", command, env=support.environment(**variables), cwd=folder)
    assert result.status == 2 and not (folder / "x.img").exists(), result
    assert "Traceback" not in result.err and result.err.count("snapboot: ") == 1, result
    return result.err


@pytest.mark.parametrize(
    "module, says",
    [
        ("nosuch", "-m nosuch: No module named nosuch (looked in "),
        ("package", "No module named package.__main__"),
        ("package.nosuch", "No module named package.nosuch"),
        ("nosuch.inner", "No module named 'nosuch'"),
        ("package.inner.deeper", "No module named "),
        ("package.inner.py", "Try using 'package.inner' instead"),
    ],
)
def test_a_module_that_is_not_there(module, says, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").touch()
    (tmp_path / "package/inner.py").write_text("if __name__ == '__main__':\n    print('it runs')\n")
    said = refusal(tmp_path, support.PYTHON, "-m", module)
    if module != "package.inner.deeper":  # CPython words this in several ways
        assert says in said, said
    assert f"-m {module}: " in said and str(tmp_path) in said and support.PYTHON in said and "it runs" not in said
    image = support.frozen(tmp_path / "y.img", [support.PYTHON, "-m", "package.inner"], cwd=tmp_path)
    assert support.thawed([image], cwd=tmp_path).out == "it runs\n"


def test_a_module_of_a_preload_or_of_pythonpath_or_of_a_path_file_is_there(tmp_path):
    """A module is looked for where the start looks: by the path that preloads and variables have left, and in packages whose own
    import fails nothing is said, since it may succeed in the start."""
    for folder in ("work", "by_variable", "by_preload"):
        (tmp_path / folder).mkdir()
    (tmp_path / "by_preload/second.py").write_text("print('second')\n")
    source = f"import sys\nsys.path.append({str(tmp_path / 'by_preload')!r})\n"
    (tmp_path / "by_variable/first.py").write_text(source + "if __name__ == '__main__':\n    print('first')\n")
    (tmp_path / "by_variable/moody").mkdir()
    (tmp_path / "by_variable/moody/__init__.py").write_text("raise ImportError('not today', name='today')\n")
    env = support.environment(PYTHONPATH=str(tmp_path / "by_variable"))
    for module, options, out in (("first", [], "first\n"), ("second", ["--preload", "first"], "second\n")):
        command = [support.PYTHON, "-m", module]
        image = support.frozen(tmp_path / "x.img", command, *options, env=env, cwd=tmp_path / "work")
        assert support.run([image], env=env, cwd=tmp_path / "work").out == out
    support.frozen(tmp_path / "x.img", [support.PYTHON, "-m", "moody.blue"], env=env, cwd=tmp_path / "work")


def test_a_folder_without_a_main_part(tmp_path):
    (tmp_path / "folder").mkdir()
    said = refusal(tmp_path, support.PYTHON, "folder")
    assert "can't find '__main__' module in" in said and "__main__.py" in said
    (tmp_path / "folder/__main__.py").write_text("print(1)\n")
    assert support.thawed([support.frozen(tmp_path / "y.img", [support.PYTHON, tmp_path / "folder"])]).out == "1\n"


def test_a_script_or_command_that_is_not_there(tmp_path):
    assert "cannot read the script nosuch.py: no such file" in refusal(tmp_path, support.PYTHON, "nosuch.py")
    if support.RUBY:
        assert "cannot read the script nosuch.rb: no such file" in refusal(tmp_path, support.RUBY, "nosuch.rb")
        assert "cannot find the command nosuch" in refusal(tmp_path, support.RUBY, "-S", "nosuch")


def said(*argv, **options):
    """What a `snapboot` command says that refuses."""
    result = support.run([support.SNAPBOOT, *argv], log=False, **options)
    assert result.status == 2 and result.out == "", result
    return result.err


def test_an_image_or_a_shell_as_the_command(python_image):
    folder, name = python_image.parent, python_image.name
    for command in (name, f"./{name}", str(python_image)):
        words = said("freeze", "-o", "x.img", "--", command, cwd=folder)
        assert f"{command} is an image already: expected " in words and f"snapboot refreeze {command}" in words
    assert "snapboot freeze -o nosuch.img -- COMMAND" in said("freeze", "nosuch.img", cwd=folder)
    for options in (["-c"], ["-ec"], ["-e", "-c"], []):
        words = said("freeze", "-o", "x.img", "--", "sh", *options, *(["echo told"] if options else []), cwd=folder)
        assert "sh is a shell, and a shell cannot be frozen: expected the Python or Ruby program" in words, words
    assert "cannot read nosuch.sh: no such file" in said("freeze", "--", "sh", "-e", "nosuch.sh", cwd=folder)
    assert not (folder / "x.img").exists()


@pytest.mark.parametrize(
    "name, content, found",
    [
        ("x.img", b"", "an empty file"),
        ("x.img", b"print(1)\n", "a file of another kind"),
        ("x.py", b"#!/usr/bin/env python3\nprint(1)\n", "a script"),
        ("a-program", b"/bin/true", "a program that is no image"),
        ("x.img", None, "no such command"),
        ("./x.img", None, "no such file"),
        ("./.", None, "a directory"),
    ],
)
def test_what_is_run_is_no_image(name, content, found, tmp_path):
    if content is not None:
        support.write(tmp_path / name, open(content, "rb").read() if name == "a-program" else content)
    result = support.run([support.SNAPBOOT, "run", name, "-c", "exit"], cwd=tmp_path)
    words = result.err
    assert result.status == (126 if "/" in name and found != "no such file" else 127)
    assert f"cannot run {name}: expected a command or an image that snapboot freeze wrote, and found {found}" in words
    assert "freeze it first (snapboot freeze -o " in words and words.count("\n") == 1


def test_what_is_left_of_an_image_still_starts_its_command(python_image, tmp_path):
    """Without its tables an image falls back; so it is not refused as no image."""
    whole = python_image.read_bytes()
    image = support.write(tmp_path / "cut.img", whole[: 1 << 18])
    assert support.run([support.SNAPBOOT, "run", image, "-c", "print(1)"]).out == "1\n"


@pytest.mark.parametrize("words", [[], ["freeze"], ["archive"], ["archive", "list"]])
def test_help_is_a_subcommand_too(words):
    asked = [support.run([support.SNAPBOOT, *argv], log=False) for argv in (["help", *words], [*words, "--help"])]
    assert asked[0].status == 0 and asked[0].out == asked[1].out and "Usage: snapboot" in asked[0].out
