"""Another session, terminal, environment or boot of the machine: the image thaws, with what an ordinary start shows, or says why not."""

import os
import pathlib
import subprocess
import sys

import pytest
from common import support
from common.languages import PYTHON, RUBY, both
from common.terminal import shown_on

pytestmark = pytest.mark.sample(20)

TEXT = {
    PYTHON: "import locale, os, posix, sys\n"
    "print([(name, value) for name, value in os.environ.items() if name[:2] in ('LC', 'LA')], posix.environ.get(b'LC_CTYPE'))\n"
    "print(sys.flags.utf8_mode, locale.setlocale(locale.LC_CTYPE), sys.stdout.encoding, sys.stdout.errors, sys.stdin.errors)\n"
    "print(open(os.devnull).encoding, os.popen('echo $LC_CTYPE').read())",
    RUBY: "p ENV.select { |name, _| name.start_with?('LC', 'LA') }, Encoding.default_external, Encoding.find('locale')\n"
    "p Encoding.find('filesystem'), $stdin.external_encoding, __FILE__.encoding, `echo $LC_CTYPE`",
}
# The locale C by all its names, but for LC_ALL, which keeps Python from taking C.UTF-8 instead.
OF_C = [{}, {"LANG": ""}, {"LANG": "C"}, {"LANG": "POSIX"}, {"LC_CTYPE": "C", "LANG": "C.UTF-8"}]
OTHERS = [{"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"LANG": "C.UTF-8"}, {"LC_ALL": "C.UTF-8"}, {"LC_ALL": "xy.UTF-8"}, {"LANG": "xy.UTF-8"}]
# One image serves these: a thaw renews the rest. Whether it serves others as well is left open.
THE_SAME = {PYTHON: [{0, 1, 2, 3, 5, 6, 7, 8}], RUBY: [{0, 1, 2, 3, 5, 6}, {7, 8}]}


def bare(**variables):
    """As cron starts programs, or `env -i`: hardly any variables."""
    return support.environment(**{"LANG": None, **variables})


def same(image, argv, arguments, env, thaws=True, why=None, **options):
    """The image shows what the ordinary start of argv shows, and thaws or falls back for this reason; thaws None: whichever it does."""
    ordinary = support.run([*argv, *arguments], env=env, log=False, **options)
    result = support.run([image, *arguments], env=env, **options)
    said = [line for line in result.err.splitlines() if line.startswith("snapboot: ")]
    assert (result.status, result.out) == (ordinary.status, ordinary.out), (result, ordinary)
    assert [line for line in result.err.splitlines() if line not in said] == ordinary.err.splitlines(), (result, ordinary)
    assert thaws is None or result.fell_back == (not thaws), (result, env)
    assert why is None or why in result.err, result


@both
def test_the_locale_counts_by_what_the_program_gets(tmp_path, language):
    script = tmp_path / ("main" + language.ending)
    script.write_text(TEXT[language])
    locales = [*OF_C, *OTHERS]
    for made_in in (0, 2, 5, 7, 9):
        image = support.frozen(tmp_path / "app.img", [language.program], env=bare(**locales[made_in]))
        alike = next((group for group in THE_SAME[language] if made_in in group), {made_in})
        for number, variables in enumerate(locales):
            same(image, [language.program], [script], bare(**variables), True if number in alike else None)


def test_another_locale_is_told_in_words(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], env=bare(LANG="C.UTF-8"))
    why = support.run([support.SNAPBOOT, "inspect", "--why", image], env=bare(LANG="xy.ISO-8859-1"), log=False)
    assert why.status == 1 and "locale of text (the first of LC_ALL, LC_CTYPE, LANG that is set): another" in why.out, why
    again = support.run([support.SNAPBOOT, "refreeze", image], env=bare(LANG="xy.ISO-8859-1"), log=False)
    assert again.status == 2 and "the locale of text (LC_ALL, LC_CTYPE, LANG)" in again.err, again


def test_a_program_that_changes_what_python_has_set(tmp_path):
    """Python sets LC_CTYPE itself where there is no locale; what the boot makes of that holds."""
    env = bare(PYTHONPATH=str(tmp_path))
    ask = ["-c", "import mod, os; print(os.environ.get('LC_CTYPE'), os.popen('echo $LC_CTYPE').read())"]
    for source in ("import os; del os.environ['LC_CTYPE']", "import os; os.environ['LC_CTYPE'] = 'POSIX'", "import os"):
        (tmp_path / "mod.py").write_text(source + "\n")
        image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "mod", env=env)
        same(image, [support.PYTHON], ask, env)


CERTIFICATES = {
    PYTHON: ("import ssl\nVALUE = 1\n", "CONTEXT = ssl.create_default_context()\n"),
    RUBY: ("require 'json'\nVALUE = 1\n", "require 'openssl'\nOpenSSL::X509::Store.new.set_default_paths\n"),
}


