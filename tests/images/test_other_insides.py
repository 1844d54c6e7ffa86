"""A runtime of another inside than the one that Snapboot knows: what needs that inside is off, and every start is right.

Each test changes what a copy of the installation, or the runtime, expects.
"""

import json
import runpy
import shutil
import sys
import types

import pytest
from common import installed, support

pytestmark = pytest.mark.sample(8)

FRONT_END = "python/snapboot/front_end/"
RUBY_LAYOUT = ("ruby/lib/snapboot/front_end/object_header.rb", "  FROZEN = 1 << 11\n", "  FROZEN = 1 << 10\n")


@pytest.fixture(scope="module")
def other_ruby(tmp_path_factory):
    """A command that expects another layout of Ruby's objects."""
    top = tmp_path_factory.mktemp("other") / "installation"
    command = installed.copy(top)
    installed.edit(top, *RUBY_LAYOUT)
    return command


def freeze(command, image, words, *options, **more):
    bound = support.bound_to_variables(words[0])
    return support.run([command, "freeze", "-o", image, *bound, *options, "--", *words], log=False, **more)


@support.needs_ruby
@pytest.mark.parametrize("words", [[], ["-e", "p 1"]], ids=["bare", "code"])
def test_a_ruby_of_other_objects_is_not_frozen_without_a_script(words, other_ruby, tmp_path):
    result = freeze(other_ruby, tmp_path / "app.img", [support.RUBY, *words])
    assert result.status != 0 and "cannot take over the main script: strings are not laid out as expected" in result.err, result
    assert not (tmp_path / "app.img").exists()


@support.needs_ruby
def test_a_ruby_of_other_objects_runs_a_script_by_the_name_it_was_frozen_with(other_ruby, tmp_path):
    (tmp_path / "program.rb").write_text("p __FILE__, $0, __dir__, ARGV, $0.frozen?, __FILE__.frozen?\n")
    image = tmp_path / "app.img"
    words = [support.RUBY, "program.rb"]
    result = freeze(other_ruby, image, words, cwd=tmp_path)
    assert result.status == 0, result
    (tmp_path / "below").mkdir()
    for folder, name in ((tmp_path, "program.rb"), (tmp_path / "below", tmp_path / "program.rb")):
        ordinary = support.run([support.RUBY, name, "a"], cwd=folder, log=False)
        started = support.run([image, "a"], cwd=folder)
        assert (started.status, started.out) == (0, ordinary.out), (ordinary, started)
        assert started.fell_back == (folder != tmp_path), started


@support.needs_ruby
@pytest.mark.parametrize("code", ["ARGV.freeze", "$stdout.freeze"])
def test_a_ruby_of_other_objects_is_not_frozen_when_the_program_has_frozen_what_a_thaw_renews(code, other_ruby, tmp_path):
    (tmp_path / "boot.rb").write_text(code + "\n")
    program = tmp_path / "program.rb"
    program.write_text("require_relative 'boot'\nputs 1\n")
    result = freeze(other_ruby, tmp_path / "app.img", [support.RUBY, program], "--preload", tmp_path / "boot.rb")
    assert result.status != 0 and "objects are not laid out as expected in this Ruby" in result.err, result


SECRET = """\
KEPT = ["key #{ENV["APP_SECRET"]}", ENV["APP_SECRET"]]
KEPT.each(&:freeze)
"""


@support.needs_ruby
def test_a_ruby_of_other_objects_has_no_secret_in_an_image(other_ruby, tmp_path):
    """Strings that hold one are frozen, and stay so: whatever comes of the freeze, no start shows the value of another."""
    (tmp_path / "boot.rb").write_text(SECRET)
    program = tmp_path / "program.rb"
    program.write_text("require_relative 'boot'\np KEPT, KEPT.map(&:frozen?)\n")
    image, boot = tmp_path / "app.img", tmp_path / "boot.rb"
    env = support.environment(APP_SECRET="Zk3vQ8xT1mN5bR7w")
    result = freeze(other_ruby, image, [support.RUBY, program], "--preload", boot, env=env)
    assert result.status != 0 and "APP_SECRET" in result.err, result


