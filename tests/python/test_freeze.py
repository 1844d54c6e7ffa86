"""Freezing: hooks, freeze points, preloads, what is reported."""

import os

import harness
import pytest

pytestmark = pytest.mark.sample(3, whole=True)

HOOKS = """
import sys
sys.path.insert(0, {library!r})
import snapboot
print("boot", snapboot.state())
@snapboot.before_freeze
def first(): print("before 1", snapboot.state())
@snapboot.before_freeze
def second(): print("before 2")
@snapboot.after_thaw
def third(): print("after 1", snapboot.state(), sys.argv)
@snapboot.defer
def fourth(): print("deferred")
"""
LIBRARY = os.path.dirname(os.path.dirname(harness.FRONT_END))


@pytest.fixture
def simulated(python, tmp_path):
    """Makes simulated images in tmp_path."""
    made = []

    def make(*rest, **options):
        made.append(harness.Simulated([python] + list(rest), 1, cwd=str(tmp_path), **options))
        return made[-1]

    yield make
    for image in made:
        image.close()


def test_hooks(simulated, tmp_path):
    (tmp_path / "hooked.py").write_text(HOOKS.format(library=LIBRARY))
    result = simulated(kind="bare", preload=["hooked"]).run(["-c", "print('main')", "x"])
    assert result.stderr == ""
    boot, after = result.stdout.split("before 1 freezing\n")
    assert boot == "boot freezing\nbefore 2\n"
    assert after == "after 1 thawed ['-c', 'x']\ndeferred\nmain\n"


def test_hooks_in_an_ordinary_start(python, tmp_path):
    (tmp_path / "hooked.py").write_text(HOOKS.format(library=LIBRARY))
    result = harness.ordinary([python, "-c", "import hooked, snapboot; snapboot.freeze_point()"], cwd=str(tmp_path))
    assert (result.stdout, result.stderr) == ("boot ordinary\ndeferred\n", "")


def test_an_exception_in_a_hook_names_the_hook(simulated, tmp_path):
    (tmp_path / "fails.py").write_text(
        "import sys; sys.path.insert(0, %r)\nimport snapboot\n@snapboot.after_thaw\ndef reopen(): 1 / 0\n" % LIBRARY
    )
    result = simulated(kind="bare", preload=["fails"]).run(["-c", "print('main')"])
    assert result.status == 1
    assert "in the after_thaw hook fails.reopen" in result.stderr
    assert "ZeroDivisionError" in result.stderr


def test_hooks_of_snapshot_restore_py(simulated, tmp_path):
    (tmp_path / "snapshot_restore_py.py").write_text(
        "b, a = [], []\n"
        "def get_before_snapshot(): return b\n"
        "def get_after_restore(): return a\n"
        "def register_before_snapshot(f, *args, **kwargs): b.append((f, args, kwargs)); return f\n"
        "def register_after_restore(f, *args, **kwargs): a.append((f, args, kwargs)); return f\n"
        "register_before_snapshot(print, 'second'); register_before_snapshot(print, 'first', end=';\\n')\n"
        "register_after_restore(print, 'third', end='.\\n'); register_after_restore(print, 'fourth')\n"
    )
    result = simulated(kind="bare", preload=["snapshot_restore_py"]).run(["-c", "print('main')"])
    assert result.stdout == "first;\nsecond\nthird.\nfourth\nmain\n"


def test_freeze_point_deep_in_the_program(simulated, tmp_path):
    script = tmp_path / "deep.py"
    script.write_text(
        "import sys; sys.path.insert(0, %r)\nimport snapboot\n"
        "def deep():\n    made = [1]\n    snapboot.freeze_point()\n    return made\n"
        "print(deep(), sys.argv, snapboot.state())\nsnapboot.freeze_point()\nsys.exit(5)\n" % LIBRARY
    )
    result = simulated(str(script), "fixed", kind="script", script=str(script)).run(["x"])
    assert (result.status, result.stderr) == (5, "")
    assert result.stdout == "[1] %r thawed\n" % [str(script), "fixed", "x"]


def test_freeze_point_never_reached(simulated, tmp_path):
    script = tmp_path / "never.py"
    script.write_text("if 0:\n    freeze_point()\n")
    image = simulated(str(script), kind="script", script=str(script))
    assert image.run().status == 2
    assert "without calling snapboot.freeze_point()" in dict(image.report())["error"]


def test_unknown_preload(simulated):
    image = simulated(kind="bare", preload=["json.nosuch"])
    assert image.run(["-c", "pass"]).status == 2
    assert "--preload json.nosuch: there is no module 'json.nosuch'" in dict(image.report())["error"]


def test_a_preload_that_raises(simulated, tmp_path):
    (tmp_path / "broken.py").write_text("import nosuch_dependency\n")
    result = simulated(kind="bare", preload=["broken"]).run(["-c", "pass"])
    assert result.status == 1
    assert result.stderr.startswith('Traceback (most recent call last):\n  File "%s/broken.py"' % tmp_path)


