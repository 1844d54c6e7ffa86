"""What happens to every machine: an event that has nothing to do with a program leaves its image fresh, one that changes an answer
which the boot got makes it stale."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from common import support
from common.languages import PYTHON, RUBY, both

from .test_facts import in_namespace

pytestmark = pytest.mark.sample(24, whole=True)


def frozen(language, tmp_path, python, ruby):
    """An image whose preload has asked something: how it is started, and its environment."""
    env, _ = language.write(tmp_path, python if language is PYTHON else ruby)
    image = support.frozen(tmp_path / "app.img", [language.program], "--preload", language.preload(), env=env, cwd=tmp_path)
    return language.argv(image), env


STATISTICS = [
    "/proc/self/stat",
    "/proc/meminfo",
    "/proc/uptime",
    "/sys/devices/system/node/node0/meminfo",
    "/sys/devices/system/node/node0/vmstat",
    "/sys/class/net/lo/statistics/rx_bytes",
    "/sys/fs/cgroup/cpu.stat",
    "/sys/fs/cgroup/memory.current",
    "/sys/fs/cgroup/memory.pressure",
    "/sys/fs/cgroup/memory/memory.stat",
    "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    "/sys/fs/cgroup/cpuacct/cpuacct.usage",
]


@both
def test_what_the_kernel_measures_retires_no_image(language, tmp_path):
    there = [path for path in STATISTICS if os.path.exists(path)]
    python = f"VALUE = len([open(path).read() for path in {there!r}])"
    argv, env = frozen(language, tmp_path, python, f"VALUE = {there!r}.map {{ |path| File.read(path) }}.size")
    for _ in range(2):
        assert support.thawed(argv, env=env, cwd=tmp_path).out == f"{len(there)}\n"


@pytest.fixture
def in_memory():
    """A folder on a file system below /dev."""
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("there is no /dev/shm to write to")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield pathlib.Path(folder)


@both
def test_files_below_dev_are_compared_like_others(language, tmp_path, in_memory):
    (in_memory / "app.txt").write_text("one")
    names = [str(in_memory / name) for name in ("app.txt", "none.txt")]
    python = f"import os\nVALUE = open({names[0]!r}).read(), os.path.exists({names[1]!r}), open('/dev/null').read()"
    ruby = f"VALUE = [File.read({names[0]!r}), File.exist?({names[1]!r}), File.read('/dev/null')].inspect"
    argv, env = frozen(language, tmp_path, python, ruby)
    assert "one" in support.thawed(argv, env=env, cwd=tmp_path).out
    (in_memory / "none.txt").write_text("")
    result = support.run(argv, env=env, cwd=tmp_path)
    assert result.fell_back and names[1] in result.err and "rue" in result.out, result
    (in_memory / "none.txt").unlink()
    (in_memory / "app.txt").write_text("two")
    result = support.run(argv, env=env, cwd=tmp_path)
    assert result.fell_back and names[0] in result.err and "two" in result.out, result


def elsewhere(tmp_path, name="elsewhere", **files):
    """Another folder, with these files."""
    folder = tmp_path / name
    folder.mkdir()
    for stem, content in files.items():
        (folder / f"{stem}.txt").write_text(content)
    return folder


LOOK_UPS = {
    "content": ("open('here.txt').read()", "File.read('here.txt')"),
    "presence": ("__import__('os').path.exists('here.txt')", "File.exist?('here.txt')"),
    "absence": ("__import__('os').path.exists('none.txt')", "File.exist?('none.txt')"),
    "absence below": ("__import__('os').path.exists('sub/none.txt')", "File.exist?('sub/none.txt')"),
    "link": ("__import__('os').path.islink('here.txt')", "File.symlink?('here.txt')"),
    "list": ("sorted(__import__('os').listdir('sub'))", "Dir.children('sub').sort.inspect"),
}
GOES_AND_COMES_BACK = (
    "__import__('os').chdir('sub'), open('../here.txt').read(), __import__('os').chdir('..')",
    "Dir.chdir('sub') { File.read('../here.txt') }",
)


def frozen_in_one_of_two(language, values, tmp_path):
    """Freezes a program that reads a value in a folder. Returns that folder, another with the same files, the words and the environment
    that start the image, and what it prints in the first."""
    python, ruby = values
    env, _ = language.write(tmp_path, f"VALUE = {python if language is PYTHON else ruby}")
    home, same = (elsewhere(tmp_path, name, here="one") for name in ("home", "same"))
    for folder in (home, same):
        (folder / "sub").mkdir()
    preload = language.preload() if language is PYTHON else str(tmp_path / "boot")
    image = support.frozen(tmp_path / "app.img", [language.program], "--preload", preload, env=env, cwd=home)
    argv = language.argv(image)
    argv[-1] = argv[-1].replace("./boot", preload)
    return home, same, argv, env, support.thawed(argv, env=env, cwd=home).out


@both
def test_who_changes_the_directory_is_bound_to_it(language, tmp_path):
    """Even where it comes back: nobody can tell whether it would come back to where another start is made."""
    _, same, argv, env, before = frozen_in_one_of_two(language, GOES_AND_COMES_BACK, tmp_path)
    result = support.run(argv, env=env, cwd=same)
    assert result.fell_back and result.out == before, result


@both
@pytest.mark.parametrize("what", LOOK_UPS)
def test_relative_names_mean_the_place_of_the_start(language, what, tmp_path):
    """The same answers there: a thaw. Others: the ordinary start."""
    home, same, argv, env, before = frozen_in_one_of_two(language, LOOK_UPS[what], tmp_path)
    assert support.thawed(argv, env=env, cwd=same).out == before
    # Files of one moment and one size, so that nothing but the content differs.
    for folder in (home, same):
        os.utime(folder / "here.txt", (1, 1))
    other = elsewhere(tmp_path, "other", here="two", none="")
    (other / "sub").mkdir()
    (other / "sub" / "none.txt").write_text("")
    if what in ("presence", "link"):
        (other / "here.txt").unlink()
        (other / "here.txt").symlink_to("nowhere.txt" if what == "presence" else "none.txt")
    result = support.run(argv, env=env, cwd=other)
    assert result.fell_back and result.out != before, result
    assert support.thawed(argv, env=env, cwd=home).out == before


@both
def test_a_name_after_a_change_to_a_whole_path_means_that_place(language, tmp_path):
    home = elsewhere(tmp_path, "home", here="one")
    python = f"import os\nos.chdir({str(home)!r})\nVALUE = open('here.txt').read()\nos.chdir('/')"
    argv, env = frozen(language, tmp_path, python, f"VALUE = Dir.chdir({str(home)!r}) {{ File.read('here.txt') }}")
    if language is PYTHON:
        assert support.thawed(argv, env=env, cwd=elsewhere(tmp_path, here="two")).out == "one\n"
    (home / "here.txt").write_text("two")
    assert support.run(argv, env=env, cwd=tmp_path).out == "two\n"


def with_library_cache(tmp_path, *folders):
    """The argv prefix that gives a start a loader's cache with the libraries of these folders in front of the machine's."""
    cache, config = tmp_path / "cache", tmp_path / "config"
    config.write_text("".join(f"{folder}\n" for folder in folders) + pathlib.Path("/etc/ld.so.conf").read_text())
    made = subprocess.run(["/sbin/ldconfig", "-X", "-C", cache, "-f", config], capture_output=True, text=True)
    assert made.returncode == 0, made
    script = 'mount --bind "$1" /etc/ld.so.cache; shift; exec "$@"'
    return [*in_namespace("-m", "--propagation", "private"), "sh", "-ec", script, "sh", cache]


def a_library(folder, soname):
    """A shared library of this name. Skips where none can be made."""
    if not shutil.which("cc") or not os.access("/sbin/ldconfig", os.X_OK):
        pytest.skip("needs a C compiler and ldconfig")
    folder.mkdir(exist_ok=True)
    command = ["cc", "-shared", "-x", "c", "-", "-o", folder / soname, f"-Wl,-soname,{soname}"]
    subprocess.run(command, input="int snapboot_test;", text=True, check=True)
    return folder


LIBRARIES = {
    "ssl": ("import ssl; VALUE = ssl.OPENSSL_VERSION[:0]", "require 'openssl'; VALUE = OpenSSL::VERSION[0, 0]"),
    "none": (
        "import ctypes\ntry: VALUE = ctypes.CDLL('libsnapboot-none.so.1')\nexcept OSError: VALUE = 'none'",
        "require 'fiddle'; VALUE = (Fiddle.dlopen('libsnapboot-none.so.1') rescue 'none')",
    ),
}


@both
@pytest.mark.parametrize("what", LIBRARIES)
def test_a_package_with_a_library(language, what, tmp_path):
    """The loader's cache counts for the libraries that were asked for."""
    python, ruby = LIBRARIES[what]
    foreign = with_library_cache(tmp_path, a_library(tmp_path / "foreign", "libsnapboot-test.so.1"))
    argv, env = frozen(language, tmp_path, python, ruby)
    before = support.thawed(argv, env=env, cwd=tmp_path).out
    for _ in range(2):
        assert support.thawed([*foreign, *argv], env=env, cwd=tmp_path).out == before
    why = [support.SNAPBOOT, "inspect", "--why", argv[0]]
    assert support.run([*foreign, *why], env=env, log=False).out == f"{argv[0]}: fresh\n"
    name = {"ssl": "libc.so.6", "none": "libsnapboot-none.so.1"}[what]
    own = with_library_cache(tmp_path, a_library(tmp_path / "own", name))
    # A library that would be found elsewhere: the image says so, and nothing is started with it.
    result = support.run([*own, *argv], env={**env, "SNAPBOOT_ON_STALE": "error"}, cwd=tmp_path)
    reason = f"now finds this library elsewhere, or no longer, or for the first time: {name}"
    assert result.status == 125 and reason in result.err, result
    if what == "none":
        assert f"/etc/ld.so.cache: gives another answer for {name}" in support.run([*own, *why], env=env, log=False).out


