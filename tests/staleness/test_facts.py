"""Facts about machine, user and process that the boot asked for are inputs; others do not count."""

import os
import resource
import shutil
import subprocess

import pytest
from common import support
from common.languages import PYTHON, RUBY, both

pytestmark = pytest.mark.sample(32)

SETTING = "/proc/sys/kernel/pid_max"


def in_namespace(*options):
    """The argv prefix that changes something in namespaces of its own. Skips where that is not permitted."""
    prefix = ["unshare", *([] if support.IS_ROOT else ["-Ur"]), *options]
    if not shutil.which("unshare") or subprocess.run([*prefix, "true"], capture_output=True).returncode:
        pytest.skip("namespaces are not permitted here")
    return prefix


def another_host():
    return [*in_namespace("-u"), "sh", "-c", 'hostname another-host; exec "$@"', "sh"]


def one_cpu():
    if not shutil.which("taskset") or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs taskset and two CPUs")
    return ["taskset", "-c", str(min(os.sched_getaffinity(0)))]


def cpus_off():
    """Another list of CPUs that are online, for whoever asks the kernel's files."""
    script = 'echo 0 >"$1"; mount --bind "$1" /sys/devices/system/cpu/online; shift; exec "$@"'
    prefix = [*in_namespace("-m", "--propagation", "private"), "sh", "-ec", script, "sh"]
    file = "/tmp/snapboot-test-online"
    if subprocess.run([*prefix, file, "true"], capture_output=True).returncode:
        pytest.skip("nothing may be mounted over /sys here")
    return [*prefix, file]


def other_setting():
    """Another content of a file that holds a setting of the kernel."""
    script = 'cat "$1" >"$2"; echo 7 >>"$2"; mount --bind "$2" "$1"; shift 2; exec "$@"'
    prefix = [*in_namespace("-m", "--propagation", "private"), "sh", "-ec", script, "sh", SETTING]
    file = "/tmp/snapboot-test-setting"
    if subprocess.run([*prefix, file, "true"], capture_output=True).returncode:
        pytest.skip("nothing may be mounted over /proc/sys here")
    return [*prefix, file]


def fewer_files():
    return ["sh", "-c", 'ulimit -n 123; exec "$@"', "sh"]


def nicer():
    return ["nice", "-n", "3"]


def another_user():
    if not support.IS_ROOT:
        pytest.skip("only root can become somebody else")
    return ["setpriv", "--reuid", "1", "--regid", "1", "--clear-groups"]


def another_group():
    if not support.IS_ROOT:
        pytest.skip("only root can change groups")
    return ["setpriv", "--groups", "4242"]


def another_directory():
    return ["sh", "-c", 'cd /; exec "$@"', "sh"]


def a_terminal():
    if not shutil.which("script"):
        pytest.skip("needs script")
    return ["terminal"]


ETC = "require 'etc'; "
SOCKET = "require 'socket'; "
# name: (Python, Ruby or None where it has no such question, what changes it, words of the reason)
FACTS = {
    "hostname": ("__import__('socket').gethostname()[::-1]", SOCKET + "Socket.gethostname", another_host, "hostname"),
    "uname": ("os.uname().nodename[::-1]", ETC + "Etc.uname[:nodename]", another_host, "hostname"),
    "node": ("__import__('platform').node()[::-1]", ETC + "Etc.uname[:nodename].to_s", another_host, "hostname"),
    "names": ("__import__('platform').uname()[1][::-1]", None, another_host, "hostname"),
    "affinity": ("len(os.sched_getaffinity(0))", ETC + "Etc.nprocessors", one_cpu, "CPUs that the process may use"),
    "cpus": ("os.cpu_count()", ETC + "Etc.sysconf(Etc::SC_NPROCESSORS_ONLN)", cpus_off, "CPUs"),
    "setting": (f"open({SETTING!r}).read()", f"File.read({SETTING!r})", other_setting, SETTING),
    "limit": (
        "__import__('resource').getrlimit(7)[0]", "Process.getrlimit(:NOFILE)[0]", fewer_files, "limit of open files"
    ),
    "limit by sysconf": ("os.sysconf('SC_OPEN_MAX')", ETC + "Etc.sysconf(Etc::SC_OPEN_MAX)", fewer_files, "limit of open files"),
    "nice value": ("os.getpriority(os.PRIO_PROCESS, 0)", "Process.getpriority(Process::PRIO_PROCESS, 0)", nicer, "nice value"),
    "user": ("os.getuid()", "Process.uid", another_user, "user and group"),
    "effective group": ("os.getegid()", "Process::GID.eid", another_user, "user and group"),
    "groups": ("os.getgroups()", "Process.groups.inspect", another_group, "supplementary groups"),
    "directory": ("os.getcwd()[::-1]", "Dir.pwd", another_directory, "current directory"),
    "directory by path": ("os.path.abspath('x')[::-1]", None, another_directory, "current directory"),
    "terminal": (
        "__import__('shutil').get_terminal_size().columns",
        "require 'io/console'; ($stdout.winsize[1] rescue 80)",
        a_terminal,
        "size of the terminal at standard output",
    ),
}


