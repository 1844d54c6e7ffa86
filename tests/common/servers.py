"""Servers that tests start."""

import contextlib
import http.server
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

import pytest

from . import support
from .waiting import SECONDS, wait_until


def free_port():
    """A port of 127.0.0.1 on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def started(argv, cwd, env, log):
    """A process without input, whose output is in the file `log`. It is killed at the end, with its children."""
    with open(log, "w") as file:
        process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(SECONDS)


@contextlib.contextmanager
def answering(command, is_ready, log=os.devnull, **options):
    """Runs a server until it is ready, and yields. Kills it at the end. log: the file of its output."""
    with open(log, "w") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, **options)
    try:
        wait_until(is_ready, f"an answer of {command[0]}")
        yield process
    finally:
        process.kill()
        process.wait(SECONDS)


@contextlib.contextmanager
def redis(folder):
    """A Redis server of its own. Yields the path of its socket, in a folder."""
    if not shutil.which("redis-server"):
        pytest.skip("this machine has none of it: redis-server")
    place = folder / "redis.socket"
    command = ["redis-server", "--port", "0", "--unixsocket", place, "--save", "", "--dir", folder]
    with answering(command, place.exists):
        yield place


@contextlib.contextmanager
def postgresql():
    """A PostgreSQL server of its own. Yields the folder that has its socket."""
    programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
    if not (programs and (programs[-1] / "postgres").exists()) or os.geteuid() != 0:
        pytest.skip("this machine has none of it: a PostgreSQL server")
    user = pwd.getpwnam("postgres")
    # Where another user may go, and short enough for the path of a socket.
    data = pathlib.Path(tempfile.mkdtemp(prefix="snapboot-"))
    os.chown(data, user.pw_uid, user.pw_gid)
    own = {"user": user.pw_uid, "group": user.pw_gid, "cwd": data}
    made = subprocess.run([programs[-1] / "initdb", "-A", "trust", "-D", data / "data"], capture_output=True, **own)
    assert made.returncode == 0, made
    server = [programs[-1] / "postgres", "-D", data / "data", "-k", data, "-h", "", "-F"]
    answers = lambda: subprocess.run([programs[-1] / "pg_isready", "-h", data], capture_output=True).returncode == 0  # noqa: E731
    try:
        with answering(server, answers, **own):
            yield data
    finally:
        shutil.rmtree(data)


class NumberOfClient(http.server.BaseHTTPRequestHandler):
    """Answers each request by the number of its client's port, and keeps the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = b"%d" % self.client_address[1]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def web():
    """A web server whose only page says by which port its client came. Yields its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), NumberOfClient)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield "127.0.0.1:%d" % server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def mongodb(python):
    """What looks like a MongoDB server to a client. Yields its address. python: has PyMongo's module bson."""
    port = free_port()
    with answering([python, support.ROOT / "tests/common/mongodb.py", str(port)], lambda: _is_open(port)):
        yield f"127.0.0.1:{port}"


def _is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
