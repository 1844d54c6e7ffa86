"""Pools that a boot has connected come out of a thaw disconnected, and connect again. Real servers answer."""

import contextlib
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

import pytest
from common import support
from common.waiting import SECONDS, wait_until

pytestmark = [pytest.mark.sample(3, whole=True), support.needs_ruby]

REDIS = """\
require "redis"
CLIENT = Redis.new(path: "SOCKET", db: 3)
NUMBER = CLIENT.call("CLIENT", "ID")
def use = p(CLIENT.call("CLIENT", "ID") == NUMBER, CLIENT.set("a", "1"), CLIENT.connection[:db])
"""
POSTGRESQL = """\
require "active_record"
ActiveRecord::Base.establish_connection(adapter: "postgresql", host: "FOLDER", username: "postgres", database: "postgres")
NUMBER = ActiveRecord::Base.connection.select_value("select pg_backend_pid()")
def use = p(ActiveRecord::Base.connection.select_value("select pg_backend_pid()") == NUMBER)
"""
SQLITE = """\
require "active_record"
ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: "DATABASE")
ActiveRecord::Base.connection.execute("create table if not exists t (a)")
def use = p(ActiveRecord::Base.connection.select_value("select count(*) from t"))
"""
DRIVER = """\
require "pg"
CLIENT = PG.connect(host: "FOLDER", user: "postgres", dbname: "postgres")
def use = p(CLIENT.exec("select 42").getvalue(0, 0))
"""


def needs(feature):
    if support.run(["ruby", "-e", f"require {feature!r}"]).status != 0:
        pytest.skip(f"this machine has none of it: {feature}")


def frozen(folder, library):
    """Freezes a program whose boot runs `library`. Returns the image, and the freeze."""
    (folder / "library.rb").write_text(library)
    (folder / "main.rb").write_text("use\n")
    image = folder / "program.img"
    return image, support.freeze(image, ["ruby", "main.rb"], "--preload", "./library", cwd=folder)


@contextlib.contextmanager
def running(command, is_ready, **options):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        yield wait_until(is_ready, f"an answer of {command[0]}")
    finally:
        process.kill()
        process.wait(SECONDS)


@contextlib.contextmanager
def postgresql():
    """A server of its own, whose socket is in the folder that it yields."""
    programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs or not support.IS_ROOT:
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
        with running(server, answers, **own):
            yield data
    finally:
        shutil.rmtree(data)


def test_redis_connects_again_to_its_database(tmp_path):
    needs("redis")
    if not shutil.which("redis-server"):
        pytest.skip("this machine has none of it: redis-server")
    place = tmp_path / "socket"
    with running(["redis-server", "--port", "0", "--unixsocket", place, "--save", ""], place.exists, cwd=tmp_path):
        image, freeze = frozen(tmp_path, REDIS.replace("SOCKET", str(place)))
        assert freeze.status == 0, freeze
        assert support.thawed([image]).out == 'false\n"OK"\n3\n'


def test_pools_of_active_record_connect_again_and_a_driver_is_refused(tmp_path):
    needs("active_record")
    needs("pg")
    with postgresql() as folder:
        image, freeze = frozen(tmp_path, POSTGRESQL.replace("FOLDER", str(folder)))
        assert freeze.status == 0, freeze
        assert [support.thawed([image]).out for _ in range(2)] == ["false\n"] * 2
        image.unlink()
        _, freeze = frozen(tmp_path, DRIVER.replace("FOLDER", str(folder)))
        assert freeze.status == 2 and "connected unix socket" in freeze.err and "pg/connection.rb" in freeze.err, freeze
        assert not image.exists()


def test_a_database_in_memory_is_refused(tmp_path):
    needs("active_record")
    image, freeze = frozen(tmp_path, SQLITE.replace("DATABASE", str(tmp_path / "file.db")))
    assert freeze.status == 0 and support.thawed([image]).out == "0\n", freeze
    image.unlink()
    _, freeze = frozen(tmp_path, SQLITE.replace("DATABASE", ":memory:"))
    assert freeze.status != 0 and "in memory" in freeze.err and not image.exists(), freeze