@both
def test_a_program_that_reads_the_cache_itself_depends_on_all_of_it(language, tmp_path):
    foreign = with_library_cache(tmp_path, a_library(tmp_path / "foreign", "libsnapboot-test.so.1"))
    python = "VALUE = len(open('/etc/ld.so.cache', 'rb').read())"
    argv, env = frozen(language, tmp_path, python, "VALUE = File.binread('/etc/ld.so.cache').size")
    before = support.thawed(argv, env=env, cwd=tmp_path).out
    result = support.run([*foreign, *argv], env=env, cwd=tmp_path)
    assert result.fell_back and "/etc/ld.so.cache" in result.err and result.out != before, result


def with_table(tmp_path, path, edit):
    """The argv prefix that gives a start another /etc/passwd or the like: the machine's, edited."""
    own = tmp_path / f"table{len(list(tmp_path.glob('table*')))}"
    own.write_text(edit(pathlib.Path(path).read_text()))
    script = f'mount --bind "$1" {path}; shift; exec "$@"'
    return [*in_namespace("-m", "--propagation", "private"), "sh", "-ec", script, "sh", own]


USER, GROUP = "/etc/passwd", "/etc/group"
SOMEBODY = {USER: "somebody:x:54321:54321::/nowhere:/bin/sh\n", GROUP: "somebody:x:54321:\n"}
TABLES = {
    "user by number": (USER, "pwd.getpwuid(0).pw_dir", "Etc.getpwuid(0).dir"),
    "user by name": (USER, "pwd.getpwnam('root').pw_dir", "Etc.getpwnam('root').dir"),
    "home": (USER, "os.path.expanduser('~root')", "File.expand_path('~root')"),
    "group by number": (GROUP, "grp.getgrgid(0).gr_mem", "Etc.getgrgid(0).mem.inspect"),
    "group by name": (GROUP, "grp.getgrnam('root').gr_mem", "Etc.getgrnam('root').mem.inspect"),
}


