"""Environment variables: those that the boot read are inputs, of secrets only that they are set, others do not count."""

import json
import subprocess
import tomllib

import pytest
from common import support
from common.languages import PYTHON, RUBY, both

pytestmark = pytest.mark.sample(24, whole=True)

# Ways to read NAME, each an expression for VALUE: (Python, Ruby). "none" where it is not set.
READS = {
    "by get": ("os.environ.get('NAME', 'none')", "ENV.fetch('NAME', 'none')"),
    "by index": ("os.environ['NAME'] if 'NAME' in os.environ else 'none'", "ENV['NAME'] || 'none'"),
    "by getenv": ("os.getenv('NAME') or 'none'", "ENV.values_at('NAME').first || 'none'"),
    "as bytes": ("os.environb.get(b'NAME', b'none').decode()", "ENV.slice('NAME')['NAME'] || 'none'"),
    "by a look": ("'NAME' in os.environ and 'some' or 'none'", "ENV.key?('NAME') ? 'some' : 'none'"),
    "by C code": (
        "(__import__('ctypes').CDLL(None).getenv(b'NAME') and 'some') or 'none'",
        "(require 'fiddle'; getenv = Fiddle::Function.new(Fiddle.dlopen(nil)['getenv'], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOIDP); "
        "getenv.call('NAME').null? ? 'none' : 'some')",
    ),
}
# Ways to read the whole environment.
WHOLE = {
    "copied": ("os.environ.copy().get('NAME', 'none')", "ENV.to_h['NAME'] || 'none'"),
    "copied deeply": ("__import__('copy').deepcopy(os.environ).get('NAME', 'none')", "ENV.map { |k, v| [k, v] }.to_h['NAME'] || 'none'"),
    "as a dictionary": ("dict(os.environ).get('NAME', 'none')", "ENV.to_a.assoc('NAME')&.last || 'none'"),
    "gone through": (
        "''.join(v for k, v in os.environ.items() if k == 'NAME') or 'none'",
        "ENV.each_pair.map { |k, v| v if k == 'NAME' }.compact.first || 'none'",
    ),
    "filtered": (
        "next((v for k, v in os.environ.items() if k.startswith('NAME')), 'none')",
        "ENV.select { |k, _| k.start_with?('NAME') }.values.first || 'none'",
    ),
    "passed on": (
        "__import__('subprocess').run(['/bin/sh', '-c', 'echo ${NAME-none}'], stdout=-1).stdout.decode().strip()",
        "`/bin/sh -c 'echo ${NAME-none}'`.strip",
    ),
}


def source(language, expressions):
    """A preload whose second line reads."""
    expression = expressions[0 if language is PYTHON else 1]
    return f"{'import os' if language is PYTHON else '# reads'}\nVALUE = {expression}"


def freeze(language, tmp_path, expressions, *options, env=None):
    """Freeze a preload with this environment added. Returns the Result, the image's path and the plain environment."""
    plain, _ = language.write(tmp_path, source(language, expressions))
    image = tmp_path / "app.img"
    options = ["--preload", language.preload(), *options]
    return support.freeze(image, [language.program], *options, env={**plain, **(env or {})}, cwd=tmp_path), image, plain


def run(language, image, env, answer, is_stale):
    """Run the image: it must print `answer`, and be stale or not."""
    result = support.run(language.argv(image), env=env, cwd=image.parent)
    assert result.out == answer + "\n", result
    assert result.fell_back == is_stale and ("NAME" in result.err) == is_stale, result


