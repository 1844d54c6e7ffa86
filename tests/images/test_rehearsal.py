"""A freeze starts the new image once, exit handlers included: nobody outside of that process may notice."""

import os
import signal
import socket
import subprocess

import pytest
from common import image_file, support

# What an exit handler might do. Each line appends its name to `done` when it worked.
HANDLERS = """\
import atexit, os, socket, subprocess, sys
log = open("log", "a")
def attempt(name, act):
    try:
        act()
    except Exception:
        return
    done.append(name)
done = []
def leave():
    attempt("log", lambda: (log.write("end\\n"), log.flush()))
    attempt("create", lambda: open("created", "w").close())
    attempt("remove", lambda: os.unlink("precious"))
    attempt("rename", lambda: os.rename("here", "there"))
    attempt("directory", lambda: os.mkdir("directory"))
    attempt("connect", lambda: socket.create_connection(("127.0.0.1", int(os.environ["PORT"]))))
    attempt("run", lambda: subprocess.run(["touch", "touched"], check=True))
    attempt("fork", lambda: os.waitpid(os.fork() or os._exit(0), 0))
    attempt("signal", lambda: os.kill(os.getppid(), 0))
    print(*done)
atexit.register(leave)
"""
EFFECTS = ["log", "create", "remove", "rename", "directory", "connect", "run", "fork", "signal"]


@pytest.fixture
def program(tmp_path):
    (tmp_path / "leaving.py").write_text(HANDLERS)
    for name in ("precious", "here", "log"):
        (tmp_path / name).write_text("")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        env = support.environment(PYTHONPATH=str(tmp_path), PORT=str(server.getsockname()[1]))
        yield tmp_path, env, server


def test_exit_handlers_have_no_effect_while_freezing(program):
    folder, env, server = program
    image = support.frozen(
        folder / "app.img", [support.PYTHON], "--preload", "leaving", "--env", "PORT", env=env, cwd=folder
    )
    assert (folder / "log").read_text() == ""
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(("app.img", "__"))) == [
        "here",
        "leaving.py",
        "log",
        "precious",
    ]
    with pytest.raises(BlockingIOError):
        server.accept()
    # And each has it in a start.
    assert support.thawed([image, "-c", "pass"], env=env, cwd=folder).out.split() == EFFECTS
    assert (folder / "log").read_text() == "end\n"


def test_pages_of_exit_handlers_are_prepared(tmp_path):
    """More pages are known to be written when exit handlers are in the rehearsal."""
    (tmp_path / "data.py").write_text(
        "import atexit\nDATA = [bytearray(8192) for _ in range(100)]\n"
        "def leave():\n    for page in DATA:\n        page[0] = 1\natexit.register(leave)\n"
    )
    env = support.environment(PYTHONPATH=str(tmp_path))
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "data", env=env)
    bare = support.frozen(tmp_path / "bare.img", [support.PYTHON], env=env)
    assert prepared(image) > prepared(bare) + 80


def prepared(image):
    """How many pages the image has the launcher prepare."""
    file = image_file.ImageFile(image.read_bytes())
    rows = list(file.rows("hot"))
    return sum(file.get("HotRange", "end", row) - file.get("HotRange", "start", row) for row in rows) // 4096


def test_a_confined_process_does_nothing_to_others(tmp_path):
    """The hidden subcommand, with a program that is no image."""
    script = tmp_path / "program"
    script.write_text("#!/bin/sh\necho text\nexec 2>&1\necho text >made\n")
    script.chmod(0o755)
    confined = subprocess.Popen([support.SNAPBOOT, "confined", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    _, status = os.waitpid(confined.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), status
    confined.send_signal(signal.SIGCONT)
    output, _ = confined.communicate(timeout=support.SECONDS)
    assert output.startswith("text\n") and not os.path.exists(tmp_path / "made"), output