def frozen(language, tmp_path, expression, program=None):
    """An image with a preload that asks, and its environment."""
    # Ruby's require comes before the expression.
    load, _, value = expression.rpartition("; ")
    source = f"import os\nVALUE = {expression}" if language is PYTHON else f"{load}\nVALUE = {value}"
    env, _ = language.write(tmp_path, source)
    env["HOME"] = "/nonexistent"
    return support.frozen(
        tmp_path / "app.img", [program or language.program], "--preload", language.preload(), env=env, cwd=tmp_path
    ), env


def argv_of(language, image):
    argv = language.argv(image)
    if language is RUBY:  # the fallback must find it from anywhere
        argv[-1] = argv[-1].replace("'./boot'", repr(str(image.with_name("boot"))))
    return argv


@pytest.mark.parametrize(
    ("language", "fact"),
    [pytest.param(language, fact, id=f"{fact}-{language.name}", marks=support.needs_ruby if language is RUBY else ())
     for fact, (_, in_ruby, *_) in FACTS.items() for language in (PYTHON, RUBY) if language is PYTHON or in_ruby],
)  # fmt: skip
def test_a_fact_that_was_asked_for_is_an_input(language, fact, open_path):
    python, ruby, change, reason = FACTS[fact]
    changed = change()
    program = support.public_python() if language is PYTHON and change is another_user else language.program
    image, env = frozen(language, open_path, python if language is PYTHON else ruby, program)
    argv = argv_of(language, image)
    before = support.thawed(argv, env=env, cwd=open_path)
    assert before.status == 0, before
    if change is another_user:
        image.chmod(0o755)
        if subprocess.run([*changed, "test", "-x", image], cwd="/").returncode:
            pytest.skip("an ordinary user cannot reach this tree")
    if changed == ["terminal"]:
        script = ["script", "-qec", " ".join(["stty cols 123;", *map(quoted, argv)]), "/dev/null"]
        result = support.run(script, env=env, cwd=open_path)
        assert "123" in result.out and f"this has changed since the boot: {reason}" in result.out, result
        return
    result = support.run([*changed, *argv], env=env, cwd=open_path)
    what = "this file of the kernel" if reason == SETTING else "this"
    assert result.fell_back and f"{what} has changed since the boot: {reason};" in result.err, result
    if fact != "cpus":
        assert result.status != 0 or result.out != before.out, result


def quoted(word):
    return "'" + str(word).replace("'", "'\\''") + "'"