@both
@pytest.mark.parametrize("how", READS)
def test_a_variable_that_was_read_is_an_input(language, how, tmp_path):
    set_answer = "other" if "'some'" not in READS[how][0 if language is PYTHON else 1] else "some"
    given_answer = "given" if set_answer == "other" else "some"
    result, image, plain = freeze(language, tmp_path, READS[how])
    assert result.status == 0, result
    run(language, image, plain, "none", is_stale=False)
    run(language, image, {**plain, "NAME": "other"}, set_answer, is_stale=True)
    run(language, image, {**plain, "UNREAD": "1", "TERM": "vt100", "NAMES": "1"}, "none", is_stale=False)
    unread = {"UNREAD": "seen-by-nobody-4711", "SECOND_TOKEN": "1"}
    result, image, plain = freeze(language, tmp_path, READS[how], env={"NAME": "given", **unread})
    assert result.status == 0, result
    run(language, image, {**plain, "NAME": "given"}, given_answer, is_stale=False)
    run(language, image, {**plain, "NAME": "other"}, set_answer, is_stale=True)
    run(language, image, plain, "none", is_stale=True)
    assert b"seen-by-nobody-4711" not in support.read(image)


# What the user's shell sets, and a session.
SHELL = {
    "NO_COLOR": "1", "SHELL": "/bin/zsh", "LS_COLORS": "di=34", "SSL_CERT_FILE": "/etc/ssl/x.pem", "PYTHONUNBUFFERED": "1",
    "DEBIAN_FRONTEND": "noninteractive", "EL": "1", "TERM": "xterm", "SSH_TTY": "/dev/pts/9", "USER": "me", "LOGNAME": "me",
    "PWD": "/", "GITHUB_TOKEN": "x", "PAGER": "less",
}  # fmt: skip


@both
@pytest.mark.parametrize("name", sorted(SHELL.keys() - {"GITHUB_TOKEN", "PYTHONUNBUFFERED"}))
def test_a_variable_of_the_shell_that_was_read(language, name, tmp_path):
    """It is shown, whatever it is, and counts; what else the shell sets does not."""
    reads = (f"os.environ.get('{name}', 'none')", f"ENV.fetch('{name}', 'none')")
    result, image, plain = freeze(language, tmp_path, reads, env=SHELL)
    assert result.status == 0, result
    argv = language.argv(image)
    always = {"PYTHONUNBUFFERED": SHELL["PYTHONUNBUFFERED"]}
    for others in (SHELL, {}, {**SHELL, "GITHUB_TOKEN": "y"}):
        env = {**plain, **others, **always, name: SHELL[name]}
        assert support.thawed(argv, env=env, cwd=tmp_path).out == SHELL[name] + "\n"
    # The name of the user is only kept.
    is_renewed = name in ("USER", "LOGNAME")
    for env, answer, is_served in (({**SHELL, name: "other"}, "other", is_renewed), ({**always}, "none", False)):
        result = support.run(argv, env={**plain, **env}, cwd=tmp_path)
        assert result.fell_back != is_served and (is_served or name in result.err) and result.out == answer + "\n", result


@both
@pytest.mark.parametrize("how", READS)
def test_of_a_secret_that_was_read_only_that_it_is_set_counts(language, how, tmp_path):
    expressions = tuple(expression.replace("NAME", "THE_KEY") for expression in READS[how])
    env = {"THE_KEY": "given", "UNREAD": "one", "OTHER_KEY": "two"}
    result, image, plain = freeze(language, tmp_path, expressions, env=env)
    if how == "by C code":
        assert result.status == 2 and not image.exists(), result
        assert "cannot freeze: THE_KEY looks like a secret, and C code of the program reads it" in result.err, result
        assert "--env THE_KEY" in result.err and "UNREAD" not in result.err and "OTHER" not in result.err, result
        result, image, plain = freeze(language, tmp_path, expressions, "--env", "THE_KEY", env=env)
        assert result.status == 0, result
        assert support.run(language.argv(image), env={**plain, "THE_KEY": "other"}, cwd=tmp_path).fell_back
        return
    assert result.status == 0, result
    given = "some" if "'some'" in expressions[0 if language is PYTHON else 1] else "other"
    assert support.thawed(language.argv(image), env={**plain, "THE_KEY": "other"}, cwd=tmp_path).out == given + "\n"
    assert support.run(language.argv(image), env=plain, cwd=tmp_path).fell_back