def edited_root(table):
    """A table in which root has another home, or the group another member."""
    first, *rest = [line.split(":") for line in table.splitlines()]
    first[-2 if len(first) > 4 else -1] = "/elsewhere"
    return "".join(":".join(line) + "\n" for line in [first, *rest])


@both
@pytest.mark.parametrize("what", TABLES)
def test_a_user_or_group_that_is_added(language, what, tmp_path):
    """The tables count for the users and groups that were asked for."""
    path, python, ruby = TABLES[what]
    added = with_table(tmp_path, path, lambda table: table + SOMEBODY[path])
    python = f"import grp, os, pwd\nVALUE = {python}"
    argv, env = frozen(language, tmp_path, python, f"require 'etc'\nVALUE = {ruby}")
    before = support.thawed(argv, env=env, cwd=tmp_path).out
    for _ in range(2):
        assert support.thawed([*added, *argv], env=env, cwd=tmp_path).out == before
    changed = with_table(tmp_path, path, edited_root)
    result = support.run([*changed, *argv], env=env, cwd=tmp_path)
    assert result.fell_back and "/elsewhere" in result.out and result.out != before, result
    assert "the entry of this user or group has changed" in result.err


SERVICES, PROTOCOLS = "/etc/services", "/etc/protocols"
ENTRIES = {
    "service by name": (SERVICES, ("80/tcp", "8080/tcp"), "socket.getservbyname('http')", "Socket.getservbyname('http')"),
    "service by alias": (SERVICES, ("\twww", "\tw3"), "socket.getservbyname('www')", "Socket.getservbyname('www')"),
    "service by port": (SERVICES, ("http\t", "web\t"), "socket.getservbyport(80)", "Socket.getservbyport(80)"),
    "protocol by name": (PROTOCOLS, ("udp\t17", "udp\t18"), "socket.getprotobyname('udp')", None),
}


