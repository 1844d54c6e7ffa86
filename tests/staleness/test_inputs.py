"""What a boot depended on besides the code it loaded: names that were not there, data, lists, links. And what it did not depend on."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from common import support

from .one_script import Program

pytestmark = pytest.mark.sample(24, whole=True)

# A module of the standard library that is a file of its own here: some interpreters have most of them inside.
NATIVE = next(name for name in ("_json", "_bz2", "_queue") if name not in sys.builtin_module_names)
MAIN = "import helper\nprint(helper.ANSWER)\n"


@pytest.fixture
def python(tmp_path):
    program = Program(tmp_path, support.PYTHON, "main.py")
    program.write("main.py", MAIN)
    program.write("helper.py", "import argparse\nANSWER = argparse.__file__\n")
    return program


@pytest.fixture
def ruby(tmp_path):
    if support.RUBY is None:
        pytest.skip("there is no ruby")
    program = Program(tmp_path, support.RUBY, "main.rb")
    program.write("main.rb", "puts HELPER\n")
    program.write("lib/helper.rb", "HELPER = 'first'\n")
    return program


# ---- names that were not there ----


@pytest.mark.parametrize("name", ["argparse.py", "argparse/__init__.py", "argparse.pyc", "helper/__init__.py", f"{NATIVE}.so"])
def test_a_new_module_beside_the_script(python, name):
    python.write("helper.py", f"import argparse, {NATIVE}\nANSWER = 1\n")
    python.frozen("--preload", "helper")
    new = python.write(name, "raise ImportError('mine')\n")
    assert python.is_stale_for(new)
    new.unlink()
    assert python.is_fresh()


def test_a_new_module_in_pythonpath(python):
    places = [python.folder / "first", python.folder / "second"]
    for place in places:
        place.mkdir()
    shutil.move(python.folder / "helper.py", places[1])
    python.env["PYTHONPATH"] = ":".join(map(str, places))
    python.frozen("--preload", "helper")
    new = python.write("first/helper.py", "ANSWER = 'shadow'\n")
    assert python.is_stale_for(new)
    assert python.run().out == "shadow\n"


def test_a_place_in_pythonpath_that_appears(python):
    python.env["PYTHONPATH"] = str(python.folder / "later/lib")
    python.frozen("--preload", "helper")
    python.write("later/lib/argparse.py", "")
    assert python.is_stale_for(python.folder / "later")


def venv(python, *packages):
    """Give the program an environment of its own, with these files in site-packages. Returns that folder."""
    subprocess.run([support.PYTHON, "-m", "venv", "--without-pip", python.folder / "venv"], check=True)
    python.runtime = python.folder / "venv/bin/python"
    (place,) = python.folder.glob("venv/lib/python*/site-packages")
    for name, content in packages:
        (place / name).write_text(content)
    return place


def test_a_new_file_in_site_packages(python):
    place = venv(python, ("zz_package.py", ""))
    python.write("helper.py", "import zz_package\ntry:\n    import zz_absent\nexcept ImportError:\n    pass\nANSWER = 1\n")
    python.frozen("--preload", "helper")
    (place / "unrelated.py").write_text("")
    (place / "unrelated-1.0.dist-info").mkdir()
    assert python.is_fresh()
    (place / "zz_absent.py").write_text("")
    assert python.is_stale_for(place / "zz_absent.py")
    (place / "zz_absent.py").unlink()
    (place / "zz_absent").mkdir()
    assert python.is_stale_for(place / "zz_absent"), "a package without a file of its own"
    (place / "zz_absent").rmdir()
    (place / "zz_package").mkdir()
    assert python.is_fresh(), "no package, and the module is found"


def test_files_that_site_obeys_come_and_go(python):
    """Lines of .start files name functions that every start calls."""
    place = venv(python, ("first.pth", "# nothing\n"))
    python.frozen("--preload", "helper")
    for name in ("second.pth", "first.pth", *(["third.start"] if sys.version_info >= (3, 15) else [])):
        path = place / name
        before = path.read_text() if path.exists() else None
        if before is None:
            path.write_text("# nothing\n")
        else:
            path.unlink()
        assert python.run().fell_back and str(place) in " ".join(python.why())
        if before is None:
            path.unlink()
        else:
            path.write_text(before)
        assert python.is_fresh()
    (place / "first.pth").write_text("# other!!!\n")
    assert python.is_stale_for(place / "first.pth")


def test_a_folder_that_the_program_lists_itself(python):
    """Besides `site` and the importers, which report what they look for."""
    place = venv(python, ("first.pth", "# nothing\n"))
    python.write("helper.py", f"import os\nANSWER = len(os.listdir({str(place)!r}))\n")
    python.frozen("--preload", "helper")
    (place / "anything.txt").touch()
    assert python.run().fell_back and str(place) in " ".join(python.why())


def test_sitecustomize_appears(python):
    """Before the standard library, where Debian has one."""
    place = python.folder / "early"
    place.mkdir()
    python.env["PYTHONPATH"] = str(place)
    python.frozen("--preload", "helper")
    new = python.write("early/sitecustomize.py", "print('mine')\n")
    assert python.is_stale_for(new)


@pytest.mark.parametrize("how", ["here", "elsewhere"])
def test_a_new_module_where_a_bare_interpreter_is_started(tmp_path, how):
    """The first entry of its path is another one in every start."""
    frozen_in, started_in = tmp_path / "here", tmp_path / how
    for place in {frozen_in, started_in}:
        place.mkdir()
    env = support.environment(PYTHONDONTWRITEBYTECODE="1")
    image = support.frozen(
        tmp_path / "app.img", [support.PYTHON], "--preload", "argparse", env=env, cwd=frozen_in
    )
    ask = [image, "-c", "import argparse; print(argparse.__file__)"]
    (started_in / "script.py").write_text("import argparse; print(argparse.__file__)")
    ordinary = support.thawed(ask, env=env, cwd=started_in).out
    assert support.thawed([image, started_in / "script.py"], env=env).out == ordinary
    (started_in / "unrelated.py").write_text("")
    (started_in / "argparse").mkdir()
    assert support.thawed(ask, env=env, cwd=started_in).out == ordinary
    (started_in / "argparse.py").write_text("")
    for argv, cwd in ((ask, started_in), ([image, started_in / "script.py"], tmp_path)):
        result = support.run(argv, env=env, cwd=cwd)
        assert result.fell_back and result.out == f"{started_in}/argparse.py\n", result


def test_modules_of_the_folder_of_a_bare_interpreter(tmp_path):
    """They were found there, so they shadow nothing."""
    (tmp_path / "mine.py").write_text("ANSWER = 1\n")
    env = support.environment(PYTHONDONTWRITEBYTECODE="1")
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "mine", env=env, cwd=tmp_path)
    assert support.thawed([image, "-c", "import mine; print(mine.ANSWER)"], env=env, cwd=tmp_path).out == "1\n"


@pytest.mark.parametrize("name", ["helper.rb", "json.rb"])
def test_a_new_feature_earlier_on_the_load_path(ruby, name):
    (ruby.folder / "early").mkdir()
    ruby.write("lib/helper.rb", "require 'json'\nHELPER = 'first'\n")
    ruby.env["RUBYLIB"] = f"{ruby.folder}/early:{ruby.folder}/lib"
    ruby.frozen("--preload", "helper")
    new = ruby.write(f"early/{name}", "HELPER = 'shadow'\n")
    assert ruby.is_stale_for(new)
    new.unlink()
    ruby.write("early/other.rb", "")
    assert ruby.is_fresh()


def test_a_new_version_of_a_gem(ruby):
    home = ruby.folder / "gems"

    def gem(version):
        ruby.write(f"gems/gems/zz-{version}/lib/zz.rb", f"HELPER = '{version}'\n")
        ruby.write(
            f"gems/specifications/zz-{version}.gemspec",
            f"Gem::Specification.new {{ |s| s.name = 'zz'; s.version = '{version}'; s.summary = s.author = 'x' }}\n",
        )

    gem("1.0")
    ruby.env.update(GEM_HOME=str(home), GEM_PATH=str(home))
    ruby.frozen("--preload", "zz")
    assert ruby.run().out == "1.0\n"
    gem("2.0")
    assert ruby.is_stale_for(home / "specifications")


def test_a_gemfile_and_its_lock(ruby):
    if not shutil.which("bundle"):
        pytest.skip("there is no bundler")
    ruby.write("Gemfile", "")
    ruby.write("Gemfile.lock", "GEM\n  specs:\n\nPLATFORMS\n  ruby\n\nDEPENDENCIES\n\nBUNDLED WITH\n   2.3.15\n")
    ruby.write("lib/helper.rb", "require 'bundler/setup'\nHELPER = 1\n")
    ruby.env.update(RUBYLIB=str(ruby.folder / "lib"), BUNDLE_GEMFILE=str(ruby.folder / "Gemfile"))
    ruby.frozen("--preload", "helper")
    for name in ("Gemfile", "Gemfile.lock"):
        before = (ruby.folder / name).read_text()
        ruby.write(name, before + "\n")
        assert ruby.is_stale_for(ruby.folder / name), name
        ruby.write(name, before)
        assert ruby.is_fresh()


# ---- what was read, listed or followed: the same in both languages ----


@pytest.fixture(params=["python", "ruby"])
def reader(request, tmp_path):
    """A program that reads data/file, lists data/list, asks for data/none and data/way/none, and follows data/link, when it is loaded."""
    if request.param == "python":
        program = Program(tmp_path, support.PYTHON, "main.py")
        program.write("main.py", MAIN)
        program.write(
            "helper.py",
            "import os\nHERE = os.path.dirname(os.path.abspath(__file__)) + '/data/'\n"
            "ANSWER = [open(HERE + 'file').read(), sorted(os.listdir(HERE + 'list')), os.path.exists(HERE + 'none'),\n"
            "    os.path.exists(HERE + 'way/none'),\n"
            "    os.path.isdir(HERE + 'folder'), os.readlink(HERE + 'link'), open(HERE + 'link').read()]\n"
            "with open(HERE + '../out/log', 'a') as log: log.write('x')\n",
        )
        program.options = ["--preload", "helper"]
    else:
        if support.RUBY is None:
            pytest.skip("there is no ruby")
        program = Program(tmp_path, support.RUBY, "main.rb")
        program.write("main.rb", "p ANSWER\n")
        program.write(
            "helper.rb",
            "HERE = __dir__ + '/data/'\n"
            "ANSWER = [File.read(HERE + 'file'), Dir.children(HERE + 'list').sort, File.exist?(HERE + 'none'),\n"
            "    File.exist?(HERE + 'way/none'),\n"
            "    File.directory?(HERE + 'folder'), File.readlink(HERE + 'link'), File.read(HERE + 'link')]\n"
            "File.write(HERE + '../out/log', 'x', mode: 'a')\n",
        )
        program.options = ["--preload", "./helper"]
    for name, content in {"file": "first", "other": "first", "list/a": "", "folder/x": "", "way/x": ""}.items():
        program.write(f"data/{name}", content)
    (tmp_path / "data/link").symlink_to("file")
    return program.frozen(*program.options)


def test_a_data_file_edited_in_the_same_second_with_the_same_size(reader):
    path = reader.folder / "data/file"
    before = path.stat()
    path.write_text("other")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert reader.is_stale_for(path)


def test_a_data_file_that_goes_away(reader):
    (reader.folder / "data/file").unlink()
    assert reader.is_stale_for(reader.folder / "data/file")


def test_a_listed_directory_gets_a_file(reader):
    new = reader.write("data/list/b", "")
    assert reader.is_stale_for(new.parent)
    new.unlink()
    assert reader.is_fresh()


def test_an_absent_file_appears(reader):
    reader.write("data/unrelated", "")
    assert reader.is_fresh()
    assert reader.is_stale_for(reader.write("data/none", ""))


def test_a_directory_that_was_only_on_the_way_goes_away(reader):
    shutil.rmtree(reader.folder / "data/way")
    assert reader.is_fresh()
    assert reader.is_stale_for(reader.write("data/way/none", ""))


def test_a_directory_goes_away_or_becomes_a_file(reader):
    folder = reader.folder / "data/folder"
    shutil.rmtree(folder)
    assert reader.is_stale_for(folder)
    folder.write_text("")
    assert reader.is_stale_for(folder)
    folder.unlink()
    folder.mkdir()
    assert reader.is_fresh()


def test_a_link_is_pointed_elsewhere(reader):
    link = reader.folder / "data/link"
    link.unlink()
    link.symlink_to("other")
    assert reader.is_stale_for(link), "the same content, but the program has read the link"


@pytest.mark.parametrize("reader", ["ruby"], indirect=True)
def test_a_file_becomes_a_link(reader):
    """Where a program asked what leads to what, as Ruby does for every feature; Python follows links without asking."""
    shutil.copytree(reader.folder / "data", reader.folder / "copy", symlinks=True)
    helper = reader.folder / "helper.rb"
    helper.rename(reader.folder / "elsewhere.rb")
    helper.symlink_to("elsewhere.rb")
    assert reader.is_stale_for(helper)


@pytest.mark.parametrize("change", ["touched", "copied"])
def test_the_same_content_stays_fresh(reader, change):
    path = reader.folder / "data/file"
    if change == "touched":
        os.utime(path)
    else:
        shutil.copy2(path, path.with_name("copy"))
        os.replace(path.with_name("copy"), path)
    assert reader.is_fresh()


def test_what_snapboot_python_and_the_program_write_stays_fresh(reader):
    for name in ("out/log", "out/other.log", "data/app.img", "helper.pyc~", "notes.txt"):
        reader.write(name, "more")
    (reader.folder / "__pycache__").mkdir()
    reader.write("__pycache__/helper.cpython-311.pyc", "")
    reader.write("data/list/__pycache__", "")
    shutil.copy2(reader.image, reader.folder / "second.img")
    assert reader.is_fresh()


def test_writing_an_image_beside_the_script_keeps_it_fresh(reader):
    """The directory of the image is asked and listed; its times change with every freeze and thaw."""
    reader.image = reader.folder / "app.img"
    for _ in range(2):
        reader.frozen(*reader.options)
    os.utime(reader.folder / "data/file")
    assert reader.is_fresh()
    assert reader.image.with_name("app.img.seen").exists()
    assert reader.is_fresh()


def test_content_policy_asks_again_whatever_the_times(reader):
    reader.frozen(*reader.options, "--policy", "content")
    for folder in (reader.folder, reader.folder / "data", reader.folder / "data/list"):
        os.utime(folder)
    assert reader.is_fresh()
    assert reader.is_stale_for(reader.write("data/none", ""))


def test_trust_asks_for_nothing(reader):
    reader.frozen(*reader.options, "--policy", "trust")
    reader.write("data/none", "")
    (reader.folder / "data/file").unlink()
    assert reader.is_fresh()


def test_an_edit_while_the_program_boots_voids_the_freeze(reader):
    """What was read is recorded as it was then."""
    before = reader.image.read_bytes()
    helper = reader.folder / ("helper.py" if reader.runtime == support.PYTHON else "helper.rb")
    change = f"touch -d 2001-01-01 {reader.folder}/data/file"
    calls = {"py": f"import os; os.system({change!r})\n", "rb": f"system({change!r})\n"}
    helper.write_text(helper.read_text() + calls[helper.suffix[1:]])
    result = reader.freeze(*reader.options)
    assert result.status == 0, "the boot itself has changed it"
    # Somebody else: a process that was there before.
    fifo = reader.folder / "fifo"
    os.mkfifo(fifo)
    waits = {"py": f"open({str(fifo)!r}).read()\n", "rb": f"File.read({str(fifo)!r})\n"}
    helper.write_text(re.sub(r".*touch.*\n", "", helper.read_text()) + waits[helper.suffix[1:]])
    other = subprocess.Popen(["sh", "-c", f"exec 3>{fifo}; echo edited > {reader.folder}/data/file"])
    shutil.copy2(reader.image, reader.folder / "kept.img")
    before = reader.image.read_bytes()
    result = reader.freeze(*reader.options)
    other.wait()
    assert result.status == 1 and "data/file changed" in result.err, result
    assert reader.image.read_bytes() == before


def test_no_trace_of_the_watch_is_left(tmp_path):
    """Neither in the thawed process nor in what it starts."""
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "json")
    source = (
        "import importlib.machinery as m, re, subprocess\n"
        "status = open('/proc/self/status').read()\n"
        "print(re.findall(r'(?:Seccomp|NoNewPrivs|TracerPid):.*', status))\n"
        "print(m.FileFinder.find_spec.__module__, m.FileFinder.find_spec.__code__.co_filename)\n"
        "print(m.FileFinder._fill_cache.__code__.co_filename)\n"
    )
    thawed, ordinary = (support.run([program, "-c", source]) for program in (image, support.PYTHON))
    assert thawed.out == ordinary.out and "Seccomp:\\t0" in thawed.out.replace("\t", "\\t"), thawed


def test_a_set_user_id_program_in_a_boot(tmp_path):
    """As root the filter needs no flag that would take its privilege away; without privileges it has none to begin with."""
    source = tmp_path / "mine.py"
    source.write_text("STATUS = [line for line in open('/proc/self/status') if line.startswith('NoNewPrivs')]\n")
    env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "mine", env=env)
    flag = support.thawed([image, "-c", "import mine; print(mine.STATUS[0].split()[1])"], env=env).out.strip()
    assert flag == ("0" if support.IS_ROOT else "1")


def test_where_a_boot_cannot_be_watched(tmp_path):
    """Another supervisor of system calls is there already: a refusal that says what to do."""
    outer = support.cc(
        """
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <stddef.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
            struct sock_filter lines[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            };
            struct sock_fprog program = { 4, lines };
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
            return execv(argv[1], argv + 1);
        }
        """,
        tmp_path / "outer",
    )
    image = tmp_path / "app.img"
    result = support.run([outer, support.SNAPBOOT, "freeze", "-o", image, "--", support.PYTHON], log=False)
    assert result.status == 2 and "cannot watch which files" in result.err and "`snapboot check` says" in result.err, result
    assert [path.name for path in tmp_path.iterdir()] == [pathlib.Path(outer).name]