@pytest.fixture
def other_python(tmp_path):
    """Edits a copy of the installation. Returns its command."""

    def make(name, before, after):
        top = tmp_path / "installation"
        command = installed.copy(top)
        installed.edit(top, FRONT_END + name, before, after)
        return command

    return make


ECHO = "import os, sys\nprint(sys.argv, sorted(os.environ.items() - {('SNAPBOOT_LOG', '1')}))\n"


def test_a_python_of_other_bytes_reads_its_arguments_from_proc(other_python, tmp_path):
    command = other_python("process.py", "CONTENT = bytes.__basicsize__ - 1\n", "CONTENT = bytes.__basicsize__ + 7\n")
    program, image = tmp_path / "program.py", tmp_path / "app.img"
    program.write_text(ECHO)
    result = freeze(command, image, [support.PYTHON, program])
    assert result.status == 0, result
    env = support.environment(SOME="value")
    ordinary = support.run([support.PYTHON, program, "a", "", "é"], env=env, log=False)
    started = support.run([image, "a", "", "é"], env=env)
    assert (started.status, started.out, started.fell_back) == (0, ordinary.out, False), (ordinary, started)


SEEDS = "import random\nrandom.seed(3)\n"


def test_a_program_is_not_frozen_where_nobody_sees_who_seeds_a_generator(other_python, tmp_path):
    command = other_python("seeding.py", 'if code.co_freevars != ("__class__",):', 'if code.co_freevars != ("other",):')
    (tmp_path / "boot.py").write_text(SEEDS)
    program = tmp_path / "program.py"
    program.write_text("import boot\nprint(boot.random.random())\n")
    env = support.environment(PYTHONPATH=str(tmp_path))
    result = freeze(command, tmp_path / "app.img", [support.PYTHON, program], "--preload", "boot", env=env)
    assert result.status != 0 and "who seeds random numbers cannot be seen" in result.err, result


OWN_RANDOM = {
    "functions": "def random(): return 4\n",
    "class": "class Random:\n    def seed(self): print('seeded')\n    def random(self): return 5\nrandom = Random().random\n",
}


@pytest.mark.parametrize("kind", OWN_RANDOM)
def test_a_module_named_random_is_left_alone(kind, tmp_path):
    (tmp_path / "random.py").write_text(OWN_RANDOM[kind])
    (tmp_path / "boot.py").write_text("import random\n")
    program = tmp_path / "program.py"
    program.write_text("import boot\nprint(boot.random.random())\n")
    env = support.environment(PYTHONPATH=str(tmp_path))
    ordinary = support.run([support.PYTHON, program], env=env, log=False)
    image = support.frozen(tmp_path / "app.img", [support.PYTHON, program], "--preload", "boot", env=env)
    assert support.thawed([image], env=env).out == ordinary.out


def test_a_python_that_flushes_nothing_after_a_script_has_no_image(other_python, tmp_path):
    command = other_python("trampoline.py", 'self._stand_in = StandIn("stderr"', 'self._stand_in = StandIn("nothing"')
    program, image = tmp_path / "program.py", tmp_path / "app.img"
    program.write_text("print(1)\n")
    result = freeze(command, image, [support.PYTHON, program])
    assert result.status != 0 and not image.exists(), result


def test_an_image_is_bound_to_settings_where_nobody_sees_who_reads_them(other_python, tmp_path):
    command = other_python("settings_reads.py", "return gc.get_referents(kind.__dict__)[0]", "return dict(kind.__dict__)")
    program, image = tmp_path / "program.py", tmp_path / "app.img"
    program.write_text(SETTINGS)
    env = support.environment(PYTHONIOENCODING="utf-8")
    result = freeze(command, image, [support.PYTHON, program], env=env)
    assert result.status == 0, result
    for encoding in ("utf-8", "latin-1"):
        changed = {**env, "PYTHONIOENCODING": encoding}
        ordinary = support.run([support.PYTHON, program], env=changed, log=False)
        started = support.run([image], env=changed)
        assert (started.status, started.out) == (0, ordinary.out), (ordinary, started)
        assert started.fell_back == (encoding != "utf-8"), started


