"""Remote stores on storages that speak by network: S3 (moto) and Redis. What holds for all is in test_remote.py."""

import contextlib
import pathlib
import shutil
import subprocess
import urllib.request

import pytest
from common.languages import PYTHON
from common.ready import prepared
from common.servers import answering, free_port

from store.fleets import Fleet, made
from store.stores import is_thawed

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIATESTONLY", "AWS_SECRET_ACCESS_KEY": "of-no-use-elsewhere"}


@contextlib.contextmanager
def s3(folder):
    """The URL of an empty bucket."""
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"

    def has_made_bucket():
        with contextlib.suppress(OSError), urllib.request.urlopen(urllib.request.Request(f"{endpoint}/images", method="PUT")):
            return True

    with answering([pathlib.Path(prepared("storages")["bin"], "moto_server"), "-p", str(port)], has_made_bucket):
        yield f"s3://images/some/prefix?region=us-east-1&endpoint={endpoint}"


@contextlib.contextmanager
def redis(folder):
    """The URL of an empty Redis. opendal speaks with it by TCP alone."""
    if not shutil.which("redis-server"):
        pytest.skip("this machine has none of it: redis-server")
    port = free_port()

    def answers():
        return subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True).stdout == b"PONG\n"

    with answering(["redis-server", "--port", str(port), "--save", "", "--dir", folder], answers):
        yield f"redis://127.0.0.1:{port}"


@pytest.mark.parametrize("storage, lists", [(s3, True), (redis, False)], ids=["S3", "Redis"])
def test_machines_share_images_through(tmp_path, storage, lists):
    fleet = Fleet(tmp_path, PYTHON)
    with storage(tmp_path) as url:
        one = fleet.machine("one", url=url, **CREDENTIALS)
        first = fleet.start(one)
        one.wait()
        other = fleet.machine("other", url=url, **CREDENTIALS)
        pulled = fleet.pull(other)
        assert pulled.status == 0 and pulled.out.startswith("the image was pulled") and made(other), pulled
        again = fleet.start(other)
        assert is_thawed(again) and again.out == first.out, again
        listed = other.snapboot("remote", "list", log=False)
        assert ("show.py" in listed.out) == lists and (listed.status == 0) == lists, listed
        for action in ("verify", "prune"):
            assert (other.snapboot("remote", action, log=False).status == 0) == lists, action


@pytest.mark.fault("a remote store whose bucket is not there", "the machine makes its own image")
def test_a_bucket_that_is_not_there(tmp_path):
    fleet = Fleet(tmp_path, PYTHON)
    with s3(tmp_path) as url:
        one = fleet.machine("one", url=url.replace("images", "others"), **CREDENTIALS)
        assert fleet.start(one).fell_back
        one.wait()
        assert is_thawed(fleet.start(one)) and made(one)
        pushed = one.snapboot("remote", "push", log=False)
        assert pushed.status == 1 and "such as the bucket, is missing or wrong" in pushed.err, pushed
        assert not any(value in pushed.err for value in CREDENTIALS.values()), pushed
