"""`python -i` and PYTHONINSPECT: the session that follows a program is the same after a thaw as in an ordinary start."""

import pytest
from common import support

from .test_session import session

pytestmark = pytest.mark.sample(6)

SCRIPT = "import sys\nx = 5\ndef f(): return x\nprint('script', sys.argv, hasattr(sys, 'ps1'))\n"
FILES = {"s.py": SCRIPT, "ends.py": SCRIPT + "sys.exit(3)\n", "fails.py": SCRIPT + "1/0\n", "boot.py": "import json\n"}
# What shows the state that the program leaves; a pause follows each line.
KEYS = [
    b"import os, sys\r",
    b"dir(), __name__\r",
    b"sys.flags.inspect, sys.flags.interactive, sys.argv, sys.path, sys.ps1, os.environ.get('PYTHONPATH')\r",
    b"getattr(sys, 'last_value', None)\r",
]
# What the line editor does in addition, which is the same after every program.
EDITOR = [b"'rlcompleter' in sys.modules, 'readline' in sys.modules\r", b"\x1bOA\r", b"sys.getrefc\tf) > 1\r"]
EDITED = (["-i", "s.py", "a"], [])
CASES = [
    (["-i"], None, b"\x04"),
    (["-i", "s.py", "a"], None, b"sys.exit(7)\r"),
    (["-i", "ends.py"], None, b"\x04"),
    (["-i", "fails.py"], None, b"\x04"),
    (["-i", "-m", "s"], None, b"\x04"),
    (["-Bic", "f = 1"], None, b"sys.exit(7)\r"),
    (["ends.py"], "1", b"\x04"),
    ([], "1", b"sys.exit(7)\r"),
]


@pytest.fixture
def env(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    home = str(tmp_path / "home")
    return support.environment(
        HOME=home, TERM="xterm", SNAPBOOT_LOG="1", PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=str(tmp_path)
    )


@pytest.mark.parametrize("options, inspect, last", CASES, ids=[" ".join(case[0]) or "bare" for case in CASES])
def test_the_session_after_a_program(tmp_path, env, options, inspect, last):
    if inspect:
        env["PYTHONINSPECT"] = inspect
    command = [support.PYTHON, *options]
    image = support.frozen(tmp_path / "app.img", command, "--preload", "boot", env=env)
    # IMAGE ARGS is COMMAND ARGS: what the command has is not repeated.
    keys = [*KEYS, *(EDITOR if options in EDITED else []), last]
    ordinary = session(command, env, keys)
    (tmp_path / "home/.python_history").unlink(missing_ok=True)
    thawed = session([image], env, keys)
    assert thawed == ordinary
    assert b"starting the ordinary way" not in thawed[0]
    assert (tmp_path / "home/.python_history").exists()


@pytest.mark.parametrize("options", [["-i"], ["-i", "ends.py"]], ids=["bare", "script"])
def test_a_session_without_a_terminal(tmp_path, env, options):
    """With -i, what comes through a pipe is a session, too."""
    command = [support.PYTHON, *options]
    image = support.frozen(tmp_path / "app.img", command, env=env)
    text = b"a = 4\nprint(a)\n1/0\nprint('on')\n"
    ordinary, thawed = (support.run(argv, env=env, input=text) for argv in (command, [image]))
    assert (thawed.status, thawed.out, thawed.err) == (ordinary.status, ordinary.out, ordinary.err)


def test_no_session_where_nobody_is(tmp_path, env):
    env["PYTHONINSPECT"] = "1"
    image = support.frozen(tmp_path / "app.img", [support.PYTHON, "ends.py"], env=env)
    ordinary = support.run([support.PYTHON, "ends.py"], env=env)
    thawed = support.run([image], env=env)
    assert (thawed.status, thawed.out, thawed.err) == (ordinary.status, ordinary.out, ordinary.err)
    assert thawed.status == 1