# Put before Python's own library: answers about its configuration otherwise than its memory is.
CONFIGURATION = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
typedef void *(*Answer)(void);
typedef void *(*Item)(void *, const char *);
typedef int (*Put)(void *, const char *, void *);
typedef void *(*Number)(long);
void *_Py_GetConfigsAsDict(void) {
    void *all = ((Answer)dlsym(RTLD_NEXT, "_Py_GetConfigsAsDict"))();
    void *fields = ((Item)dlsym(RTLD_DEFAULT, "PyDict_GetItemString"))(all, "pre_config");
    ((Put)dlsym(RTLD_DEFAULT, "PyDict_SetItemString"))(fields, "%s", ((Number)dlsym(RTLD_DEFAULT, "PyLong_FromLong"))(%d));
    return all;
}
"""
# A field whose value occurs nowhere behind the others; and one that does not follow the memory that was changed.
OTHER_ANSWERS = {"other fields": ("dev_mode", 77), "constant": ("utf8_mode", 0), "as known": ("no_field", 0)}
SETTINGS = """\
import locale, os, sys
print(sys.flags.utf8_mode, locale.getpreferredencoding(False), sys.stdout.encoding, sys.stdout.errors, os.environ.get("LC_CTYPE"))
print(open(os.devnull).encoding)
"""


@pytest.mark.parametrize("kind", OTHER_ANSWERS)
def test_an_image_holds_a_process_for_each_encoding_where_the_place_of_utf8_mode_is_unknown(kind, tmp_path):
    if "libpython" not in support.run(["ldd", support.PYTHON], log=False).out:
        pytest.skip("this Python has no library that another one can stand before")
    library = support.cc(CONFIGURATION % OTHER_ANSWERS[kind], tmp_path / "configuration.so", "-shared", "-fPIC")
    program, image = tmp_path / "program.py", tmp_path / "app.img"
    program.write_text(SETTINGS)
    env = support.environment(LANG="C.UTF-8", LD_PRELOAD=str(library))
    support.frozen(image, [support.PYTHON, program], env=env)
    for locale in ("C.UTF-8", "C"):
        changed = {**env, "LANG": locale}
        ordinary = support.run([support.PYTHON, program], env=changed, log=False)
        started = support.run([image], env=changed)
        assert (started.status, started.out) == (0, ordinary.out), (ordinary, started)
        assert not started.fell_back, started
    told = json.loads(support.run([support.SNAPBOOT, "inspect", "--json", image], log=False).out)
    assert told["variants"] == (1 if kind == "as known" else 2), told


def test_a_function_which_of_another_form_keeps_its_code(monkeypatch, tmp_path):
    """It finds the link to an image then, as the shell does. Python's own finds the program."""
    program, image, link = tmp_path / "programs/app", tmp_path / "store/app.img", tmp_path / "links/app"
    for path in (program, image):
        path.parent.mkdir()
        support.write(path, b"")
    link.parent.mkdir()
    link.symlink_to(image)
    (image.parent / "program").symlink_to(program)
    find_programs = runpy.run_path(support.ROOT / "python/snapboot/front_end/which.py")["find_programs"]

    def other(name, path=None):
        return shutil.which(name, path=path)

    def closed(cmd, mode=1, path=None):
        return other(cmd, path)

    usual = types.FunctionType(shutil.which.__code__, vars(shutil), "which", shutil.which.__defaults__)
    for function, found in ((other, link), (closed, link), (len, None), (usual, program)):
        code = getattr(function, "__code__", None)
        monkeypatch.setitem(sys.modules, "shutil", types.SimpleNamespace(which=function))
        find_programs(str(program))
        monkeypatch.undo()
        assert (getattr(function, "__code__", None) is code) == (found is not program)
        assert found is None or function("app", path=str(link.parent)) == str(found)


