"""What depends on HOME, PATH and the user's name, as another start shows: a thaw renews what is only kept, the rest binds the image.

Each program is started as another user at another place, with the image and in the ordinary way: the same must come out, thawed or not.
"""

import os

import pytest
from common import support

# What is done with a value, and whether a thaw renews it. V stands for the value, {f} for a folder of the test.
WAYS = {
    "kept": ("V", True),
    "kept as bytes": ("V.encode()", True),
    "joined": ("V + '/.config/x'", True),
    "within a text": ("'in ' + V + ', and ' + V", True),
    "a path": ("pathlib.PurePath(V + '/x')", True),
    "in a list in a table": ("{'a': [1, V]}", True),
    "in tuples": ("((V, 1), 2)", True),
    "in a set": ("{V, 'other'}", True),
    "a key": ("{V: 1}", True),
    "a default": ("(lambda value=V: value).__defaults__", True),
    "in a closure": ("(lambda value: lambda: value)(V)()", True),
    "in a partial": ("functools.partial(print, V).args", True),
    "its length": ("len(V)", False),
    "its parts": ("V.split('e')", False),
    "its beginning": ("V[:3]", False),
    "in capitals": ("V.upper()", False),
    "hashed": ("hashlib.sha256(V.encode()).hexdigest()", False),
    "compared": ("V == {value!r}", False),
    "a branch": ("[1, 2] if V == {value!r} else None", False),
    "a pattern": ("re.compile(re.escape(V))", False),
    "a class by it": ("type('A' if V == {value!r} else 'B', (), dict()).__name__", False),
}
IMPORTS = "import functools, hashlib, os, pathlib, re, shutil, sys\n"
SHOW = (
    "import boot; value = boot.VALUE\n"
    "if isinstance(value, set): value = sorted(value)\n"
    "if isinstance(value, dict): value = {k: v for k, v in value.items() if not str(k).startswith('SNAPBOOT')}\n"
    "print(value)"
)


class Program:
    """A module that is preloaded, and its image."""

    def __init__(self, folder, source, env, start=None):
        self.start = start or folder
        self.env = {**support.environment(PYTHONPATH=str(folder)), **env}
        (folder / "boot.py").write_text(IMPORTS + source + "\n")
        self.image = folder / "x.img"
        self.result = support.freeze(self.image, [support.PYTHON], "--preload", "boot", env=self.env, cwd=self.start)
        assert self.result.status == 0, self.result

    def check(self, is_served, **changes):
        """A start with other variables prints what an ordinary one prints; whether the image serves it."""
        env = {name: value for name, value in {**self.env, **changes}.items() if value is not None}
        image, plain = (support.run([program, "-c", SHOW], env=env, cwd=self.start) for program in (self.image, support.PYTHON))
        assert (image.out, image.status) == (plain.out, plain.status), (image, plain)
        assert image.fell_back != is_served, image


@pytest.fixture
def homes(tmp_path):
    """Two home directories."""
    folders = [tmp_path / name for name in ("home", "another home")]
    for folder in folders:
        folder.mkdir()
    return [str(folder) for folder in folders]


@pytest.mark.sample(8)
@pytest.mark.parametrize("variable", ["HOME", "USER", "LOGNAME", "PATH"])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_only_kept_is_renewed(way, variable, tmp_path, homes):
    values = {"HOME": homes, "PATH": [os.environ["PATH"], f"{os.environ['PATH']}:/nowhere"]}.get(variable, ["one", "the other"])
    expression, is_renewed = WAYS[way]
    source = f"V = os.environ[{variable!r}]\nVALUE = {expression.replace('{value!r}', repr(values[0]))}\ndel V"
    program = Program(tmp_path, source, {variable: values[0]})
    program.check(True)
    program.check(is_renewed, **{variable: values[1]})
    program.check(False, **{variable: None})


def test_what_was_looked_for_below_home_counts_where_it_is(tmp_path, homes):
    first, second = homes
    program = Program(tmp_path, "VALUE = os.path.exists(os.path.expanduser('~/.config/x'))", {"HOME": first})
    program.check(True, HOME=second)
    program.check(True, HOME=f"{tmp_path}/is not there")
    os.makedirs(f"{second}/.config/x")
    program.check(False, HOME=second)


def test_that_the_current_directory_is_there_counts_nowhere(tmp_path):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    source = "VALUE = pathlib.Path.cwd().resolve().is_dir(), os.path.islink(os.getcwd())"
    program = Program(tmp_path, source, {}, start=tmp_path / "here")
    program.check(True)
    program.start = tmp_path / "there"
    program.check(True)
    (tmp_path / "here").rmdir()
    program.check(True)


