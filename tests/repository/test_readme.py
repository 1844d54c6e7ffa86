"""The commands of the README run as they stand, and every command in a document is one that exists, with options that exist."""

import pathlib
import re
import shutil
import subprocess

import pytest
from common import support
from common.ready import prepared

README = support.ROOT / "README.md"
DOCUMENTS = [README, *sorted((support.ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|[ `(])snapboot ((?:archive )?[a-z]+)([^`#\n]*)", re.MULTILINE)
# What is meant when a document's sentence goes on behind the word.
SUBCOMMANDS = ["freeze", "refreeze", "run", "install", "uninstall", "list", "shellenv"]
SUBCOMMANDS += ["enable", "disable", "inspect", "verify", "check", "time", "explain", "completion"]
ARCHIVE = ["archive build", "archive list", "archive verify", "archive prune"]


def told(*words):
    """What `snapboot WORDS --help` prints."""
    result = support.run([support.SNAPBOOT, *words, "--help"], log=False)
    assert result.status == 0, result
    return result.out


def commands(document):
    """Subcommand and the words behind it, of each call of snapboot in the code of a document."""
    text = document.read_text()
    code = [*BLOCK.findall(text), *re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))]
    return [(name, rest.split()) for piece in code for name, rest in COMMAND.findall(piece)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_commands_of_the_documents_exist(document):
    for name, words in commands(document):
        if name == "archive":
            continue
        assert name in SUBCOMMANDS + ARCHIVE, f"{document.name}: snapboot {name}"
        own = words[: words.index("--")] if "--" in words else words
        known = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", told(*name.split())))
        options = {word.split("=")[0] for word in own if re.match(r"--?[a-z]", word)}
        assert options <= known, f"{document.name}: snapboot {name} has no {options - known}"


def test_there_are_commands_to_compare():
    assert len(commands(README)) >= 8
    assert ("freeze", ["-o", "black.img", "--", "black"]) in commands(README)


def test_the_targets_of_the_documents_exist():
    makefile = (support.ROOT / "Makefile").read_text()
    for document in DOCUMENTS:
        for target in re.findall(r"(?:^|`)make ([a-z]+)", document.read_text(), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{document.name}: make {target}"


def block_with(text):
    """The README's block of shell commands in which this stands."""
    (found,) = [block for block in BLOCK.findall(README.read_text()) if text in block]
    return found


def run(text, place, *bins):
    """Run the README's block in which `text` stands, in a directory. An image that is not used is an error."""
    folders = [str(support.SNAPBOOT.resolve().parent), *map(str, bins)]
    store = str(place / "store") if "install" in text else "off"
    env = support.environment(HOME=str(place), SNAPBOOT_ON_STALE="error", SNAPBOOT_STORE=store)
    env["PATH"] = ":".join([*folders, env["PATH"]])
    result = support.run(["sh", "-e", "-c", block_with(text)], env=env, cwd=place, log=False)
    assert result.status == 0 and "snapboot: cannot" not in result.err, result
    return result


def test_a_command_is_frozen_and_kept_fresh(tmp_path):
    black = pathlib.Path(prepared("black")["bin"])
    assert "black" in run("snapboot freeze -o black.img", tmp_path, black).out
    assert "black.img: fresh" in run("snapboot inspect --why", tmp_path, black).out


def test_a_command_is_installed(tmp_path):
    black = pathlib.Path(prepared("black")["bin"])
    result = run("snapboot install", tmp_path, black)
    assert "black, " in result.out and "fresh" in result.out, result


def test_an_interpreter_is_frozen_with_modules(tmp_path):
    web = prepared("web")
    assert "<Flask 'app'>" in run("--preload flask", tmp_path, pathlib.Path(web["python"]).parent).out


def test_rails_is_frozen_and_booted_with_an_archive(tmp_path):
    rails = prepared("rails")
    place = tmp_path / "application"
    shutil.copytree(rails["dir"], place, symlinks=True, ignore=shutil.ignore_patterns("cache", "*.log"))
    assert run("-- bin/rails\n", place).out.endswith("1\n")
    run("snapboot run -- bin/rails", place)
    assert list(place.glob("tmp/cache/snapboot.archive"))


def test_this_machine_can_be_checked_and_installed_to(tmp_path):
    dry = block_with("make install").replace("make install", "make -n install")
    env = {**support.environment(HOME=str(tmp_path)), "PATH": f"{support.SNAPBOOT.resolve().parent}:{support.environment()['PATH']}"}
    done = subprocess.run(["sh", "-e", "-c", dry], cwd=support.ROOT, env=env, capture_output=True, text=True)
    assert f"{tmp_path}/.local/bin" in done.stdout and "Images can be made" in done.stdout, done