@both
@pytest.mark.parametrize("how", WHOLE)
def test_who_reads_everything_depends_on_everything(language, how, tmp_path):
    result, image, plain = freeze(language, tmp_path, WHOLE[how])
    assert result.status == 0, result
    run(language, image, {**plain, "TERM": "vt100", "SSH_TTY": "/dev/x", "PWD": "/"}, "none", is_stale=False)
    run(language, image, {**plain, "NAME": "other"}, "other", is_stale=True)
    given = {"NAME": "given", "SECOND": "1", "TERM": "vt100"}
    result, image, plain = freeze(language, tmp_path, WHOLE[how], env=given)
    assert result.status == 0, result
    run(language, image, {**plain, **given, "TERM": "other"}, "given", is_stale=False)
    run(language, image, {**plain, **given, "NAME": "other"}, "other", is_stale=True)
    # In Python another start shows that nothing comes of the others, where no other program has seen them.
    is_shown = language is PYTHON and how != "passed on"
    for more in ({"SECOND": "2"}, {"THIRD": "3"}):
        result = support.run(language.argv(image), env={**plain, **given, **more}, cwd=tmp_path)
        assert result.fell_back != is_shown and result.out == "given\n", result
        assert is_shown or next(iter(more)) in result.err, result


RULES = [tomllib.loads(path.read_text()) for path in sorted((support.ROOT / "recipes").glob("*/recipe.toml"))]
ROWS = {row["reader"]: row["environment"] for rules in RULES for row in rules.get("reads", []) if "environment" in row}


def test_there_are_readers_of_the_whole_environment_of_both_languages():
    assert {reader[-3:] for reader in ROWS} == {".py", ".rb"}


@pytest.mark.parametrize("reader", [pytest.param(name, marks=support.needs_ruby) if name.endswith(".rb") else name for name in ROWS])
def test_who_reads_everything_and_wants_only_some_of_it(reader, tmp_path):
    """The rule of a recipe is about a file by the end of its path: here it is one that keeps a copy of everything."""
    language = PYTHON if reader.endswith(".py") else RUBY
    file = tmp_path / f"of{reader}"
    file.parent.mkdir(parents=True)
    for folder in {file.parent, tmp_path / "of"}:
        (folder / "__init__.py").touch()
    file.write_text("import os\nALL = dict(os.environ)\n" if language is PYTHON else "ALL = ENV.to_h\n")
    module = ".".join(file.relative_to(tmp_path).with_suffix("").parts)
    loads = (f"__import__('{module}') and 'loaded'", f"(require '{file}'; 'loaded')")
    result, image, plain = freeze(language, tmp_path, loads)
    assert result.status == 0, result
    assert support.thawed(language.argv(image), env={**plain, "NAME": "other"}, cwd=tmp_path).out == "loaded\n"
    for pattern in ROWS[reader]:
        if language is PYTHON and pattern == "PATH":
            continue  # which only counts by what is found along it
        name = pattern.replace("*", "X")
        changed = {**plain, name: f"{plain.get(name, '')}:/nowhere"}
        result = support.run(language.argv(image), env=changed, cwd=tmp_path)
        assert result.fell_back and name in result.err and result.out == "loaded\n", result


@both
@pytest.mark.parametrize("how", WHOLE)
def test_who_reads_everything_depends_on_which_secrets_are_set(language, how, tmp_path):
    env = {"THE_KEY": "given", "OTHER_TOKEN": "other", "NAME": "given"}
    result, image, plain = freeze(language, tmp_path, WHOLE[how], env=env)
    assert result.status == 0, result
    assert support.thawed(language.argv(image), env={**plain, **env, "THE_KEY": "x"}, cwd=tmp_path).out == "given\n"
    del env["OTHER_TOKEN"]
    assert support.run(language.argv(image), env={**plain, **env}, cwd=tmp_path).fell_back