@pytest.mark.parametrize(
    ("language", "what"),
    [pytest.param(language, what, marks=support.needs_ruby if language is RUBY else (), id=f"{language.name}-{what}")
     for what, row in ENTRIES.items() for language in (PYTHON, RUBY) if language is PYTHON or row[-1]],
)  # fmt: skip
def test_a_service_or_protocol_that_is_added(language, what, tmp_path):
    """Installing a server adds its service to the table."""
    path, (old, new), python, ruby = ENTRIES[what]
    if not os.path.exists(path) or old not in pathlib.Path(path).read_text():
        pytest.skip(f"there is no {path} as Debian has it")
    added = with_table(tmp_path, path, lambda table: table + "own\t9/tcp # for http and www\n")
    changed = with_table(tmp_path, path, lambda table: table.replace(old, new))
    argv, env = frozen(language, tmp_path, f"import socket\nVALUE = {python}", f"require 'socket'\nVALUE = {ruby}")
    before = support.thawed(argv, env=env, cwd=tmp_path).out
    assert support.thawed([*added, *argv], env=env, cwd=tmp_path).out == before
    result = support.run([*changed, *argv], env=env, cwd=tmp_path)
    assert result.fell_back and "the entry of this service or protocol has changed" in result.err and result.out != before, result


NOBODY = {
    "by name": (
        "try: VALUE = pwd.getpwnam('somebody').pw_dir\nexcept KeyError: VALUE = 'none'",
        "VALUE = begin\n  Etc.getpwnam('somebody').dir\nrescue ArgumentError\n  'none'\nend",
    ),
    "in turn": (
        "VALUE = ''.join(user.pw_dir for user in pwd.getpwall() if user.pw_name == 'somebody') or 'none'",
        "VALUE = Etc.enum_for(:passwd).find { |user| user.name == 'somebody' }&.dir || 'none'",
    ),
    "in the file": (
        "VALUE = '/nowhere' if 'somebody' in open('/etc/passwd').read() else 'none'",
        "VALUE = File.read('/etc/passwd').include?('somebody') ? '/nowhere' : 'none'",
    ),
    "in the file, and another by name": (
        "root = pwd.getpwnam('root')\nVALUE = '/nowhere' if 'somebody' in open('/etc/passwd').read() else 'none'",
        "Etc.getpwnam('root')\nVALUE = File.read('/etc/passwd').include?('somebody') ? '/nowhere' : 'none'",
    ),
    "by another program": (
        "import os\nVALUE = '/nowhere' if os.system('id somebody > /dev/null 2>&1') == 0 else 'none'",
        "VALUE = system('id somebody > /dev/null 2>&1') ? '/nowhere' : 'none'",
    ),
}