@pytest.mark.parametrize("asks", [False, True])
@both
def test_certificates_count_where_they_were_looked_for(tmp_path, language, asks):
    load, ask = CERTIFICATES[language]
    env, _ = language.write(tmp_path, load + ask if asks else load)
    options = {"env": env, "cwd": tmp_path}
    image = support.frozen(tmp_path / "app.img", [language.program], "--preload", language.preload(), **options)
    result = support.run(language.argv(image), env={**env, "SSL_CERT_FILE": os.devnull}, cwd=tmp_path)
    assert result.status == 0 and result.fell_back == asks, result
    assert not asks or "SSL_CERT_FILE" in result.err, result


PROGRAM = {
    PYTHON: "import argparse, json, sys, time\n"
    "parser = argparse.ArgumentParser(prog='app')\n"
    "parser.add_argument('--name')\n"
    "print(json.dumps({'name': parser.parse_args().name, 'terminal': sys.stdout.isatty()}))\n",
    RUBY: "require 'optparse'\nrequire 'json'\n"
    "options = {}\n"
    "OptionParser.new { |parser| parser.on('--name NAME') { |name| options[:name] = name } }.parse!\n"
    "puts JSON.generate(options.merge(terminal: $stdout.tty?))\n",
}
TOOL = "pygmentize"
HOME = os.environ.get("HOME", "/")
LOGIN = {
    "USER": "me", "LOGNAME": "me", "SHELL": "/bin/bash", "TERM": "xterm-256color", "PWD": "/", "SHLVL": "1", "LS_COLORS": "di=34",
    "EDITOR": "vi", "MAIL": "/var/mail/me",
}


@pytest.fixture(scope="module", params=["python", "ruby", TOOL])
def program(request, tmp_path_factory):
    """A program frozen in a login shell without a locale: the image, the ordinary start, and arguments."""
    folder = tmp_path_factory.mktemp("program")
    image = folder / "app.img"
    if request.param == TOOL:
        tool = pathlib.Path(sys.executable).with_name(TOOL)
        if not tool.exists():
            pytest.skip(f"there is no {TOOL}")
        argv, arguments = [str(tool)], ["-l", "python", "-f", "terminal", __file__]
        preloads = ["pygments.cmdline", "pygments.lexers.python"]
    else:
        language = PYTHON if request.param == "python" else RUBY
        if language is RUBY and support.RUBY is None:
            pytest.skip("there is no ruby")
        script = folder / ("app" + language.ending)
        script.write_text(PROGRAM[language])
        argv, arguments = [language.program, str(script)], ["--name", "x"]
        preloads = ["argparse", "json"] if language is PYTHON else ["optparse", "json"]
    support.frozen(image, argv, "--preload", ",".join(preloads), env=bare(**LOGIN))
    return image, argv, arguments