@both
def test_a_program_that_the_boot_starts_sees_the_environment(language, tmp_path):
    reads = (
        "__import__('subprocess').run('echo $NAME; NAME=own; echo $SECOND $TERM', shell=True, stdout=-1).stdout.decode().split()",
        "`echo $NAME; NAME=own; echo $SECOND $TERM`.split.inspect.tr('\"', \"'\")",
    )
    result, image, plain = freeze(language, tmp_path, reads, env={"NAME": "given", "SECOND": "two", "TERM": "vt100"})
    assert result.status == 0, result
    env = {**plain, "NAME": "given", "SECOND": "two"}
    assert support.thawed(language.argv(image), env=env, cwd=tmp_path).out == "['given', 'two']\n"


@both
@pytest.mark.parametrize("pattern", ["NAME", "NA*", "*"])
def test_withheld_on_purpose(language, pattern, tmp_path):
    result, image, plain = freeze(language, tmp_path, READS["by get"], "--withhold", pattern, env={"NAME": "given"})
    assert result.status == 0, result
    for env in (plain, {**plain, "NAME": "given"}, {**plain, "NAME": "other"}):
        assert support.thawed(language.argv(image), env=env, cwd=tmp_path).out == "none\n"


@both
def test_withheld_on_purpose_from_who_reads_everything(language, tmp_path):
    result, image, plain = freeze(language, tmp_path, WHOLE["copied"], "--withhold", "NAME", env={"NAME": "given"})
    assert result.status == 0, result
    assert support.thawed(language.argv(image), env={**plain, "NAME": "other"}, cwd=tmp_path).out == "none\n"
    result = support.run(language.argv(image), env={**plain, "SECOND": "1"}, cwd=tmp_path)
    assert result.fell_back != (language is PYTHON) and result.out == "none\n", result


def test_what_cannot_be_withheld(tmp_path):
    result = support.freeze(tmp_path / "a.img", [support.PYTHON], "--withhold", "PYTHONPATH")
    assert result.status == 2 and "env -u PYTHONPATH" in result.err, result
    result = support.freeze(tmp_path / "a.img", [support.PYTHON], "--withhold", "A", "--env", "A")
    assert result.status == 2 and "by --env and by --withhold" in result.err, result


@both
def test_volatile_variables_count_for_who_reads_them_by_name(language, tmp_path):
    names = ["PWD", "OLDPWD", "SHLVL", "_", "SSH_AUTH_SOCK", "TERM", "COLUMNS", "DISPLAY"]
    for reads, counts in (
        (("dict(os.environ) and 'done'", "ENV.to_h && 'done'"), False),
        ((f"[os.environ.get(n) for n in {names}] and 'done'", f"{names}.map {{ |n| ENV[n] }} && 'done'"), True),
    ):
        result, image, plain = freeze(language, tmp_path, reads, env=dict.fromkeys(names, "1"))
        assert result.status == 0, result
        assert support.thawed(language.argv(image), env={**plain, **dict.fromkeys(names, "1")}, cwd=tmp_path).out == "done\n"
        for name in names:
            env = {**plain, **dict.fromkeys(names, "1"), name: "2"}
            result = support.run(language.argv(image), env=env, cwd=tmp_path)
            assert result.fell_back == counts and result.out == "done\n", result


@both
def test_what_the_program_set_itself_is_no_input(language, tmp_path):
    reads = (
        "os.environ.update(NAME='own') or os.environ['NAME'] + (os.environ.pop('NAME') and '')",
        "(ENV['NAME'] = 'own') && ENV['NAME'] + (ENV.delete('NAME') && '')",
    )
    result, image, plain = freeze(language, tmp_path, reads, env={"NAME": "given"})
    assert result.status == 0, result
    assert support.thawed(language.argv(image), env={**plain, "NAME": "other"}, cwd=tmp_path).out == "own\n"


