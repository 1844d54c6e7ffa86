"""Development servers in an enabled environment: what a reloader starts is thawed, too, and serves what was edited. Workers of uvicorn."""

import os
import shutil
import signal
import subprocess
import time

import pytest
from common import servers, support
from common.ready import prepared
from common.servers import free_port
from common.waiting import SECONDS, wait_until
from store.stores import Store

from .test_server_recipes import edit, frozen, page, started, wait_for

pytestmark = pytest.mark.sample(3, whole=True)

# Of each server: what starts it, the file that is edited, and whether another process waits for edits.
SERVERS = {
    "django": (["manage.py", "runserver", "PORT"], "shop/urls.py", "hello", True),
    "flask": (["-m", "flask", "--app", "flask_shop", "run", "--debug", "--port", "PORT"], "flask_shop.py", "hello", True),
    "flask alone": (["-m", "flask", "--app", "flask_shop", "run", "--port", "PORT"], "flask_shop.py", "hello", False),
    "uvicorn": (["-m", "uvicorn", "--reload", "--port", "PORT", "fastapi_shop:app"], "fastapi_shop.py", "hello", True),
}


class Enabled(Store):
    """A virtual environment of its own with the packages of the servers, enabled; and the applications."""

    def __init__(self, folder):
        folder.chmod(0o755)
        super().__init__(folder, SNAPBOOT_LOG="1")
        ready = prepared("servers")
        subprocess.run([ready["python"], "-m", "venv", "--without-pip", folder / "venv"], check=True)
        self.python = folder / "venv/bin/python"
        ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
        theirs, own = (subprocess.check_output([python, "-c", ask], text=True).strip() for python in (ready["python"], self.python))
        with open(f"{own}/servers.pth", "w") as file:
            file.write(theirs + "\n")
        self.shop = folder / "shop"
        shutil.copytree(support.ROOT / "bench/programs/servers", self.shop, ignore=shutil.ignore_patterns("__pycache__"))
        # The user's own files, see decision 89.
        (self.shop / ".git").mkdir()
        assert self.snapboot("enable", "-q", folder / "venv").status == 0
        self.log = folder / "log"

    def started(self, words):
        return servers.started([self.python, *words], self.shop, self.env, self.log)

    def processes(self, session):
        """Of each process of a session that runs Python: whether an image of the store is mapped."""
        found = {}
        for number in filter(str.isdecimal, os.listdir("/proc")):
            try:
                with open(f"/proc/{number}/stat") as stat, open(f"/proc/{number}/maps") as maps:
                    if int(stat.read().rpartition(") ")[2].split()[3]) == session:
                        found[int(number)] = f"{self.place}/" in maps.read()
            except OSError:
                continue
        return found


def wait_for_edited(file, port, text, log):
    """Wait for what a file says now. A reloader notes the times of files when its server may have answered already, as Django's does:
    an edit before that it sees with the next one alone. So the file is written again, after ever longer pauses."""
    pause, written = 5, time.monotonic()

    def is_shown():
        nonlocal pause, written
        if time.monotonic() > written + pause:
            file.touch()
            pause, written = 2 * pause, time.monotonic()
        return text in (page(port) or "")

    wait_until(is_shown, lambda: f"{text}: {page(port)}, {log.read_text()}")


@pytest.mark.parametrize("name", SERVERS)
def test_what_a_reloader_starts_is_thawed(name, tmp_path):
    words, file, text, has_child = SERVERS[name]
    port, enabled = free_port(), Enabled(tmp_path)
    words = [word.replace("PORT", str(port)) for word in words]
    for number in range(4):
        with enabled.started(words) as server:
            wait_for(port, text, enabled.log)
            server.send_signal(signal.SIGINT)
            server.wait(SECONDS)
        if number:  # the first start alone asks for no image
            enabled.wait()
    with enabled.started(words) as server:
        wait_for(port, text, enabled.log)
        before = enabled.processes(server.pid)
        assert all(before.values()) and (len(before) > 1) == has_child, (before, enabled.log.read_text())
        if has_child:
            edit(enabled.shop, file, text, "good day")
            wait_for_edited(enabled.shop / file, port, "good day", enabled.log)
            # The one that has answered before ends.
            wait_until(lambda: set(enabled.processes(server.pid)) != set(before), "another process")
            assert all(enabled.processes(server.pid).values()), enabled.log.read_text()


def test_gunicorn_with_workers_of_uvicorn(tmp_path):
    ready, shop = prepared("servers"), tmp_path / "shop"
    shutil.copytree(support.ROOT / "bench/programs/servers", shop)
    port, log = free_port(), tmp_path / "log"
    kind = ["-k", "uvicorn.workers.UvicornWorker", "-w", "2"]
    command = [f"{ready['bin']}/gunicorn", "--preload", *kind, "-b", f"127.0.0.1:{port}", "fastapi_shop:app"]
    image = frozen(shop, tmp_path / "shop.img", command)
    with started([image], shop, log, GREETING="first") as server:
        wait_for(port, "hello first", log)
        server.send_signal(signal.SIGHUP)
        wait_until(lambda: log.read_text().count("Application startup complete") >= 4, log.read_text)
        assert all("hello first" in (page(port) or "") for _ in range(50)), log.read_text()
    assert "ordinary way" not in log.read_text(), log.read_text()


def test_workers_that_uvicorn_starts(tmp_path):
    ready, shop = prepared("servers"), tmp_path / "shop"
    shutil.copytree(support.ROOT / "bench/programs/servers", shop)
    port, log = free_port(), tmp_path / "log"
    image = frozen(shop, tmp_path / "shop.img", [f"{ready['bin']}/uvicorn", "--workers", "2", "--port", str(port), "fastapi_shop:app"])
    for greeting in ("first", "second"):
        with started([image], shop, log, GREETING=greeting) as server:
            wait_for(port, f"hello {greeting}", log)
            wait_until(lambda: log.read_text().count("Application startup complete") == 2, log.read_text)
            server.send_signal(signal.SIGINT)
            assert server.wait(SECONDS) == 0, log.read_text()
        assert "ordinary way" not in log.read_text() and "Stopping parent process" in log.read_text(), log.read_text()
