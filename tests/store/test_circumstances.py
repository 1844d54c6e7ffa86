"""Circumstances of a start that nobody thinks of: it is as without Snapboot, and the store is whole afterwards."""

import os
import resource
import signal

import pytest
from common import support
from common.languages import both

from store.stores import Store, is_thawed
from store.test_hostile import hanging, write  # noqa: F401

pytestmark = pytest.mark.sample(12)

# Shows what a program gets, and ends in a way of its own.
SCRIPTS = {
    "python": """import os, signal, sys
print(len(os.environ), [len(word) for word in sys.argv], sys.argv[-1].encode("utf-8", "surrogateescape"))
print(signal.getsignal(signal.SIGCHLD), sys.stdin and sys.stdin.read(), os.path.exists("."))
sys.exit(7)
""",
    "ruby": """puts ENV.size, ARGV.map(&:bytesize).inspect, ARGV.last.b.inspect
puts Signal.trap("CHLD", "DEFAULT").inspect, ($stdin.closed? ? nil : $stdin.read).inspect, File.exist?(".")
exit 7
""",
}


def ignoring():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def without_stack_limit():
    resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def nowhere():
    """Goes to a directory, and removes it."""
    gone = f"/tmp/snapboot-gone-{os.getpid()}"
    os.mkdir(gone)
    os.chdir(gone)
    os.rmdir(gone)


NAMES = {"blanks": b"blanks and\nlines", "bytes": b"bytes \xff\xfe", "long": b"long/" + b"/".join([b"d" * 200] * 12)}
CRON = {"PATH": "/usr/bin:/bin", "LOGNAME": "root", "SHELL": "/bin/sh", "LANG": None}
# Changes of the environment, arguments, and what the process does before it becomes the program.
CIRCUMSTANCES = {
    "a thousand variables": ({f"VARIABLE_{number}": "x" * (number % 50) for number in range(1000)}, ["a"], None),
    "a megabyte of arguments": ({}, ["x" * 10_000] * 100 + ["last"], None),
    "arguments and variables of any bytes": ({"ODD": b"\xff \n="}, ["", b"\xff\n \x01'\""], None),
    "SIGCHLD is ignored": ({}, ["a"], ignoring),
    "no limit of the stack": ({}, ["a"], without_stack_limit),
    "the directory is gone": ({}, ["a"], nowhere),
    "as of cron": (CRON, ["a"], None),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("circumstances"))


@both
@pytest.mark.parametrize("name", CIRCUMSTANCES)
def test_a_start_in_such_circumstances_is_right(store, language, name):
    script = store.folder / ("tool" + language.ending)
    words = [language.program, script]
    if not script.exists():
        script.write_text(SCRIPTS[language.name])
        store.run(*words)
        store.wait()
    changes, arguments, prepare = CIRCUMSTANCES[name]
    env = {name: value for name, value in {**store.env, **changes}.items() if value is not None}
    results = []
    for argv in (words, [support.SNAPBOOT, "run", "--", *words]):
        argv = [os.fsencode(word) if isinstance(word, str) else word for word in [*argv, *arguments]]
        results.append(support.run(argv, env=env, log=False, preexec_fn=prepare))
    ordinary, found = results
    assert (found.status, found.out, found.err) == (ordinary.status, ordinary.out, ordinary.err), name
    assert ordinary.status == 7 or prepare is nowhere, ordinary


@both
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_paths_of_any_form(tmp_path, language, name):
    """Of the program and of the store."""
    folder = os.path.join(os.fsencode(tmp_path), name)
    os.makedirs(folder)
    store = Store(tmp_path)
    env = {**store.env, "SNAPBOOT_STORE": os.fsdecode(folder) + "/store"}
    script = folder + b"/tool" + language.ending.encode()
    with open(script, "w") as file:
        file.write(SCRIPTS[language.name])
    ordinary = support.run([language.program, os.fsdecode(script), "a"], env=env, log=False)
    assert ordinary.status == 7, ordinary
    for _ in range(2):
        found = support.run([support.SNAPBOOT, "run", "--", language.program, os.fsdecode(script), "a"], env=env, log=False)
        assert (found.status, found.out, found.err) == (7, ordinary.out, ordinary.err)
        store.wait_until(
            lambda: not any(os.fsencode("build-image") in cmdline(number) for number in processes(folder)), "the builder goes on"
        )
    listed = support.run([support.SNAPBOOT, "list"], env=env, log=False)
    # A command whose words are no text has no image.
    assert listed.status == 0 and ("tool" in listed.out) == (b"\xff" not in name), listed