def test_what_was_found_below_home_binds_to_it(tmp_path, homes):
    first, second = homes
    (tmp_path / "home" / "settings").write_text("1")
    program = Program(tmp_path, "VALUE = open(os.path.expanduser('~/settings')).read()", {"HOME": first})
    program.check(True)
    (tmp_path / "another home" / "settings").write_text("2")
    program.check(False, HOME=second)


def test_what_was_found_along_path_counts_by_where(tmp_path):
    one, other = (tmp_path / name for name in ("one", "other"))
    for folder in (one, other):
        folder.mkdir()
    (one / "thing").write_text("#!/bin/sh\n")
    (one / "thing").chmod(0o755)
    plain = os.environ["PATH"]
    program = Program(tmp_path, "VALUE = shutil.which('thing'), shutil.which('no-such-thing')", {"PATH": f"{plain}:{one}"})
    program.check(True, PATH=f"{other}:{one}")
    program.check(True, PATH=f"{one}:/nowhere:{plain}")
    program.check(False, PATH=plain)
    (other / "no-such-thing").write_text("#!/bin/sh\n")
    (other / "no-such-thing").chmod(0o755)
    program.check(False, PATH=f"{other}:{one}")


def test_what_c_code_reads_binds(tmp_path, homes):
    getenv = "C = __import__('ctypes').CDLL(None); C.getenv.restype = __import__('ctypes').c_char_p\n"
    program = Program(tmp_path, getenv + "VALUE = C.getenv(b'HOME')", {"HOME": homes[0]})
    program.check(True)
    program.check(False, HOME=homes[1])


# What goes through the whole environment, and which variables count for it.
WHOLES = {
    "a beginning": ("{k: v for k, v in os.environ.items() if k.startswith('MY_')}", ["MY_OWN"], ["MINE", "OTHER"]),
    "an end": ("[v for k, v in os.environ.items() if k.lower().endswith('_proxy')]", ["http_proxy", "HTTPS_PROXY"], ["FOO"]),
    "a name in a copy": ("dict(os.environ).get('SETTING')", ["SETTING"], ["SETTINGS_FILE", "FOO"]),
    "a pattern": ("sorted(k for k in os.environ if re.match('^APP_[A-Z]+$', k))", ["APP_X"], ["FOO"]),
    "urllib": ("__import__('urllib.request').request.getproxies_environment()", ["http_proxy", "ftp_proxy"], ["PYENV_VERSION"]),
    "how many": ("len([k for k in os.environ if not k.startswith('SNAPBOOT')])", ["FOO", "BAR"], []),
    "nothing": ("[k for k in os.environ if k == 'no such']", [], ["FOO", "no_such"]),
}


@pytest.mark.parametrize("how", WHOLES)
def test_who_goes_through_the_environment_depends_on_what_it_picks(how, tmp_path):
    expression, counting, others = WHOLES[how]
    program = Program(tmp_path, f"VALUE = {expression}", {"GIVEN": "1"})
    program.check(True)
    for name in counting:
        program.check(False, **{name: "given"})
    for name in others:
        program.check(True, **{name: "given"})


def test_only_a_much_larger_environment_counts_by_its_size(tmp_path):
    room = "min(131072, 300000 - sum(len(k) + len(v) for k, v in os.environ.items() if not k.startswith('SNAPBOOT')))"
    program = Program(tmp_path, f"VALUE = {room}", {"GIVEN": "1"})
    program.check(True, FOO="bar")
    program.check(False, FOO="bar" * 40000)


def test_the_order_of_what_has_none_is_no_difference(tmp_path, homes):
    source = (
        "@functools.lru_cache(None)\ndef text(thing): return 'text %d' % THINGS[thing]\n"
        "THINGS = {object(): number for number in range(200)}\n"
        "for thing in set(THINGS): text(thing)\n"
        "CODES = {compile('1', 'file %d' % number, 'eval') for number in range(50)}\n"
        "VALUE = os.environ['HOME']"
    )
    program = Program(tmp_path, source, {"HOME": homes[0]})
    program.check(True, HOME=homes[1])


def test_a_copy_of_the_environment_is_that_of_each_start(tmp_path):
    program = Program(tmp_path, "VALUE = dict(os.environ, OWN='1')", {"GIVEN": "1"})
    for changes in ({}, {"GIVEN": "2"}, {"FOO": "bar"}, {"GIVEN": None}):
        program.check(True, **changes)
