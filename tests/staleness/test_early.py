"""What belongs to each start is not decided at the freeze: renewed, refused by name, or compared."""

import os

import pytest
from common import support
from common.languages import PYTHON, RUBY, both, names
from common.terminal import shown_on

pytestmark = pytest.mark.sample(20, whole=True)

# What a preload may keep of it: for each language an expression, and the words of the refusal.
REFUSED = {
    "arguments": (PYTHON, "list(__import__('sys').argv)", "sys.argv"),
    "rest of the arguments": (PYTHON, "[*__import__('sys').argv[1:]]", "sys.argv"),
    "an argument of the rest": (PYTHON, "'x' in __import__('sys').argv.copy()[1:]", "sys.argv"),
    "whether there is a rest": (PYTHON, "bool(__import__('sys').argv[1:])", "sys.argv"),
    "spread arguments": (PYTHON, "(*__import__('sys').argv,)", "sys.argv"),
    "number of arguments": (PYTHON, "len(__import__('sys').argv)", "sys.argv"),
    "added arguments": (PYTHON, "['x'] + __import__('sys').argv", "sys.argv"),
    "original arguments": (PYTHON, "__import__('sys').orig_argv[0]", "sys.orig_argv"),
    "name in a parser": (PYTHON, "__import__('argparse').ArgumentParser().prog", "sys.argv"),
    "main module": (PYTHON, "getattr(__import__('__main__'), '__file__', None)", "__main__.__file__"),
    "name of the main module": (PYTHON, "getattr(__import__('__main__'), 'app', None)", "__main__.app"),
    "parent": (PYTHON, "os.getppid()", "the pid of its parent process"),
    "kind of standard input": (PYTHON, "__import__('stat').S_ISFIFO(os.fstat(0).st_mode)", "what standard input is"),
    "kind of standard output": (PYTHON, "os.fstat(__import__('sys').stdout.fileno()).st_size", "what standard output is"),
    "kind of Ruby's standard input": (RUBY, "$stdin.stat.pipe?", "what standard input is"),
    "kind of Ruby's standard error": (RUBY, "STDERR.stat.file?", "what standard error is"),
    "Ruby's arguments": (RUBY, "ARGV.dup", "ARGV"),
    "Ruby's first argument": (RUBY, "ARGV[0]", "ARGV"),
    "whether Ruby has arguments": (RUBY, "ARGV.any?", "ARGV"),
    "Ruby's arguments one by one": (RUBY, "ARGV.each_with_index.to_a", "ARGV"),
    "Ruby's name": (RUBY, "'%s' % $0", "$0"),
    "last part of Ruby's name": (RUBY, "File.basename($PROGRAM_NAME, '.rb')", "$0"),
    "file of Ruby's caller": (RUBY, "caller.find { |frame| !frame.include?('boot') }", "who calls it (caller)"),
    "Ruby's last caller": (RUBY, "caller_locations.last", "who calls it (caller)"),
    "Ruby's parent": (RUBY, "Process.ppid", "the pid of its parent process"),
}


def write(language, folder, expression):
    """A preload that keeps the value of an expression. Returns its environment."""
    before = "import os\n" if language is PYTHON else "\n"
    return language.write(folder, f"{before}VALUE = {expression}")[0]


@pytest.mark.parametrize("name", names(REFUSED))
def test_what_no_image_can_be_bound_to_is_refused(name, tmp_path):
    language, expression, what = REFUSED[name]
    env = write(language, tmp_path, expression)
    image = tmp_path / "x.img"
    result = support.freeze(image, [language.program], "--preload", language.preload(), env=env, cwd=tmp_path)
    place = f"boot{language.ending}:2"
    assert result.status == 2 and f"cannot freeze: {place} reads {what} while it boots" in result.err, result
    assert not image.exists()


def test_a_list_that_is_only_kept_is_renewed(tmp_path):
    source = "import sys\nfrom sys import argv\nclass Kept:\n    argv = sys.argv"
    env, _ = PYTHON.write(tmp_path, source)
    script = tmp_path / "app.py"
    script.write_text("import boot, sys\nprint(boot.argv, boot.Kept.argv, sys.argv, boot.argv is sys.argv)\n")
    image = support.frozen(tmp_path / "x.img", [PYTHON.program, script], "--preload", "boot", env=env)
    shown = [os.fspath(script), "a", "b"]
    assert support.thawed([image, "a", "b"], env=env).out == f"{shown} {shown} {shown} True\n"


def test_a_part_that_is_only_kept_is_renewed(tmp_path):
    source = """
import sys
if sys.argv:
    REST = sys.argv[1:]
COPIES = [sys.argv.copy(), sys.argv[:][1:]]
def main(last=sys.argv[2:], name=sys.argv[0]): return last, name
"""
    env, _ = PYTHON.write(tmp_path, source)
    script = tmp_path / "app.py"
    script.write_text("import boot\nprint(boot.REST, type(boot.REST), boot.COPIES, boot.main())\n")
    image = support.frozen(tmp_path / "x.img", [PYTHON.program, script], "--preload", "boot", env=env)
    for words in (["a", "b", "c"], []):
        ordinary = support.run([PYTHON.program, script, *words], env=env)
        assert support.thawed([image, *words], env=env).out == ordinary.out