# Stands before Ruby's library, so that its function seems to be Ruby's.
OTHER_LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
void ruby_init_stack(void *address) {
    ((void (*)(void *))dlsym(RTLD_NEXT, "ruby_init_stack"))(address);
}
"""


@support.needs_ruby
@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
def test_whatever_a_ruby_of_unknown_addresses_reads_binds_its_image(is_known, tmp_path):
    if "libruby" not in support.run(["ldd", support.RUBY], log=False).out:
        pytest.skip("this Ruby has no library that another one can stand before")
    library = support.cc(OTHER_LIBRARY, tmp_path / "other.so", "-shared", "-fPIC")
    (tmp_path / "boot.rb").write_text("VALUE = [ENV['HOME']]\n")
    program, image = tmp_path / "program.rb", tmp_path / "app.img"
    program.write_text("require_relative 'boot'\np VALUE\n")
    env = support.environment(HOME=str(tmp_path), **({} if is_known else {"LD_PRELOAD": str(library)}))
    support.frozen(image, [support.RUBY, program], "--preload", tmp_path / "boot.rb", env=env)
    other = tmp_path / "other"
    other.mkdir()
    for home in (tmp_path, other):
        started = support.run([image], env={**env, "HOME": str(home)})
        assert (started.status, started.out) == (0, f'["{home}"]\n'), started
        assert started.fell_back == (home == other and not is_known), started


# Its constructor changes what the freezer is about to change, and so to find.
OTHER_MALLOC = """
#include <malloc.h>
__attribute__((constructor)) static void prepare(void) { mallopt(M_MMAP_MAX, 0); }
"""
GROWTH = """\
blocks = [bytearray(b"x" * size) for size in (1 << 10, 1 << 18, 1 << 22)]
if __name__ == "program":
    KEPT = blocks
else:
    import program
    for block in blocks + program.KEPT:
        for _ in range(4):
            block += bytes(block)
        assert block.count(b"x") == len(block)
    print(sum(map(len, blocks + program.KEPT)))
"""


def test_a_c_library_whose_malloc_is_not_found_serves_large_blocks(tmp_path):
    library = support.cc(OTHER_MALLOC, tmp_path / "malloc.so", "-shared", "-fPIC")
    program, image = tmp_path / "program.py", tmp_path / "app.img"
    program.write_text(GROWTH)
    env = support.environment(LD_PRELOAD=str(library), PYTHONPATH=str(tmp_path))
    support.frozen(image, [support.PYTHON, program], "--preload", "program", env=env)
    ordinary = support.run([support.PYTHON, program], env=env, log=False)
    assert ordinary.status == 0 and support.thawed([image], env=env).out == ordinary.out


PARSERS = {
    "as known": "PARSER = argparse.ArgumentParser()\n",
    "with other frames": """\
class Parser(argparse.ArgumentParser):
    def _get_formatter(self):
        return self.formatter_class(prog=self.prog)
PARSER = Parser()
""",
}


@pytest.mark.parametrize("kind", PARSERS)
def test_an_option_parser_of_another_form_binds_an_image_to_the_width_that_it_asks_for(kind, tmp_path):
    (tmp_path / "boot.py").write_text(f"import argparse\n{PARSERS[kind]}PARSER.add_argument('--x', help='some')\n")
    program, image = tmp_path / "program.py", tmp_path / "app.img"
    program.write_text("import boot\nprint(boot.PARSER.format_help())\n")
    env = support.environment(PYTHONPATH=str(tmp_path), COLUMNS="80")
    support.frozen(image, [support.PYTHON, program], "--preload", "boot", env=env)
    for columns in ("80", "20"):
        changed = {**env, "COLUMNS": columns}
        ordinary = support.run([support.PYTHON, program], env=changed, log=False)
        started = support.run([image], env=changed)
        assert (started.status, started.out) == (0, ordinary.out), (ordinary, started)
        assert started.fell_back == (columns == "20" and kind != "as known"), started
