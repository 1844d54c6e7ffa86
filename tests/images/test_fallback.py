"""An image that is stale, or cannot be used here, runs the original command as if there were no image."""

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess

import pytest
from common import support
from common.image_file import ImageFile
from common.waiting import settle

pytestmark = pytest.mark.sample(8, whole=True)

ASK = ["-c", "import helper; print(helper.ANSWER)"]


@pytest.fixture
def program(tmp_path):
    """A folder with a loaded module, and what freezes it: returns the folder and the environment."""
    (tmp_path / "helper.py").write_text("ANSWER = 'first!'\n")
    (tmp_path / "data").mkdir()
    return tmp_path, support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")


@pytest.fixture
def image(program):
    folder, env = program
    return support.frozen(folder / "app.img", [support.PYTHON], "--preload", "helper", env=env)


def stale(argv, env, answer, *words, **options):
    """Run an image; it must fall back for a reason with these words, and print `answer`."""
    result = support.run(argv, env=env, **options)
    assert result.fell_back and result.status == 0, result
    assert result.out == answer + "\n", result
    assert all(word in result.err for word in words), result


def test_a_fresh_image_is_used(program, image):
    assert support.thawed([image, *ASK], env=program[1]).out == "first!\n"


@pytest.mark.fault("a source was edited", "the ordinary start")
def test_an_edited_source(program, image):
    folder, env = program
    (folder / "helper.py").write_text("ANSWER = 'another'\n")
    stale([image, *ASK], env, "another", "stale", f"{folder}/helper.py")


def test_an_edit_that_leaves_size_and_time(program, image):
    folder, env = program
    source = folder / "helper.py"
    before = source.stat()
    source.write_text("ANSWER = 'second'\n")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert source.stat().st_size == before.st_size and source.stat().st_mtime_ns == before.st_mtime_ns
    stale([image, *ASK], env, "second", "stale", f"{folder}/helper.py")


def test_a_source_that_was_replaced_by_an_older_one(program, image):
    folder, env = program
    (folder / "new.py").write_text("ANSWER = 'second'\n")
    os.utime(folder / "new.py", (1, 1))
    os.rename(folder / "new.py", folder / "helper.py")
    stale([image, *ASK], env, "second", "stale", f"{folder}/helper.py")


@pytest.mark.fault("a source is gone", "the ordinary start")
def test_a_source_that_is_gone(program, image):
    folder, env = program
    os.unlink(folder / "helper.py")
    result = support.run([image, *ASK], env=env)
    assert result.fell_back and result.status == 1 and "No module named 'helper'" in result.err, result


def test_a_source_that_became_a_directory(program, image):
    folder, env = program
    os.unlink(folder / "helper.py")
    (folder / "helper.py").mkdir()
    (folder / "helper").mkdir()
    (folder / "helper/__init__.py").write_text("ANSWER = 'package'")
    stale([image, *ASK], env, "package", "stale", f"{folder}/helper")


def test_what_is_beside_the_sources_does_not_matter(program, image):
    folder, env = program
    (folder / "helper.log").write_text("a log")
    (folder / "data/new.py").write_text("")
    assert support.thawed([image, *ASK], env=env).out == "first!\n"


def test_edited_and_frozen_again(program, image):
    folder, env = program
    for number in range(3):
        (folder / "helper.py").write_text(f"ANSWER = {number}\n")
        stale([image, *ASK], env, str(number))
        support.frozen(image, [support.PYTHON], "--preload", "helper", env=env)
        assert support.thawed([image, *ASK], env=env).out == f"{number}\n"


@pytest.mark.fault("a source is edited while the program boots", "the freeze is void")
def test_an_edit_while_the_program_boots_makes_the_freeze_void(program):
    folder, env = program
    (folder / "slow.py").write_text(
        "import helper, os\n"
        f"open({str(folder / 'helper.py')!r}, 'w').write('ANSWER = 2')\n"
    )
    result = support.freeze(folder / "void.img", [support.PYTHON], "--preload", "slow", env=env)
    assert result.status != 0 and "helper.py" in result.err and "changed" in result.err, result
    assert not (folder / "void.img").exists()


LIBRARY = "int answer(void) { return %d; }"


@pytest.mark.fault("a shared library was replaced or removed", "the ordinary start")
def test_a_changed_library(program):
    folder, env = program
    library = support.cc(LIBRARY % 1, folder / "libanswer.so", "-shared", "-fPIC")
    (folder / "native.py").write_text(f"import ctypes\nlibrary = ctypes.CDLL({str(library)!r})\n")
    image = support.frozen(folder / "native.img", [support.PYTHON], "--preload", "native", env=env)
    ask = ["-c", "import native; print(native.library.answer())"]
    assert support.thawed([image, *ask], env=env).out == "1\n"
    support.cc(LIBRARY % 2, folder / "new.so", "-shared", "-fPIC")
    os.rename(folder / "new.so", library)
    stale([image, *ask], env, "2", "stale", str(library))
    os.unlink(library)
    result = support.run([image, *ask], env=env)
    assert result.fell_back and result.status == 1 and "libanswer.so" in result.err, result