def test_nothing_is_left_in_sys_modules(python, simulated, tmp_path):
    show = "import sys; print(sorted(sys.modules))"
    ordinary = harness.ordinary([python, "-c", show], cwd=str(tmp_path))
    assert simulated(kind="bare").run(["-c", show]) == ordinary


def test_a_script_is_not_run_before_the_freeze_but_its_imports_are(simulated, tmp_path):
    script = tmp_path / "main.py"
    script.write_text("import quiet, loud\nprint('main', quiet.thawed())\n")
    (tmp_path / "quiet.py").write_text(
        "import _codecs\nstate = _codecs.lookup_error('snapboot.front_end').state\ndef thawed(): return state\n"
    )
    (tmp_path / "loud.py").write_text("print('loud')\n")
    image = simulated(str(script), kind="script", script=str(script))
    result = image.run()
    # What prints when it is imported must print at each start, so it is left to the program's own run.
    assert result.stdout == "loud\nmain freezing\n"
    loaded = [value for key, value in image.report() if key == "loaded"]
    assert str(tmp_path / "quiet.py") in loaded
    assert str(tmp_path / "loud.py") not in loaded


def test_what_the_program_changes_in_the_environment_is_kept(simulated, tmp_path):
    (tmp_path / "changes.py").write_text("import os; os.environ['ADDED'] = 'yes'; os.environ.pop('TAKEN', None)\n")
    image = simulated(kind="bare", preload=["changes"], env=harness.clean_environment(TAKEN="1", KEPT="old"))
    code = "import os; print([os.environ.get(n) for n in ('ADDED', 'TAKEN', 'KEPT')], flush=True); "
    code += "os.system('echo $ADDED $TAKEN $KEPT')"
    result = image.run(["-c", code], env=harness.clean_environment(TAKEN="2", KEPT="new"))
    assert result.stdout == "['yes', None, 'new']\nyes new\n"


def test_random_state_is_not_shared(simulated):
    image = simulated(kind="bare", preload=["random", "ssl", "tempfile", "uuid", "multiprocessing"])
    code = (
        "import random, ssl, tempfile, uuid, multiprocessing as m\n"
        "print(random.random(), ssl.RAND_bytes(8), tempfile.mktemp(), uuid.uuid4(), bytes(m.current_process().authkey))"
    )
    assert image.run(["-c", code]).stdout != image.run(["-c", code]).stdout


def test_origins_of_descriptors(simulated, tmp_path):
    (tmp_path / "opens.py").write_text("import os\nfile = open(os.devnull)\nimport socket\nsock = socket.socket()\n")
    image = simulated(kind="bare", preload=["opens"], origins=True)
    code = "import opens; print(opens.file.fileno(), opens.sock.fileno())"
    file, sock = image.run(["-c", code]).stdout.split()
    origins = [value for key, value in image.report() if key == "fd_origin"]
    assert origins == ["%s:%s/opens.py:2" % (file, tmp_path), "%s:%s/opens.py:4" % (sock, tmp_path)]


@pytest.mark.parametrize("kind", ["script", "code", "module"])
def test_what_can_never_start_is_not_frozen(simulated, python, tmp_path, kind):
    script = tmp_path / "never.py"
    script.write_text("import os\ndef (\n")
    rest = {"script": [str(script)], "code": ["-c", script.read_text()], "module": ["-m", "never"]}[kind]
    image = simulated(*rest, kind=kind, script=str(script) if kind == "script" else None)
    result = image.run()
    assert result.status == 1
    assert result.stderr.splitlines()[-4:] == harness.ordinary([python] + rest, cwd=str(tmp_path)).stderr.splitlines()[-4:]


@pytest.mark.parametrize("code", ["x = 1 is 1\n", "x = '\\d'\n"])
def test_what_the_compiler_warns_of_is_frozen(simulated, tmp_path, code):
    script = tmp_path / "warned.py"
    script.write_text(code + "print('main')\n")
    assert simulated(str(script), kind="script", script=str(script)).run().stdout == "main\n"


@pytest.mark.parametrize("kind", ["script", "code"])
@pytest.mark.parametrize("hook", ["before_freeze", "register_before_snapshot"])
def test_a_hook_of_the_main_part_before_the_freeze_is_warned_of(simulated, tmp_path, kind, hook):
    code = "import sys; sys.path.insert(0, %r)\nimport snapboot\n" % LIBRARY
    code += "%s = getattr(snapboot, 'before_' + 'freeze')\n%s(print)\n" % (hook, hook)
    script = tmp_path / "dead.py"
    script.write_text(code)
    image = simulated(*([str(script)] if kind == "script" else ["-c", code]), kind=kind, script=str(script))
    assert image.run().stdout == ""
    assert "mentions %s" % hook in dict(image.report())["warning"]
    script.write_text(code + "snapboot.freeze_point()\n")
    image = simulated(str(script), kind="script", script=str(script))
    assert image.run().stdout == "\n"
    assert "warning" not in dict(image.report())