@both
def test_a_table_variable_counts_when_it_was_read(language, tmp_path):
    result, image, plain = freeze(language, tmp_path, ("'done'", "'done'"), env={"TMPDIR": "/tmp"})
    assert result.status == 0, result
    assert support.thawed(language.argv(image), env={**plain, "TMPDIR": "/var/tmp"}, cwd=tmp_path).out == "done\n"
    reads = ("__import__('tempfile').gettempdir()", "(require 'tmpdir'; Dir.tmpdir)")
    result, image, plain = freeze(language, tmp_path, reads, env={"TMPDIR": "/tmp"})
    assert result.status == 0, result
    assert support.thawed(language.argv(image), env={**plain, "TMPDIR": "/tmp"}, cwd=tmp_path).out == "/tmp\n"
    result = support.run(language.argv(image), env={**plain, "TMPDIR": "/var/tmp"}, cwd=tmp_path)
    assert result.fell_back and result.out == "/var/tmp\n", result


@both
def test_what_always_acts_always_counts(language, tmp_path):
    _, image, plain = freeze(language, tmp_path, ("'done'", "'done'"))
    own = "PYTHONHASHSEED" if language is PYTHON else "RUBYOPT"
    for name, value in {"GLIBC_TUNABLES": "", "MALLOC_ARENA_MAX": "2", own: ""}.items():
        result = support.run(language.argv(image), env={**plain, name: value}, cwd=tmp_path)
        assert result.fell_back and name in result.err and result.out == "done\n", result


@both
def test_local_time_and_locale_follow_variables(language, tmp_path):
    """The C library reads TZ and LC_TIME, and nobody sees it do so."""
    reads = (
        "(__import__('locale').setlocale(6, ''), __import__('time').localtime(0).tm_hour)[1]",
        "Time.at(0).hour",
    )
    result, image, plain = freeze(language, tmp_path, reads, env={"TZ": "UTC"})
    assert result.status == 0, result
    assert support.thawed(language.argv(image), env={**plain, "TZ": "UTC"}, cwd=tmp_path).out == "0\n"
    result = support.run(language.argv(image), env={**plain, "TZ": "XYZ-3"}, cwd=tmp_path)
    assert result.fell_back and "TZ" in result.err and result.out == "3\n", result
    if language is PYTHON:
        result = support.run(language.argv(image), env={**plain, "TZ": "UTC", "LC_TIME": "C"}, cwd=tmp_path)
        assert result.fell_back and "LC_TIME" in result.err, result


NOTHING_LEFT = {
    "python": """
import boot, os, platform, posix, sys
data = os.environ._data
print(type(os.environ), type(data), data is posix.environ, data is os.environb._data, sorted(vars(os.environ)))
print(os.getcwd, os.uname, os.environ.get, boot.cwd, platform.uname.__module__, platform.uname.__code__.co_filename)
print([name for name in sys.modules if 'reads' in name], os.environ.copy() == dict(os.environ), len(os.environ))
print({k: v for k, v in os.environ.items() if k != 'SNAPBOOT_LOG'})
""",
    "ruby": """
p ENV.singleton_class.instance_methods(false).sort, ENV.singleton_class.ancestors.size, Process.singleton_class.ancestors.size
p ENV.singleton_methods.map { |name| m = ENV.method(name); [name, m.source_location, m.arity, m.owner == ENV.singleton_class] }.sort
p [Process.method(:uid), Dir.method(:pwd), Process::UID.method(:eid)].map { |m| [m.source_location, m.arity, m.name, m.original_name] }
p (ENV.fetch('NONE') rescue [$!.message, $!.backtrace, $!.key]), ENV.to_h.reject { |k, _| k == 'SNAPBOOT_LOG' }, ENV.inspect.size > 2
""",
}