@pytest.mark.fault(
    "a library was replaced by one of the same size and time",
    "the ordinary start; who runs keeps the old one",
)
def test_an_upgraded_extension_of_the_same_size_and_time(program):
    """As a package manager does it: another content, renamed over the old one, with the time that the package gives it."""
    folder, env = program
    source = "#define answer() %d\n" + EXTENSION
    include = subprocess.run(
        [support.PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('include'))"], capture_output=True, text=True
    ).stdout.strip()
    if not os.path.exists(f"{include}/Python.h"):
        pytest.skip("Python's headers are not there")
    options = ("-shared", "-fPIC", f"-I{include}")
    library = support.cc(source % 1, folder / "native.so", *options)
    image = support.frozen(folder / "native.img", [support.PYTHON], "--preload", "native", env=env)
    ask = ["-c", "import native; print(native.ANSWER)"]
    assert support.thawed([image, *ask], env=env).out == "1\n"
    old, running = library.stat(), subprocess.Popen(
        [image, "-c", "input(); import native; print(native.ANSWER)"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    new = support.cc(source % 2, folder / "new.so", *options)
    assert new.stat().st_size == old.st_size
    os.utime(new, ns=(old.st_atime_ns, old.st_mtime_ns))
    os.rename(new, library)
    stale([image, *ask], env, "2", "stale", str(library))
    assert running.communicate(b"\n", timeout=support.SECONDS)[0] == b"1\n", "who runs keeps the old one"


EXTENSION = """
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native", 0, -1};
PyMODINIT_FUNC PyInit_native(void) {
    PyObject *made = PyModule_Create(&module);
    PyModule_AddIntConstant(made, "ANSWER", answer());
    return made;
}
"""


@pytest.mark.fault("the interpreter was replaced", "the ordinary start")
def test_a_changed_interpreter(tmp_path):
    venv = tmp_path / "venv"
    made = subprocess.run([support.PYTHON, "-m", "venv", "--copies", "--without-pip", venv], capture_output=True)
    python = venv / "bin/python"
    if made.returncode or python.is_symlink():
        pytest.skip("this Python cannot make a virtual environment with a copy of itself")
    image = support.frozen(tmp_path / "app.img", [python])
    ask = ["-c", "import sys; print(sys.prefix)"]
    assert support.thawed([image, *ask]).out == f"{venv}\n"
    with open(python, "ab") as file:
        file.write(b"\0")
    stale([image, *ask], None, str(venv), "stale", "bin/python")


def test_a_changed_pyvenv_cfg(tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([support.PYTHON, "-m", "venv", "--without-pip", venv], check=True, capture_output=True)
    image = support.frozen(tmp_path / "app.img", [venv / "bin/python"])
    ask = ["-c", "import sys; print(sys.prefix)"]
    assert support.thawed([image, *ask]).out == f"{venv}\n"
    with open(venv / "pyvenv.cfg", "a") as file:
        file.write("# a comment\n")
    stale([image, *ask], None, str(venv), "stale", "pyvenv.cfg")


def test_another_environment(program, image):
    _, env = program
    for changed in ({"PYTHONHASHSEED": "1"}, {"LD_LIBRARY_PATH": "/"}):
        stale([image, *ASK], {**env, **changed}, "first!", "stale", "environment variable")
    stale([image, *ASK], {**env, "LC_ALL": "en_US.ISO-8859-1"}, "first!", "stale", "locale of text")
    stale([image, *ASK], {**env, "PYTHONWARNINGS": "ignore"}, "first!", "stale", "PYTHONWARNINGS")
    for changed in ({"TERM": "vt100"}, {"HOME": "/"}, {"PWD": "/"}, {"SSH_TTY": "x"}, {"ANYTHING": "1"}, {"LC_ALL": ""}):
        assert support.thawed([image, *ASK], env={**env, **changed}).out == "first!\n"


def test_a_variable_that_was_named(program):
    folder, env = program
    image = support.frozen(folder / "app.img", [support.PYTHON], "--env", "MODE", env={**env, "MODE": "a"})
    ask = ["-c", "import os; print(os.environ.get('MODE'))"]
    assert support.thawed([image, *ask], env={**env, "MODE": "a"}).out == "a\n"
    stale([image, *ask], {**env, "MODE": "b"}, "b", "stale", "MODE")
    stale([image, *ask], env, "None", "stale", "MODE")


def test_a_guard_argument(program):
    folder, env = program
    image = support.frozen(folder / "app.img", [support.PYTHON], "--guard=--test*", "--guard=-e", env=env)
    ask = ["-c", "import sys; print(sys.argv[1:])"]
    for argument in ("--test", "--testing", "-e"):
        stale([image, *ask, argument], env, f"['{argument}']", "guard")
    for argument in ("-test", "-ee", "x--test"):
        assert support.thawed([image, *ask, argument], env=env).out == f"['{argument}']\n"


@pytest.mark.fault("the caller passes a descriptor that the image needs", "the ordinary start")
def test_a_descriptor_that_the_caller_uses(program):
    folder, env = program
    (folder / "holder.py").write_text("import os\nends = os.pipe()\n")
    image = support.frozen(folder / "app.img", [support.PYTHON], "--preload", "holder", env=env)
    ask = ["-c", "import holder, os; os.write(holder.ends[1], b'x'); print(os.read(holder.ends[0], 1))"]
    assert support.thawed([image, *ask], env=env).out == "b'x'\n"
    (ends,) = [
        json.loads(line) for line in support.thawed([image, "-c", "import holder; print(list(holder.ends))"], env=env).out.splitlines()
    ]
    with open(os.devnull) as file:
        number = os.dup2(file.fileno(), ends[0])
        result = support.run([image, *ask], env=env, pass_fds=[number])
        os.close(number)
    assert result.fell_back and "in use by the caller" in result.err and result.out == "b'x'\n", result


# What a program sees of where it runs.
WITNESS = """
import json, os, signal, sys
fds = {}
for name in os.listdir("/proc/self/fd"):
    try: fds[name] = os.readlink("/proc/self/fd/" + name)
    except OSError: pass
fds = {n: t.split(":")[0] for n, t in fds.items() if not t.startswith("/proc/")}
old = os.umask(0)
print(json.dumps({
    "argv": sys.argv, "env": sorted(map(list, os.environ.items())), "fds": fds, "cwd": os.getcwd(), "umask": old,
    "ignored": [n for n in range(1, 32) if signal.getsignal(n) == signal.SIG_IGN],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), "stdin": sys.stdin.read(),
    "nice": os.nice(0), "session": os.getsid(0) == os.getpid(),
    "exe": os.readlink("/proc/self/exe"), "executable": sys.executable,
}))
"""


def prepare_child():
    """Runs in the child before exec: what a child inherits."""
    os.umask(0o027)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])
    os.setsid()


def test_a_fallback_passes_everything_on(program, image):
    folder, env = program
    (folder / "helper.py").write_text("ANSWER = 'edited'\n")
    strange = {**env, "STRANGE": "a=b\nc", "EMPTY": "", "UTF8": "\u00e4"}
    arguments = ["-c", WITNESS, "", "a b", "\u00e4\n", "*", "--", "-c"]
    with open(folder / "helper.py") as file:
        options = dict(
            env=strange, log=False, cwd=folder / "data", pass_fds=[file.fileno()], input=b"standard input",
            preexec_fn=prepare_child, restore_signals=False,
        )
        fallback = support.run([image, *arguments], **options)
        ordinary = support.run([support.PYTHON, *arguments], **options)
    assert fallback.status == 0, fallback
    assert json.loads(fallback.out) == json.loads(ordinary.out)
    assert fallback.err == ordinary.err


def test_a_thaw_inherits_as_an_ordinary_start_does(program, image):
    folder, env = program
    arguments = ["-c", WITNESS, "", "a b"]
    with open(folder / "helper.py") as file:
        options = dict(
            env={**env, "STRANGE": "a=b\nc"}, cwd=folder / "data", pass_fds=[file.fileno()], input=b"standard input",
            preexec_fn=prepare_child, restore_signals=False,
        )
        thawed = json.loads(support.thawed([image, *arguments], **options).out)
        ordinary = json.loads(support.run([support.PYTHON, *arguments], **options).out)
    assert thawed.pop("exe") == str(image) and ordinary.pop("exe") == support.PYTHON
    assert thawed == ordinary


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_the_exit_status_of_a_fallback(program, image, status):
    folder, env = program
    (folder / "helper.py").unlink()
    assert support.run([image, "-c", f"raise SystemExit({status})"], env=env).status == status
    assert support.run([image, "-c", "import os; os.kill(os.getpid(), 15)"], env=env).status == -15


def test_an_unset_log_says_nothing(program, image):
    folder, env = program
    (folder / "helper.py").write_text("ANSWER = 'edited'\n")
    for value in (None, "", "0"):
        quiet = env if value is None else {**env, "SNAPBOOT_LOG": value}
        result = support.run([image, *ASK], env=quiet, log=False)
        assert (result.out, result.err, result.status) == ("edited\n", "", 0)


def limit(which, value):
    """Sets a limit in the child."""
    return lambda: resource.setrlimit(which, (value, value))


@pytest.mark.fault("any limit on memory", "the thaw or the ordinary start")
def test_every_memory_limit(program, image):
    """Where an ordinary start works, the image works, thawed or not; where it fails, the image fails, and does not crash."""
    _, env = program
    outcomes = set()
    for megabytes in (4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 80, 100, 150, 200, 300, 500, 1000):
        preexec = limit(resource.RLIMIT_AS, megabytes << 20)
        ordinary = support.run([support.PYTHON, *ASK], env=env, preexec_fn=preexec)
        result = support.run([image, *ASK], env=env, preexec_fn=preexec)
        if ordinary.status == 0:
            assert (result.out, result.status) == (ordinary.out, 0), (megabytes, result)
        elif result.status != ordinary.status:  # the kernel kills what it has no room to start, the interpreter itself as well
            support.no_signal(result)
        outcomes.add((ordinary.status == 0, result.fell_back))
    assert (True, False) in outcomes, "with a generous limit it thaws"


@pytest.mark.fault("any limit on open files", "the thaw or the ordinary start")
def test_every_limit_of_open_files(program, image):
    _, env = program
    for files in (3, 4, 5, 6, 7, 8, 10, 16, 32, 101):
        preexec = limit(resource.RLIMIT_NOFILE, files)
        ordinary = support.run([support.PYTHON, *ASK], env=env, preexec_fn=preexec)
        result = support.run([image, *ASK], env=env, preexec_fn=preexec)
        if ordinary.status == 0:
            assert (result.out, result.status) == (ordinary.out, 0), (files, result)
        else:
            support.no_signal(result)


@pytest.mark.fault("another limit on the stack", "the thaw or the ordinary start")
def test_stack_limits(program):
    folder, env = program
    small, large = 4 << 20, 16 << 20
    image = folder / "app.img"
    support.frozen(image, [support.PYTHON], env=env, preexec_fn=limit(resource.RLIMIT_STACK, small))
    ask = ["-c", "import resource; print(resource.getrlimit(resource.RLIMIT_STACK)[0])"]
    same = support.thawed([image, *ask], env=env, preexec_fn=limit(resource.RLIMIT_STACK, small))
    assert same.out == f"{small}\n"
    below = support.run([image, *ask], env=env, preexec_fn=limit(resource.RLIMIT_STACK, small // 2))
    assert (below.out, below.status) == (f"{small // 2}\n", 0), below
    above = support.run([image, *ask], env=env, preexec_fn=limit(resource.RLIMIT_STACK, large))
    assert (above.out, above.status) == (f"{large}\n", 0), above


def patched(image, folder, section, record, field, value):
    """A copy of an image with one field of the first row changed, and right checksums."""
    copy = ImageFile(support.read(image))
    copy.set(record, field, copy.rows(section)[0], value)
    return support.write(folder / "patched.img", copy.seal())


def test_an_address_space_that_is_not_randomised(program, image):
    _, env = program
    personality = ctypes.CDLL(None).personality
    plain = dict(preexec_fn=lambda: personality(0x0040000))
    assert support.thawed([image, *ASK], env=env, **plain).out == "first!\n"


def test_images_age_well(program, image):
    """Access times and a changed mode of an input are no change of it; what matters is content."""
    folder, env = program
    settle()  # so that the next access time is another one
    (folder / "helper.py").read_text()
    assert support.thawed([image, *ASK], env=env).out == "first!\n"
    for change in (lambda: (folder / "helper.py").chmod(0o600), lambda: os.utime(folder / "helper.py")):
        change()
        result = support.run([image, *ASK], env=env)
        assert (result.out, result.status) == ("first!\n", 0), result


@support.needs_ruby
def test_ruby(tmp_path):
    (tmp_path / "helper.rb").write_text("ANSWER = 'first!'\n")
    image = support.frozen(tmp_path / "app.img", [support.RUBY], "--preload", "./helper", cwd=tmp_path)
    ask = ["-e", "require './helper'; puts ANSWER"]
    assert support.thawed([image, *ask], cwd=tmp_path).out == "first!\n"
    (tmp_path / "helper.rb").write_text("ANSWER = 'another'\n")
    stale([image, *ask], None, "another", "stale", "helper.rb", cwd=tmp_path)
    support.frozen(image, [support.RUBY], "--preload", "./helper", cwd=tmp_path)
    stale([image, *ask], support.environment(RUBYOPT="-W1"), "another", "stale", "RUBYOPT", cwd=tmp_path)


def test_setarch_and_exec_from_a_shell(program, image):
    _, env = program
    if not shutil.which("setarch"):
        pytest.skip("there is no setarch")
    assert support.thawed(["setarch", "-R", image, *ASK], env=env).out == "first!\n"
    script = 'exec -a "any name" "$0" "$@"'
    assert support.thawed(["bash", "-c", script, image, *ASK], env=env).out == "first!\n"