@both
@pytest.mark.parametrize("how", NOBODY)
def test_a_user_that_was_looked_for_in_vain(language, how, tmp_path):
    """Who looks through all users depends on all of them."""
    added = with_table(tmp_path, USER, lambda table: table + SOMEBODY[USER])
    python, ruby = NOBODY[how]
    argv, env = frozen(language, tmp_path, "import pwd\n" + python, "require 'etc'\n" + ruby)
    assert support.thawed(argv, env=env, cwd=tmp_path).out == "none\n"
    result = support.run([*added, *argv], env=env, cwd=tmp_path)
    assert result.fell_back and result.out == "/nowhere\n", result


def test_a_package_with_kinds_of_files(tmp_path):
    """`mimetypes` reads all of the table, so its content counts."""
    path = "/etc/mime.types"
    if not os.path.exists(path):
        pytest.skip(f"there is no {path}")
    same = with_table(tmp_path, path, lambda table: table)
    more = with_table(tmp_path, path, lambda table: table + "text/snapboot-test snapboot-test\n")
    argv, env = frozen(PYTHON, tmp_path, "import mimetypes\nVALUE = mimetypes.guess_type('x.snapboot-test')[0]", "")
    for _ in range(2):
        assert support.thawed([*same, *argv], env=env).out == "None\n"
    result = support.run([*more, *argv], env=env)
    assert result.fell_back and path in result.err and result.out == "text/snapboot-test\n", result


def with_locale(tmp_path, name):
    """The argv prefix that gives a start one more locale of that name, in the archive of locales. Skips where none can be made."""
    source = "/usr/share/i18n/locales/de_DE"
    if not shutil.which("localedef") or not os.path.exists(source) or not os.path.exists("/usr/lib/locale/C.utf8"):
        pytest.skip("needs localedef, sources of locales, and the locale C.UTF-8 in a folder")
    root = tmp_path / f"with-{name}"
    shutil.copytree("/usr/lib/locale", root / "usr/lib/locale", symlinks=True)
    command = ["localedef", f"--prefix={root}", "-i", source, "-f", "UTF-8", name]
    made = subprocess.run(command, capture_output=True, text=True)
    assert (root / "usr/lib/locale/locale-archive").exists(), made
    script = 'mount --bind "$1" /usr/lib/locale; shift; exec "$@"'
    folder = root / "usr/lib/locale"
    return [*in_namespace("-m", "--propagation", "private"), "sh", "-ec", script, "sh", folder]


@both
def test_a_locale_that_is_added(language, tmp_path):
    """The archive counts for the locales that were asked for, whether it was there or not."""
    added = with_locale(tmp_path, "de_DE.UTF-8")
    argv, env = frozen(language, tmp_path, "import locale\nVALUE = locale.setlocale(locale.LC_ALL, '')", "VALUE = 1")
    before = support.thawed(argv, env=env, cwd=tmp_path).out
    for _ in range(2):
        assert support.thawed([*added, *argv], env=env, cwd=tmp_path).out == before
    why = [support.SNAPBOOT, "inspect", "--why", argv[0]]
    assert support.run([*added, *why], env=env, log=False).out == f"{argv[0]}: fresh\n"
    own = with_locale(tmp_path, "C.UTF-8")
    result = support.run([*own, *argv], env=env, cwd=tmp_path)
    reason = "the archive of locales now contains this locale, which came from a directory: C.UTF-8"
    assert result.fell_back and reason in result.err, result
    assert "locale-archive: gives another answer for C.UTF-8" in support.run([*own, *why], env=env, log=False).out
    # An image that was made where there is an archive.
    image = tmp_path / "other.img"
    command = [support.SNAPBOOT, "freeze", "-o", image, "--", language.program]
    assert support.run([*added, *command], env=env, log=False).status == 0
    code = [image, "-c" if language is PYTHON else "-e", "print(1)"]
    assert support.thawed([*added, *code], env=env).out.strip() == "1"
    assert support.thawed(code, env=env).out.strip() == "1"