@both
def test_nothing_is_left_behind(language, tmp_path):
    """A thawed program sees the environment, and the functions that told facts, as an ordinary one."""
    plain, _ = language.write(
        tmp_path,
        "import os, platform\nfrom os import getcwd as cwd\ncwd(), os.uname(), platform.system(), os.environ.get('A')"
        if language is PYTHON
        else "Process.uid; Dir.pwd; ENV['A']; ENV.to_h",
    )
    script = tmp_path / f"main{language.ending}"
    script.write_text(NOTHING_LEFT[language.name])
    command = [language.program, str(script)]
    image = support.frozen(tmp_path / "app.img", command, "--preload", language.preload(), env=plain, cwd=tmp_path)
    thawed = support.thawed([image], env=plain, cwd=tmp_path)
    if language is RUBY:
        command.insert(1, "-r./boot")
    ordinary = support.run(command, env=plain, cwd=tmp_path)
    assert thawed.status == 0 and ordinary.status == 0, (thawed, ordinary)
    address = "0x"
    assert thawed.out.split(address)[0] == ordinary.out.split(address)[0], (thawed, ordinary)


def test_what_is_read_while_python_starts(tmp_path):
    """Code in .pth files runs before any front end; so does sitecustomize, here before the standard library, where Debian has one."""
    folder, early = tmp_path / "venv", tmp_path / "early"
    early.mkdir()
    subprocess.run([support.PYTHON, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "start.pth").write_text("import os; os.environ.get('NAME')\n")
    (early / "sitecustomize.py").write_text("import os\nSECOND = os.environ.get('SECOND')\n")
    python = str(folder / "bin/python")
    env = support.environment(PYTHONPATH=early)
    (early / "sitecustomize.py").write_text("import os\nSECOND = os.environ.get('SECOND')\n")
    argv = [tmp_path / "app.img", "-c", "import sitecustomize as s; print(s.SECOND)"]
    support.frozen(argv[0], [python], env={**env, "NAME": "1", "SECOND": "2"})
    assert support.thawed(argv, env={**env, "UNREAD": "1", "NAME": "1", "SECOND": "2"}).out == "2\n"
    support.frozen(argv[0], [python], env=env)
    assert support.thawed(argv, env={**env, "UNREAD": "1"}).out == "None\n"
    for name in ("NAME", "SECOND"):
        result = support.run(argv, env={**env, name: "1"})
        assert result.fell_back and name in result.err, result


@both
def test_inspect_tells_what_was_read(language, tmp_path):
    _, image, plain = freeze(language, tmp_path, READS["by get"], "--env", "SEEN", env={"SEEN": "1"})
    shown = json.loads(support.run([support.SNAPBOOT, "inspect", "--json", image], log=False).out)
    assert "NAME" in shown["not_set"] and {"SEEN"} <= set(shown["compared"])
    result = support.run([support.SNAPBOOT, "inspect", "--why", image], env={**plain, "NAME": "1"}, log=False)
    assert "NAME: unset -> set" in result.out and "SEEN: set -> unset" in result.out, result


def test_the_copy_of_wsgiref_is_renewed(tmp_path):
    """A class of it keeps the environment; whatever has metrics of Prometheus loads it."""
    image, env = tmp_path / "app.img", support.environment(FIRST="1", SSL_CERT_DIR="/etc/ssl/certs")
    result = support.freeze(image, [PYTHON.program], "--preload", "wsgiref.handlers", env=env, cwd=tmp_path)
    assert result.status == 0, result
    show = "from wsgiref.handlers import BaseHandler as B, read_environ; print(B.os_environ == read_environ(), B.os_environ.get('SECOND'))"
    for more in ({"SECOND": "2"}, {"FIRST": "other", "SECOND": "3"}):
        result = support.run([image, "-c", show], env={**env, **more}, cwd=tmp_path)
        assert not result.fell_back and result.out == f"True {more['SECOND']}\n", result
    # It reads the bytes of these in another way.
    result = support.run([image, "-c", show], env={**env, "HTTP_COOKIE": "\u00e9"}, cwd=tmp_path)
    assert result.fell_back and result.out == "True None\n", result
