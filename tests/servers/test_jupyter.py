"""`jupyter server` starts from an image by recipe: its token and the secret of its cookies are those of each start."""

import functools
import json
import re
import signal
import urllib.request

import pytest
from common.ready import prepared
from common.servers import free_port
from common.support import SNAPBOOT, freeze, run
from common.waiting import SECONDS, wait_until

from .test_server_recipes import environment, started

pytestmark = pytest.mark.sample(1, whole=True)


def answers(port, token):
    """Whether the server says that it has no kernels. It does not while it begins, or if it wants another token."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/kernels", headers={"Authorization": f"token {token}"})
    try:
        return json.load(urllib.request.urlopen(request, timeout=SECONDS)) == []
    except OSError:
        return False


def test_each_start_has_its_own_token_and_secret(tmp_path):
    ready, port, log = prepared("jupyter"), free_port(), tmp_path / "log"
    folder, home = tmp_path / "notes", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    command = [ready["python"], "-m", "jupyter_server", "--allow-root", "--no-browser", "--ServerApp.port_retries=0", f"--port={port}"]
    env = environment(HOME=str(home))
    image = tmp_path / "server.img"
    files = home / ".local/share/jupyter/runtime"
    tokens, secrets, said = [], [], []
    for argv in (command, [image], [image]):
        if len(tokens) == 1:  # the first start of all makes folders in HOME
            result = freeze(image, command, "--env", "HOME", "--env", "PATH", "--env", "PYTHONPATH", cwd=folder, env=env)
            assert result.status == 0 and "the application is not in the image" not in result.err, result
            assert "\n guards       *\n" in run([SNAPBOOT, "inspect", image], log=False).out
            assert not list(files.glob("jupyter_cookie_secret")) + list(files.glob("jpserver-*")), "the boot has come too far"
        with started(argv, folder, log, HOME=str(home)) as server:
            wait_until(lambda: "token=" in log.read_text(), log.read_text)
            (token,) = set(re.findall(r"token=(\w+)", log.read_text()))
            wait_until(functools.partial(answers, port, token), log.read_text)
            assert not any(answers(port, other) for other in tokens)
            (secret,) = files.glob("jupyter_cookie_secret")
            (own,) = files.glob("jpserver-*.json")
            assert json.loads(own.read_text())["pid"] == server.pid
            secrets.append(secret.read_text())
            secret.unlink()
            server.send_signal(signal.SIGTERM)
            server.wait(SECONDS)
        tokens.append(token)
        # Up to where it serves; times differ.
        before, serves, _ = log.read_text().partition("Use Control-C")
        assert serves and "ordinary way" not in before, before
        said.append(re.sub(rf"[-\d]+ [:.\d]+|{token}", "", before))
    assert len(set(tokens)) == len(set(secrets)) == 3
    assert said[1] == said[2] == said[0]