@both
@pytest.mark.parametrize("change", [another_host, one_cpu, cpus_off, fewer_files, another_group, another_directory, a_terminal])
def test_a_fact_that_was_not_asked_for_does_not_count(language, change, tmp_path):
    changed = change()
    image, env = frozen(language, tmp_path, "'done'")
    argv = argv_of(language, image)
    if changed == ["terminal"]:
        result = support.run(["script", "-qec", " ".join(map(quoted, argv)), "/dev/null"], env=env, cwd=tmp_path)
        assert result.out.strip() == "done", result
    else:
        assert support.thawed([*changed, *argv], env=env, cwd=tmp_path).out == "done\n"


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('platform').system()",
        "(__import__('platform').machine(), __import__('platform').release())",
        "os.uname().machine + os.uname()[2]",
        "__import__('sysconfig').get_platform()",
    ],
)
def test_whoever_wants_the_system_does_not_depend_on_the_host(expression, tmp_path):
    image, env = frozen(PYTHON, tmp_path, expression)
    changed = another_host()
    ask = [image, "-c", "import platform, os; print(platform.node() == os.uname().nodename)"]
    assert support.thawed([*changed, *ask], env=env).out == "True\n"


def test_multiprocessing_is_told_where_the_thawed_process_started(tmp_path):
    image, env = frozen(PYTHON, tmp_path, "__import__('multiprocessing.process').process.ORIGINAL_DIR")
    ask = [image, "-c", "import multiprocessing.process as p; print(p.ORIGINAL_DIR)"]
    (tmp_path / "there").mkdir()
    assert support.thawed(ask, env=env, cwd=tmp_path / "there").out == f"{tmp_path}/there\n"


def test_multiprocessing_is_told_of_the_topmost_directory(tmp_path):
    image = support.frozen(tmp_path / "app.img", [PYTHON.program], "--preload", "multiprocessing.process", cwd=tmp_path)
    ask = [image, "-c", "import multiprocessing.process as p; print(p.ORIGINAL_DIR)"]
    assert support.thawed([*another_directory(), *ask]).out == "/\n"


@pytest.mark.parametrize(
    ("module", "file", "name"),
    [("billiard.process", "billiard/process.py", "ORIGINAL_DIR"), ("any._vendor.rich", "any/_vendor/rich/__init__.py", "_IMPORT_CWD")],
)
def test_what_a_library_keeps_of_where_it_started_is_renewed(module, file, name, tmp_path):
    """Celery's form of multiprocessing, and rich where another package carries it along."""
    library, here, there = (tmp_path / name for name in ("library", "here", "there"))
    for folder in ((library / file).parent, here, there):
        folder.mkdir(parents=True)
    (library / file).write_text(f"import os\n{name} = os.path.abspath(os.getcwd())\n")
    env = support.environment(PYTHONPATH=str(library))
    image = support.frozen(tmp_path / "app.img", [PYTHON.program], "--preload", module, env=env, cwd=here)
    ask = [image, "-c", f"import {module} as p; print(p.{name})"]
    assert support.thawed(ask, env=env, cwd=there).out == f"{there}\n"


@support.needs_root
@both
def test_an_image_of_root_runs_for_others(language, open_path):
    """What the runtime itself asks at its start is no input."""
    program = support.public_python() if language is PYTHON else language.program
    env = support.environment(HOME="/nonexistent")
    image = support.frozen(open_path / "app.img", [program], "--preload", "json", env=env, cwd=open_path)
    image.chmod(0o755)
    option, code = ("-c", "import os; print(os.getuid())") if language is PYTHON else ("-e", "p Process.uid")
    if subprocess.run(support.as_nobody(["test", "-x", image]), cwd="/").returncode:
        pytest.skip("an ordinary user cannot reach this tree")
    result = support.thawed(support.as_nobody([image, option, code]), env=env, cwd="/")
    assert result.out == f"{support.NOBODY}\n", result


@both
def test_why_names_both_answers(language, tmp_path):
    python, ruby, _, _ = FACTS["limit"]
    image, env = frozen(language, tmp_path, python if language is PYTHON else ruby)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    why = [support.SNAPBOOT, "inspect", "--why", image]
    assert support.run(why, env=env, log=False, cwd=tmp_path).out == f"{image}: fresh\n"
    result = support.run([*fewer_files(), *why], env=env, log=False, cwd=tmp_path)
    assert result.status == 1 and f"limit of open files: {soft}/{hard} -> 123/123" in result.out, result
    result = support.run([support.SNAPBOOT, "inspect", image], env=env, log=False)
    assert f"limit of open files: {soft}/{hard}" in result.out, result
