"""The commands of README and docs/start.md run as they stand; every command in a document exists, with its options."""

import pathlib
import re
import shutil
import subprocess

import pytest
from common import support
from common.ready import prepared

README = support.ROOT / "README.md"
START, REFERENCE = support.ROOT / "docs/start.md", support.ROOT / "docs/reference.md"
DOCUMENTS = [README, *sorted((support.ROOT / "docs").glob("*.md")), *sorted((support.ROOT / "docs/limits").glob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|[ `(])snapboot ((?:(?:archive|remote) )?[a-z]+)([^`#\n]*)", re.MULTILINE)
# What is meant when a document's sentence goes on behind the word.
SUBCOMMANDS = ["freeze", "refreeze", "run", "install", "uninstall", "list", "shellenv"]
SUBCOMMANDS += ["enable", "disable", "inspect", "verify", "check", "time", "explain", "completion"]
ARCHIVE = [f"archive {name}" for name in ("build", "list", "verify", "prune", "push", "pull")]
REMOTE = [f"remote {name}" for name in ("push", "pull", "list", "verify", "prune", "key")]


def help_of(*words):
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
        if name in ("archive", "remote"):
            continue
        assert name in SUBCOMMANDS + ARCHIVE + REMOTE, f"{document.name}: snapboot {name}"
        own = words[: words.index("--")] if "--" in words else words
        known = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", help_of(*name.split())))
        options = {word.split("=")[0] for word in own if re.match(r"--?[a-z]", word)}
        assert options <= known, f"{document.name}: snapboot {name} has no {options - known}"


def test_there_are_commands_to_compare():
    assert len(commands(START)) >= 8
    assert ("freeze", ["-o", "black.img", "--", "black"]) in commands(START)


def test_the_targets_of_the_documents_exist():
    makefile = (support.ROOT / "Makefile").read_text()
    for document in DOCUMENTS:
        for target in re.findall(r"(?:^|`)make ([a-z0-9-]+)", document.read_text(), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{document.name}: make {target}"


def blocks(document):
    """The blocks of shell commands of a document."""
    return BLOCK.findall(document.read_text())


def run(text, place, *bins, **variables):
    """Run commands in a directory that is HOME, too."""
    store = str(place / "store") if "snapboot install" in text else "off"
    env = support.environment(HOME=str(place), SNAPBOOT_STORE=store, **variables)
    env["PATH"] = ":".join([str(support.SNAPBOOT.resolve().parent), *map(str, bins), env["PATH"]])
    result = support.run(["sh", "-e", "-c", text], env=env, cwd=place, log=False)
    assert result.status == 0 and "snapboot: cannot" not in result.err, result
    return result


def run_block(text, place, *bins, document=REFERENCE):
    """Run the document's block in which `text` stands. An image that is not used is an error."""
    (found,) = [block for block in blocks(document) if text in block]
    return run(found, place, *bins, SNAPBOOT_ON_STALE="error")


def test_each_step_of_the_path_runs_and_shows_what_is_printed(tmp_path):
    shown = re.findall(r"^```text\n(.*?)^```$", START.read_text(), re.MULTILINE | re.DOTALL)
    first, *steps = blocks(START)
    assert "make install" in first and len(steps) >= 6 and len(shown) >= 3
    result = run("".join(steps), tmp_path, prepared("black")["bin"])
    printed = result.out + result.err
    for figures in shown:
        # Sizes, times and numbers of files are of one machine.
        pattern = re.sub(r"[0-9]+(?:\\\.[0-9]+)?", "[0-9.]+", re.escape(figures.strip()))
        assert re.search(re.sub(r"(?:\\ )+", r"\\s+", pattern), printed), (figures, printed)
    assert printed.count("black, ") == 3 and "A is " in printed and "black: uninstalled" in printed, result


def test_a_command_is_installed(tmp_path):
    result = run_block("snapboot install", tmp_path, prepared("black")["bin"], document=README)
    assert "black, " in result.out and "fresh" in result.out, result


def test_an_interpreter_is_frozen_with_modules(tmp_path):
    web = prepared("web")
    assert "<Flask 'app'>" in run_block("fastpy --preload flask,requests,pymongo", tmp_path, pathlib.Path(web["python"]).parent).out


def test_rails_is_frozen_and_booted_with_an_archive(tmp_path):
    rails = prepared("rails")
    place = tmp_path / "application"
    shutil.copytree(rails["dir"], place, symlinks=True, ignore=shutil.ignore_patterns("cache", "*.log"))
    (frozen,) = [block for block in blocks(REFERENCE) if "-- bin/rails\nRAILS_ENV" in block]
    assert run(frozen, place, SNAPBOOT_ON_STALE="error").out.endswith("1\n")
    run_block("snapboot run -- bin/rails", place)
    assert list(place.glob("tmp/cache/snapboot.archive"))


@pytest.mark.parametrize("document", [README, START], ids=lambda path: path.name)
def test_this_machine_can_be_checked_and_installed_to(document, tmp_path):
    (install,) = [block for block in blocks(document) if "make install" in block]
    dry = install.replace("make install", "make -n install")
    env = {**support.environment(HOME=str(tmp_path)), "PATH": f"{support.SNAPBOOT.resolve().parent}:{support.environment()['PATH']}"}
    done = subprocess.run(["sh", "-e", "-c", dry], cwd=support.ROOT, env=env, capture_output=True, text=True)
    assert f"{tmp_path}/.local/bin" in done.stdout and "Images can be made" in done.stdout, done


def test_every_block_of_the_readme_is_run():
    known = ("make demo", "make install", "snapboot install")
    assert [block for block in blocks(README) if not any(text in block for text in known)] == []