def test_the_main_part_has_a_locale_that_was_added(tmp_path):
    added = with_locale(tmp_path, "de_DE.UTF-8")
    argv, env = frozen(PYTHON, tmp_path, "import locale\nVALUE = locale.setlocale(locale.LC_ALL, '')", "")
    code = "import locale; locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8'); print(locale.localeconv()['decimal_point'])"
    assert support.thawed([*added, argv[0], "-c", code], env=env).out == ",\n"


def test_a_locale_that_was_looked_for_in_vain(tmp_path):
    python = "import locale\ntry: VALUE = locale.setlocale(locale.LC_ALL, 'xy_XY.UTF-8')\nexcept locale.Error: VALUE = 'none'"
    added = with_locale(tmp_path, "xy_XY.UTF-8")
    argv, env = frozen(PYTHON, tmp_path, python, "")
    assert support.thawed(argv, env=env, cwd=tmp_path).out == "none\n"
    result = support.run([*added, *argv], env=env, cwd=tmp_path)
    assert result.fell_back and "locale-archive" in result.err and result.out == "xy_XY.UTF-8\n", result


def test_a_locale_of_the_archive(tmp_path):
    """What an image has of the archive must be there as it was."""
    added = with_locale(tmp_path, "de_DE.UTF-8")
    env, _ = PYTHON.write(tmp_path, "import locale\nVALUE = locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')")
    image = tmp_path / "app.img"
    command = [support.SNAPBOOT, "freeze", "-o", image, "--preload", "boot", "--", support.PYTHON]
    assert support.run([*added, *command], env=env, log=False).status == 0
    argv = PYTHON.argv(image)
    assert support.thawed([*added, *argv], env=env).out == "de_DE.UTF-8\n"
    result = support.run(argv, env=env)
    assert result.fell_back and "locale-archive" in result.err, result


ZONE = ("/etc/localtime", "Europe/Berlin", "Asia/Tokyo")


def with_zone(tmp_path, name):
    """The argv prefix that gives a start a copy of this zone's data as the machine's own."""
    source = pathlib.Path("/usr/share/zoneinfo") / name
    if not source.exists() or not os.path.exists(ZONE[0]):
        pytest.skip("needs data of time zones, and /etc/localtime")
    copy = tmp_path / name.replace("/", "-")
    if not copy.exists():
        copy.write_bytes(source.read_bytes())
    script = f'mount --bind "$1" {os.path.realpath(ZONE[0])}; shift; exec "$@"'
    return [*in_namespace("-m", "--propagation", "private"), "sh", "-ec", script, "sh", copy]


@both
def test_data_of_time_zones_that_are_written_anew(language, tmp_path):
    """The zone counts by its content: an update that leaves it as it is does not matter, another zone does."""
    python, ruby = "import time\nVALUE = time.localtime(0).tm_hour", "VALUE = Time.at(0).hour"
    first = with_zone(tmp_path, ZONE[1])
    env, _ = language.write(tmp_path, python if language is PYTHON else ruby)
    image = tmp_path / "app.img"
    command = [support.SNAPBOOT, "freeze", "-o", image, "--preload", language.preload(), "--", language.program]
    made = support.run([*first, *command], env=env, cwd=tmp_path, log=False)
    assert made.status == 0, made
    argv = language.argv(image)
    assert support.thawed([*first, *argv], env=env, cwd=tmp_path).out == "1\n"
    os.utime(tmp_path / "Europe-Berlin")
    for _ in range(2):
        assert support.thawed([*first, *argv], env=env, cwd=tmp_path).out == "1\n"
    result = support.run([*with_zone(tmp_path, ZONE[2]), *argv], env=env, cwd=tmp_path)
    assert result.fell_back and result.out == "9\n" and ZONE[0] in result.err, result