OF_CRON = {"LOGNAME": "me", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
OF_SUDO = {"USER": "root", "LOGNAME": "root", "SUDO_USER": "me", "SUDO_UID": "1000", "SUDO_GID": "1000", "SUDO_COMMAND": "/x"}
OF_SSH = {"SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22", "SSH_CLIENT": "10.0.0.1 5 22", "SSH_TTY": "/dev/pts/7", "SSH_AUTH_SOCK": "/tmp/x"}
OF_TERMINAL = {"TERM": "dumb", "COLORTERM": "truecolor", "LINES": "10", "COLUMNS": "20", "TMUX": "x", "TMUX_PANE": "%1"}
OF_DESKTOP = {"DISPLAY": ":0", "XDG_SESSION_ID": "4", "XDG_RUNTIME_DIR": "/run/user/1000", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"}
ENVIRONMENTS = {
    "the same": LOGIN,
    "cron": OF_CRON,
    "cron of another user with the same home": {**OF_CRON, "LOGNAME": "root", "USER": "root"},
    "sudo": {**LOGIN, **OF_SUDO},
    "ssh": {**LOGIN, **OF_SSH},
    "another terminal": {**LOGIN, **OF_TERMINAL},
    "a desktop": {**LOGIN, **OF_DESKTOP},
    "a service": {**OF_CRON, "INVOCATION_ID": "1", "JOURNAL_STREAM": "8:1", "USER": "me"},
    "env -i": {"HOME": None, "PATH": None},
    "env -i with a path": {"HOME": None, "PATH": "/usr/bin:/bin"},
    "another home": {**LOGIN, "HOME": "/nonexistent"},
}


@pytest.mark.parametrize("event", ENVIRONMENTS)
def test_another_environment(program, event):
    image, argv, arguments = program
    env = bare(**ENVIRONMENTS[event])
    if argv[0] == support.RUBY and env.get("HOME") == "/nonexistent":
        same(image, argv, arguments, env, thaws=False, why="$HOME/.")  # RubyGems asks whether it is there
    else:
        same(image, argv, arguments, env)


BOOTED = """
printf '12345678-1234-1234-1234-123456789abc\\n' > "$1/boot_id"
mount --bind "$1/boot_id" /proc/sys/kernel/random/boot_id
shift
exec "$@"
"""
RESOLVER = """
printf 'nameserver 192.0.2.1\\n' > "$1/resolv.conf"
mount --bind "$1/resolv.conf" /etc/resolv.conf
shift
exec "$@"
"""
MOUNTED = """
mount -t tmpfs none /run
mkdir -p /run/user/54321
[ -z "$1" ] || mount -t tmpfs none "$1"
shift
exec "$@"
"""
NAMESPACES = {
    "a network without an interface": ["unshare", "-n"],
    "low process numbers": ["unshare", "-pf", "--mount-proc"],
    "a long time since the boot": ["unshare", "-T", "--boottime", "10000000", "--monotonic", "10000000"],
    "another boot": BOOTED,
    "another resolver": RESOLVER,
    "a session's mount": MOUNTED,
}


@support.needs_root
@pytest.mark.parametrize("event", NAMESPACES)
def test_another_network_or_boot(program, event, tmp_path):
    image, argv, arguments = program
    before = NAMESPACES[event]
    if isinstance(before, str):
        before = support.in_mount_namespace(before, "/run/user/54321" if before is MOUNTED else os.fspath(tmp_path))
    elif subprocess.run([*before, "true"], capture_output=True).returncode != 0:
        pytest.skip("such namespaces are not permitted here")
    env = bare(**LOGIN)
    ordinary = support.run([*before, *argv, *arguments], env=env, log=False)
    result = support.run([*before, image, *arguments], env=env)
    assert (result.status, result.out) == (ordinary.status, ordinary.out) and ordinary.status == 0, (result, ordinary)
    assert not result.fell_back, result


def test_terminals(program):
    """Of other sizes and kinds, and none at all: the image was made in a pipe."""
    image, argv, arguments = program
    for rows, columns, term in ((24, 80, "xterm"), (50, 200, "vt100"), (0, 0, "dumb")):
        env = bare(**{**LOGIN, "TERM": term})
        ordinary = shown_on([*argv, *arguments], env, size=(rows, columns))
        assert shown_on([os.fspath(image), *arguments], {**env, "SNAPBOOT_ON_STALE": "error"}, size=(rows, columns)) == ordinary
    env = bare(**LOGIN)
    same(image, argv, arguments, env, start_new_session=True)
    same(image, argv, arguments, env, stdin=subprocess.DEVNULL)


PLACE = {
    PYTHON: "VALUE = [bool(open('/proc/self/' + name).read()) for name in ('cgroup', 'mountinfo', 'mounts')]\n",
    RUBY: "VALUE = %w[cgroup mountinfo mounts].map { |name| !File.read('/proc/self/' + name).empty? }.inspect\n",
}


@support.needs_root
@both
def test_where_the_process_lives_counts_without_the_session(language, tmp_path):
    env, _ = language.write(tmp_path, PLACE[language])
    options = {"env": env, "cwd": tmp_path}
    words = ["freeze", "-o", tmp_path / "app.img", "--preload", language.preload(), "--", language.program]

    def mounted(place, argv):
        return support.run(support.in_mount_namespace(MOUNTED, place, *map(os.fspath, argv)), **options)

    assert mounted("", [support.SNAPBOOT, *words]).status == 0
    argv = language.argv(tmp_path / "app.img")
    for place in ("", "/run/user/54321"):
        result = mounted(place, argv)
        assert result.status == 0 and not result.fell_back, result
    result = mounted("/mnt", argv)
    assert result.fell_back and "/proc/self/mount" in result.err, result


SCOPES = pathlib.Path("/sys/fs/cgroup/pids")


@pytest.fixture
def scopes():
    """Makes control groups, and removes them."""
    made = []

    def make(name):
        path = SCOPES / name
        try:
            path.mkdir()
        except OSError as error:
            pytest.skip(f"no control group can be made here: {error}")
        made.append(path)
        return path

    yield make
    for path in made:
        path.rmdir()


@support.needs_root
@both
def test_a_login_is_another_scope(language, tmp_path, scopes):
    env, _ = language.write(tmp_path, PLACE[language])
    options = {"env": env, "cwd": tmp_path}
    number = os.getpid()
    first, again, service = (scopes(f"snapboot{number}-{name}") for name in ("5.scope", "6.scope", "a.service"))

    def enter(group):
        return lambda: (group / "cgroup.procs").write_text("0")

    freeze = support.freeze(
        tmp_path / "app.img", [language.program], "--preload", language.preload(), preexec_fn=enter(first), **options
    )
    assert freeze.status == 0, freeze
    argv = language.argv(tmp_path / "app.img")
    for group in (first, again):
        support.thawed(argv, preexec_fn=enter(group), **options)
    for group in (service, SCOPES):
        result = support.run(argv, preexec_fn=enter(group), **options)
        assert result.fell_back and "/proc/self/cgroup" in result.err, result
