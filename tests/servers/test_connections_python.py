"""Pools of Python that a boot has connected come out of a thaw disconnected, and connect again. Real servers answer."""

import subprocess

import pytest
from common import servers, support
from common.ready import prepared
from common.waiting import SECONDS
from store.stores import Store

from . import connections

MAIN = "import library\n\nlibrary.use()\n"
# Each thaw says who it is, and keeps its connection until all have.
AT_ONCE = "import sys\nimport library\n\nprint(library.pid(), flush=True)\nsys.stdin.read()\nprint(library.pid())\n"
PID_OF_ENGINE = "def pid():\n    with ENGINE.connect() as connection: return ask(connection)\n"


@pytest.fixture(scope="module")
def ready():
    return prepared("connections")


@pytest.fixture(scope="module")
def places(ready, tmp_path_factory):
    """By the words that stand for them."""
    with (
        servers.redis(tmp_path_factory.mktemp("redis")) as socket,
        servers.postgresql() as folder,
        servers.web() as web,
        servers.mongodb(ready["python"]) as mongo,
    ):
        yield {"SOCKET": str(socket), "FOLDER": str(folder), "WEB": web, "MONGO": mongo}


def write(folder, case, places, main=MAIN):
    (folder / "library.py").write_text(connections.put(case.python, places, folder))
    (folder / "main.py").write_text(main)


def refreeze(folder, ready, *options):
    image = folder / "program.img"
    image.unlink(missing_ok=True)
    return image, support.freeze(image, [ready["python"], "main.py"], *options, cwd=folder)


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", [*connections.SHARED, *connections.IN_PYTHON])
def test_what_a_boot_has_connected(case, ready, places, tmp_path):
    write(tmp_path, case, places)
    if refusal := case.refusal_in("python"):
        image, freeze = refreeze(tmp_path, ready, "--preload", "library")
        assert freeze.status == 2 and connections.put(refusal, places, tmp_path) in freeze.err and not image.exists(), freeze
        return
    ordinary = support.run([ready["python"], "main.py"], cwd=tmp_path)
    assert ordinary.status == 0 and not ordinary.err, ordinary
    image, freeze = refreeze(tmp_path, ready, "--preload", "library")
    assert freeze.status == 0, freeze
    for _ in range(2):
        thaw = support.thawed([image], cwd=tmp_path)
        assert (thaw.status, thaw.out, thaw.err) == (0, ordinary.out.replace("same", "another"), ""), thaw


def test_at_a_place_in_the_program(ready, places, tmp_path):
    write(tmp_path, connections.Case("", connections.ENGINE_PYTHON), places)
    image, freeze = refreeze(tmp_path, ready, "--at", "library:use")
    assert freeze.status == 0, freeze
    assert [support.thawed([image], cwd=tmp_path).out for _ in range(2)] == ["another\n"] * 2


def test_thaws_at_once_have_connections_of_their_own(ready, places, tmp_path):
    for program in (connections.ENGINE_PYTHON.replace("pid(connection)", "ask(connection)") + PID_OF_ENGINE, connections.POOL_WITH_THREADS):
        write(tmp_path, connections.Case("", program), places, AT_ONCE)
        image, freeze = refreeze(tmp_path, ready, "--preload", "library")
        assert freeze.status == 0, freeze
        pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        thaws = [subprocess.Popen([image], env=support.environment(), cwd=tmp_path, **pipe) for _ in range(6)]
        first = [thaw.stdout.readline() for thaw in thaws]
        last = [thaw.communicate(timeout=SECONDS)[0] for thaw in thaws]
        assert len({*first}) == len(thaws) and last == first


def test_through_the_store(ready, places, tmp_path):
    tmp_path.chmod(0o755)
    store = Store(tmp_path)
    write(tmp_path, connections.Case("", connections.REDIS_PYTHON), places)
    said = []
    for _ in range(4):
        said.append(store.run(ready["python"], "main.py"))
        store.wait()
    assert not said[-1].fell_back and {result.out.split()[1:] == ["True", "3"] for result in said} == {True}, said


def test_a_server_that_was_restarted_between(ready, tmp_path):
    (tmp_path / "redis").mkdir()
    with servers.redis(tmp_path / "redis") as socket:
        write(tmp_path, connections.Case("", connections.REDIS_PYTHON), {"SOCKET": str(socket)})
        image, freeze = refreeze(tmp_path, ready)
        assert freeze.status == 0, freeze
    socket.unlink(missing_ok=True)
    with servers.redis(tmp_path / "redis"):
        assert support.thawed([image], cwd=tmp_path).out.endswith(" True 3\n")
