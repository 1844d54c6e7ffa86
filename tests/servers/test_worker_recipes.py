"""Workers that ask a real Redis server for jobs start from images by recipe, and nothing is connected before the freeze."""

import contextlib
import subprocess

import pytest
from common import servers, support
from common.ready import prepared
from common.waiting import wait_until

pytestmark = pytest.mark.sample(2, whole=True)

TASKS = """\
import os

def note(text):
    with open("done", "a") as file:
        file.write(f"{text} {os.environ.get('GREETING')}\\n")
"""
BEAT = """\
from celery import Celery

app = Celery("beat", broker="redis+socket://SOCKET")
app.conf.beat_schedule = {"one": {"task": "one", "schedule": 0.2}}
"""


@pytest.fixture(scope="module")
def ready():
    return prepared("connections")


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "redis"
    folder.mkdir()
    with servers.redis(folder) as socket:
        yield socket


def asked(server, *words):
    """What the server answers."""
    return subprocess.run(["redis-cli", "-s", server, *words], capture_output=True, text=True, check=True).stdout.strip()


def connected(server):
    """How many clients have ever connected, without those of this function."""
    lines = asked(server, "info", "stats").splitlines()
    return next(int(line.partition(":")[2]) for line in lines if line.startswith("total_connections_received"))


def freeze(folder, server, image, command):
    """Freezes it as its recipe says, without a word to the server. Returns the image."""
    before = connected(server)
    result = support.freeze(image, command, cwd=folder, env=support.environment(PYTHONDONTWRITEBYTECODE="1"))
    assert result.status == 0 and connected(server) == before + 1, result
    shown = support.run([support.SNAPBOOT, "inspect", image], log=False).out
    assert "\n guards       *\n" in shown, shown
    return image


@contextlib.contextmanager
def started(command, folder, log, **variables):
    env = support.environment(PYTHONDONTWRITEBYTECODE="1", SNAPBOOT_LOG="1", **variables)
    with servers.started(command, folder, env, log) as process:
        yield process
    assert "ordinary way" not in log.read_text()


def test_a_worker_of_rq(ready, server, tmp_path):
    (tmp_path / "tasks.py").write_text(TASKS)
    command = [f"{ready['bin']}/rq", "worker", "--url", f"unix://{server}", "--path", "."]
    image = freeze(tmp_path, server, tmp_path / "worker.img", command)
    enqueue = f"import redis, rq, tasks; rq.Queue(connection=redis.Redis(unix_socket_path={str(server)!r})).enqueue(tasks.note, 'a job')"
    done, log = tmp_path / "done", tmp_path / "log"
    for number in (1, 2):
        added = support.run([ready["python"], "-c", enqueue], cwd=tmp_path)
        assert added.status == 0, added
        with started([image], tmp_path, log, GREETING=str(number)):
            wait_until(lambda number=number: done.exists() and f"a job {number}\n" in done.read_text(), log.read_text)
    assert done.read_text() == "a job 1\na job 2\n"


def test_celery_beat(ready, server, tmp_path):
    (tmp_path / "beat.py").write_text(BEAT.replace("SOCKET", str(server)))
    command = [f"{ready['bin']}/celery", "-A", "beat", "beat", "-s", str(tmp_path / "schedule")]
    image = freeze(tmp_path, server, tmp_path / "beat.img", command)
    said = {}
    for one in (command, [image]):
        asked(server, "del", "celery")
        log = tmp_path / "log"
        with started(one, tmp_path, log):
            wait_until(lambda: asked(server, "llen", "celery") != "0", log.read_text)
        said[one[0]] = [line for line in log.read_text().splitlines() if "LocalTime" not in line and " -> 20" not in line]
    assert len({tuple(lines) for lines in said.values()}) == 1, said
