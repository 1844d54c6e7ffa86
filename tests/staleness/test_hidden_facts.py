"""Programs that keep more of a fact about their start than a text, or in places that are hard to see: a start with another value must
not get what the image's boot came to. What is renewed and what binds does not matter here; only that the same comes out as of an
ordinary start.
"""

import pytest

from .test_other_start import Program

pytestmark = pytest.mark.sample(24, whole=True)

# What is kept of HOME (V), and how it is shown; {n} is the size of the image's HOME.
KEPT = {
    "the object of a method": ("(V + '/{}').format", "VALUE('x')"),
    "its size by a method": ("{'n': len(V)}.get", "VALUE('n')"),
    "a factory of defaults": ("__import__('collections').defaultdict(lambda: V)", "VALUE['x']"),
    "a factory by it": ("__import__('collections').defaultdict(int if len(V) == {n} else list)", "VALUE['x']"),
    "an attribute of a text": ("type('Text', (str,), {})('x')", "VALUE.size", "VALUE.size = len(os.environ['HOME'])"),
    "what a function is called": ("lambda: 1", "VALUE.__name__", "VALUE.__name__ = 'in ' + os.environ['HOME']"),
    "one of two functions in a line": ("(lambda: 1) if len(V) == {n} else (lambda: 2)", "VALUE()"),
    "the order of a table": ("{'a': 1, 'b': 2} if len(V) == {n} else {'b': 2, 'a': 1}", "list(VALUE)"),
    "a large number as a key": ("{int.from_bytes(hashlib.md5(V.encode()).digest(), 'big'): 1}", "list(VALUE)"),
    "a range": ("range(len(V))", "len(VALUE)"),
    "a counter": ("__import__('itertools').count(len(V))", "next(VALUE)"),
    "the limit of a queue": ("__import__('collections').deque(maxlen=len(V))", "VALUE.maxlen"),
    "a buffer": ("__import__('io').StringIO(V)", "VALUE.getvalue()"),
    "a digest so far": ("hashlib.sha256(V.encode())", "VALUE.hexdigest()"),
    "the position of an iterator": ("iter(range(100))", "next(VALUE)", "for _ in range(len(os.environ['HOME']) % 50): next(VALUE)"),
    "a context variable": (
        "__import__('contextvars').ContextVar('x')",
        "VALUE.get()",
        "VALUE.set(len(os.environ['HOME']))",
    ),
    "the handler of a signal": (
        "__import__('signal')",
        "VALUE.getsignal(10)(1, 2)",
        "VALUE.signal(10, lambda *_, n=len(os.environ['HOME']): n)",
    ),
    "the umask": ("0", "os.umask(0)", "os.umask(0o77 if len(os.environ['HOME']) == {n} else 0o22)"),
    "beside what each boot has another of": ("'%s %d' % (V, __import__('time').time_ns())", "VALUE.split()[0]"),
    "below a key": ("{(V, 1): 1}", "VALUE.get((os.environ['HOME'], 1))"),
}


def made(tmp_path, show, source, env, start=None):
    program = Program(tmp_path, source, env, start=start)
    program.show = f"import boot, os; from boot import *; print({show})"
    return program


@pytest.mark.parametrize("what", KEPT)
def test_another_home_is_not_that_of_the_image(what, tmp_path, homes):
    expression, show, *more = KEPT[what]
    size = str(len(homes[0]))
    source = f"def kept():\n    V = os.environ['HOME']\n    return {expression}\nVALUE = kept()\n" + "\n".join(more)
    program = made(tmp_path, show, source.replace("{n}", size), {"HOME": homes[0]})
    program.check(None)
    program.check(None, HOME=homes[1])


# Values in which other starts were not tried, and what is kept.
FORMS = {
    "a slash at the end": ("os.path.expanduser('~') + os.environ['HOME']", {"HOME": "{home}/"}),
    "a space": ("pathlib.Path.home().as_uri()", {"HOME": "{home} of sam"}),
    "a link": ("os.path.realpath(os.environ['HOME'])", {"HOME": "{link}"}),
    "capitals": ("os.environ['USER'].lower()", {"USER": "Sam"}),
    "a dot": ("re.sub('[^a-z0-9]', '_', os.environ['USER'])", {"USER": "sam.smith"}),
    "an address": ("os.environ['USER'].split('@')[0]", {"USER": "sam@example.org"}),
    "a long name": ("os.environ['USER'][:32]", {"USER": "s" * 50}),
    "a folder twice": ("':'.join(dict.fromkeys(os.environ['PATH'].split(':')))", {"PATH": "/usr/bin:/bin:/usr/bin"}),
    "a name in a path": ("os.path.basename(os.environ['HOME']) == os.environ['USER']", {"USER": "home"}),
}


@pytest.mark.parametrize("what", FORMS)
def test_a_form_that_was_not_tried_is_not_served(what, tmp_path, homes):
    expression, changes = FORMS[what]
    link = tmp_path / "link"
    link.symlink_to(homes[0])
    plain = {"HOME": homes[0], "USER": "sam", "PATH": "/usr/bin:/bin"}
    program = made(tmp_path, "VALUE", f"VALUE = {expression}", plain)
    program.check(True)
    program.check(False, **{name: value.format(home=homes[1], link=link) for name, value in changes.items()})


def test_the_directory_being_home_is_told_apart(tmp_path, homes):
    for expression in ("os.environ['HOME'] == os.getcwd()", "os.getcwd().replace(os.environ['HOME'], '~')"):
        program = made(tmp_path, "VALUE", f"VALUE = {expression}", {"HOME": homes[0]})
        program.check(True)
        program.start = homes[0]
        program.check(None)


USES = {
    "a file is written": "open(os.environ['HOME'] + '/out', 'a').close(); VALUE = os.path.exists(os.environ['HOME'] + '/out')",
    "a folder is made": "os.makedirs(os.environ['HOME'] + '/.cache/app', exist_ok=True)",
    "beside it": "VALUE = os.path.exists(os.environ['HOME'] + '.bak')",
    "above it": "VALUE = os.path.exists(os.environ['HOME'] + '/../another-home')",
    "by a name": "VALUE = os.path.exists('/tmp/for-' + os.environ['USER'])",
}


@pytest.mark.parametrize("what", USES)
def test_what_is_done_with_a_path_binds_to_it(what, tmp_path, homes):
    (tmp_path / "another-home.bak").touch()
    variable = "USER" if what == "by a name" else "HOME"
    program = made(tmp_path, "0", USES[what], {"HOME": homes[0], "USER": "sam"})
    program.check(False, **{variable: {"HOME": homes[1], "USER": "kim"}[variable]})


def test_a_file_that_cannot_be_run_is_passed_by(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "thing").touch(0o644)
    (tmp_path / "c" / "thing").touch(0o755)
    path = f"{tmp_path}/a:{tmp_path}/b:{tmp_path}/c:/usr/bin:/bin"
    program = made(tmp_path, "VALUE", "VALUE = shutil.which('thing')", {"PATH": path})
    (tmp_path / "b" / "thing").touch(0o755)
    program.check(None)
    program.check(None, PATH=path + ":/nowhere")


def test_a_place_that_was_named_is_not_where_home_is(tmp_path, homes):
    program = made(
        tmp_path,
        "VALUE",
        "VALUE = os.environ.get('XDG_CONFIG_HOME') or os.path.expanduser('~/.config')",
        {"HOME": homes[0], "XDG_CONFIG_HOME": homes[0] + "/.config"},
    )
    program.check(True)
    program.check(None, HOME=homes[1], XDG_CONFIG_HOME=None)
    program.check(None, XDG_CONFIG_HOME=None)
