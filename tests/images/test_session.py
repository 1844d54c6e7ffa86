"""A bare interpreter at a terminal: the same session after a thaw as in an ordinary start."""

import os
import pty
import re
import select
import signal
import sys

import pytest
from common import support
from common.terminal import next_part
from common.waiting import LOOK, SECONDS, Rest

pytestmark = pytest.mark.sample(10)

PROMPTS = re.compile(rb"(>>> |\.\.\. +)$")
IMPORT = [b"import os, subprocess, sys\r"]
KEYS = [
    b"1 + 1\r",
    *IMPORT,
    b"os.environ.get('PYTHONINSPECT'), sys.flags.inspect, sys.flags.interactive, sys.argv, sys.path[0], sys.ps1\r",
    b"subprocess.call(['sh', '-c', 'echo [$PYTHONINSPECT]'])\r",
    b"sorted(globals()), __name__, __spec__ and __spec__.name\r",
    b"1/0\r",
    b"def f():\r",
    b"    return 3\r",
    b"\r",
    b"f()\r",
    b"\x1bOA\r",  # the line before
    b"sys.getrefc\tf) > 1\r",  # completed to sys.getrefcount(
    b"broken \x03",
    b"\x1b[200~a = 1\nb = 2\n\x1b[201~\r",  # what a terminal sends for a paste
    b"a, b\r",
    b"1 +\r",
    b"'readline' in sys.modules, 'ctypes' in sys.modules, sys.__interactivehook__.__qualname__\r",
]


def session(argv, env, keys):
    """What a terminal shows, and the status. Each of the keys is typed at a prompt."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(argv[0], [os.fspath(word) for word in argv], env)
    shown, keys = b"", list(keys)
    rest = Rest(child)
    while True:
        # A prompt may come with codes of the line editor, which shows it again while it edits.
        prompts = keys and PROMPTS.search(re.sub(rb"\x1b(\[\??[\d;]*[a-zA-Z]|[=>])", b"", shown))
        if select.select([terminal], [], [], LOOK if prompts else SECONDS)[0]:
            rest.forget()
            if not (part := next_part(terminal)):
                break
            shown += part
        elif not prompts:
            os.kill(child, signal.SIGKILL)
            break
        elif rest.is_reached():
            rest.forget()
            os.write(terminal, keys.pop(0))
            shown += b"\0"
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert not keys, (keys, shown)
    return shown, os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize("basic", [None, "1"] if sys.version_info >= (3, 13) else [None])
@pytest.mark.parametrize(
    "startup, last",
    [
        (None, b"\x04"),
        (None, b"sys.exit(7)\r"),
        (None, b"raise SystemExit('text')\r"),
        ("import math\nNAME = __file__", b"\x04"),
        ("1/0", b"\x04"),
        ("def (", b"\x04"),
        ("raise SystemExit(5)", None),
    ],
)
def test_a_session_is_as_ever(tmp_path, startup, last, basic):
    home = tmp_path / "home"
    home.mkdir()
    env = support.environment(HOME=str(home), TERM="xterm", SNAPBOOT_LOG="1", PYTHONDONTWRITEBYTECODE="1")
    if basic:
        env["PYTHON_BASIC_REPL"] = basic
    if startup is not None:
        (tmp_path / "startup.py").write_text(startup + "\n")
        env["PYTHONSTARTUP"] = str(tmp_path / "startup.py")
    (tmp_path / "boot.py").write_text("import json\n")
    env["PYTHONPATH"] = str(tmp_path)
    # One session has all lines; the others differ in how they begin and end.
    is_long = startup is None and last == b"\x04"
    typed = KEYS if is_long else IMPORT if startup is None else []
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "boot", env=env)
    keys = [*typed, b"dir(), __loader__.__class__\r", last] if last else []
    ordinary = session([support.PYTHON], env, keys)
    (home / ".python_history").unlink(missing_ok=True)
    thawed = session([image], env, keys)
    assert thawed == ordinary
    assert b"starting the ordinary way" not in thawed[0]
    if startup is None:
        assert (home / ".python_history").exists() and (b"ZeroDivisionError" in thawed[0]) == is_long


def test_a_line_editor_that_was_loaded_too_early(tmp_path):
    env = support.environment(HOME=str(tmp_path), TERM="xterm", SNAPBOOT_LOG="1")
    made = support.freeze(tmp_path / "app.img", [support.PYTHON], "--preload", "readline", env=env)
    if made.status != 0:
        pytest.skip("readline cannot be frozen here")
    shown, status = session([tmp_path / "app.img"], env, [b"1 + 1\r", b"\x04"])
    assert status == 0 and b"starting the ordinary way" in shown and re.search(rb"2\r?\n", shown), shown