@support.needs_ruby
def test_whoever_asks_for_the_nearest_caller_may(tmp_path):
    env, _ = RUBY.write(tmp_path, "require 'timeout'\nVALUE = caller[0].nil?, caller_locations(1, 1).size, caller(0).first")
    image = support.frozen(tmp_path / "x.img", [RUBY.program], "--preload", "./boot", env=env, cwd=tmp_path)
    ordinary = support.run([RUBY.program, "-e", "require './boot'; p VALUE"], env=env, cwd=tmp_path)
    assert support.thawed([image, "-e", "p VALUE"], env=env, cwd=tmp_path).out == ordinary.out


@support.needs_ruby
def test_a_name_that_is_only_kept_is_renewed(tmp_path):
    env, _ = RUBY.write(tmp_path, "VALUE = $0, ARGV")
    image = support.frozen(tmp_path / "x.img", [RUBY.program], "--preload", "./boot", env=env, cwd=tmp_path)
    assert support.thawed([image, "-e", "p VALUE, ARGV.singleton_methods", "a"], env=env).out == '["-e", ["a"]]\n[]\n'


def test_an_import_that_reads_arguments_is_left_to_the_main_part(tmp_path):
    env, _ = PYTHON.write(tmp_path, "import sys\nVALUE = list(sys.argv)")
    script = tmp_path / "app.py"
    script.write_text("import json\nimport boot\nprint(boot.VALUE[1:])\n")
    image = support.frozen(tmp_path / "x.img", [PYTHON.program, script], env=env)
    assert support.thawed([image, "a", "b"], env=env).out == "['a', 'b']\n"


def test_an_image_of_a_script_may_know_its_name(tmp_path):
    source = "import argparse, __main__\nVALUE = argparse.ArgumentParser().prog, __main__.__file__"
    env, _ = PYTHON.write(tmp_path, source)
    script = tmp_path / "app.py"
    script.write_text("import boot\nprint(*boot.VALUE)\n")
    image = support.frozen(tmp_path / "x.img", [PYTHON.program, "app.py"], "--preload", "boot", env=env, cwd=tmp_path)
    shown = f"app.py {script}\n"
    assert support.thawed([image], env=env, cwd=tmp_path).out == shown
    elsewhere = support.run([image], env=env, cwd="/")
    assert elsewhere.fell_back and elsewhere.out == shown, elsewhere


COMPARED = {
    "terminal": (PYTHON, "__import__('sys').stderr.isatty()", "standard error being no terminal"),
    "terminal by number": (PYTHON, "os.isatty(2)", "standard error being no terminal"),
    "umask": (PYTHON, "[mask := os.umask(0), os.umask(mask)][0]", "the umask (0022)"),
    "Ruby's terminal": (RUBY, "$stderr.tty?", "standard error being no terminal"),
    "Ruby's umask": (RUBY, "File.umask", "the umask (0022)"),
}


@pytest.mark.parametrize("name", names(COMPARED))
def test_what_can_be_compared_is(name, tmp_path):
    language, expression, words = COMPARED[name]
    env = write(language, tmp_path, expression)
    image = tmp_path / "x.img"
    with_umask = ["sh", "-c", 'umask 022; exec "$@"', "sh"]
    argv = [*with_umask, support.SNAPBOOT, "freeze", "-o", image, "--preload", language.preload(), "--", language.program]
    result = support.run(argv, env=env, log=False, cwd=tmp_path)
    assert result.status == 0, result
    if "terminal" in name:
        assert "variants (1 for terminals" in result.out, result
    else:
        assert f"depends on {words}, read by boot{language.ending}:2" in result.out, result
    same = support.thawed([*with_umask, *language.argv(image)], env=env, cwd=tmp_path)
    if "umask" in name:
        other = support.run(["sh", "-c", 'umask 077; exec "$@"', "sh", *language.argv(image)], env=env, cwd=tmp_path)
        assert other.fell_back and other.out != same.out, other
    else:
        assert same.out.strip() in ("False", "false")
        assert shown_on(language.argv(image), env, tmp_path)[0].decode().split()[-1] in ("True", "true")


@support.needs_ruby
def test_bundler_may_know_whether_there_is_a_terminal(tmp_path):
    """It asks in order to tell of missing gems, and there are none in a boot that succeeds."""
    (tmp_path / "Gemfile").write_text("")
    (tmp_path / "boot.rb").write_text("require 'bundler/setup'\n")
    env = support.environment(BUNDLE_GEMFILE=str(tmp_path / "Gemfile"))
    image = support.frozen(tmp_path / "x.img", [RUBY.program], "--preload", "./boot", env=env, cwd=tmp_path)
    argv = [image, "-e", "p $stdout.tty?"]
    assert support.thawed(argv, env=env, cwd=tmp_path).out == "false\n"
    shown = shown_on(argv, env | {"SNAPBOOT_LOG": "1"}, tmp_path)[0].decode()
    assert "true" in shown and "ordinary way" not in shown, shown


@both
def test_a_umask_that_the_boot_sets_is_set_after_the_thaw(language, tmp_path):
    env = write(language, tmp_path, "os.umask(0o027)" if language is PYTHON else "File.umask(0o027)")
    image = support.frozen(tmp_path / "x.img", [language.program], "--preload", language.preload(), env=env, cwd=tmp_path)
    show = "print('%o' % os.umask(0))" if language is PYTHON else "puts File.umask.to_s(8)"
    argv = [*language.argv(image)[:2], f"import os\n{show}" if language is PYTHON else show]
    assert support.thawed(argv, env=env, cwd=tmp_path).out == "27\n"