def cmdline(number):
    try:
        with open(f"/proc/{number}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def processes(folder):
    """The numbers of the processes that have this folder among their words."""
    return [number for number in os.listdir("/proc") if number.isdigit() and folder in cmdline(number)]


# What a store lies on: the script mounts it, and ends with 77 where that is not allowed.
MOUNTS = {
    "noexec": 'mount -t tmpfs -o noexec tmpfs "$1/store" || exit 77',
    "overlay": 'mount -t tmpfs tmpfs "$1/mnt" && mkdir "$1/mnt/l" "$1/mnt/u" "$1/mnt/w" && '
    'mount -t overlay -o "lowerdir=$1/mnt/l,upperdir=$1/mnt/u,workdir=$1/mnt/w" overlay "$1/store" || exit 77',
}


@both
@support.needs_root
@pytest.mark.parametrize("kind", MOUNTS)
def test_a_store_on_another_file_system(tmp_path, language, kind):
    store = Store(tmp_path)
    words = write(store, language)
    for name in ("store", "mnt"):
        (tmp_path / name).mkdir()
    script = (
        f'{MOUNTS[kind]}\ncd "$1"\nshift\n"$@" 2> /dev/null\n'
        'while pgrep -f "build-image.*$PWD/store" > /dev/null; do sleep 0.1; done\n"$@"\n'
        f"{support.SNAPBOOT} list\n"
    )
    argv = support.in_mount_namespace(script, tmp_path, support.SNAPBOOT, "run", "--", *words)
    result = support.run(argv, env=store.env)
    if result.status == 77:
        pytest.skip("this machine has none of it: " + kind)
    assert result.out.count("right") == 2 and result.status == 0, result
    # Nothing can be started where an image would lie.
    assert ("none is made" in result.err) == (kind == "noexec") and ("mounted noexec" in result.out) == (kind == "noexec"), result


@both
@support.needs_root
@pytest.mark.parametrize("size", ["64k", "700k", "6M"])
@pytest.mark.fault("the disk of store, archive and counters is full, sooner or later", "the ordinary start, nothing is left behind")
def test_a_disk_that_is_full_at_any_write(tmp_path, language, size):
    store = Store(tmp_path)
    words = write(store, language)
    store.place.mkdir()
    script = (
        f'mount -t tmpfs -o size={size} tmpfs "$1/store" || exit 77\n'
        'cd "$1"\nshift\n"$@" 2> /dev/null\n"$@" 2> /dev/null\n'
        'while pgrep -f "build-image.*$PWD/store" > /dev/null; do sleep 0.1; done\n'
        f'"$@" 2> /dev/null\n{support.SNAPBOOT} list > /dev/null\nfind store -name ".?*" ! -name .builder\n'
    )
    argv = support.in_mount_namespace(script, tmp_path, support.SNAPBOOT, "run", "--", *words)
    places = {"XDG_CACHE_HOME": str(store.place / "archive"), "SNAPBOOT_STATE": str(store.place / "state")}
    result = support.run(argv, env={**store.env, **places}, log=False)
    if result.status == 77:
        pytest.skip("this machine has none of it: tmpfs")
    assert result.out.count("right") == 3 and len(result.out.splitlines()) == 3, result


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.fault("a builder is told to end", "it ends at once, and leaves nothing")
def test_a_builder_that_is_told_to_end_leaves_nothing(hanging, number):  # noqa: F811
    store, words, builder = hanging
    os.kill(builder, number)
    store.wait_until(lambda: not store.builders(), "the builder goes on")
    assert [path.name for path in store.place.glob("cache/*/.*") if path.is_dir()] == []
    assert store.run(*words).out == "ran\n"


@pytest.mark.fault("a builder is suspended", "starts go on, and it goes on later")
def test_a_builder_that_is_suspended_is_in_nobodys_way(hanging, tmp_path):  # noqa: F811
    store, words, builder = hanging
    os.kill(builder, signal.SIGSTOP)
    try:
        assert store.run(*words).out == "ran\n"
        (tmp_path / "other.py").write_text("print('other')\n")
        assert store.run(words[0], str(tmp_path / "other.py")).out == "other\n"
        assert "building" in {row["state"] for row in store.list()}
    finally:
        os.kill(builder, signal.SIGCONT)
    (tmp_path / "hang").unlink()
    # What the hanging boot has waited for was a file that is gone now; the other command has its image.
    assert "fresh" in {row["state"] for row in store.wait()}
    assert is_thawed(store.run(words[0], str(tmp_path / "other.py")))
