"""Remote stores on storages that speak by network: S3 (moto), WebDAV and Redis. What holds for all is in test_remote.py."""

import contextlib
import shutil
import subprocess

import pytest
from common.languages import PYTHON
from common.servers import answering, free_port

from store.fleets import Fleet, made, s3, said, webdav
from store.stores import is_thawed


@contextlib.contextmanager
def redis(fleet):
    """The URL of an empty Redis, and variables. opendal speaks with it by TCP alone."""
    if not shutil.which("redis-server"):
        pytest.skip("this machine has none of it: redis-server")
    port = free_port()

    def answers():
        return subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True).stdout == b"PONG\n"

    with answering(["redis-server", "--port", str(port), "--save", "", "--dir", fleet.top], answers):
        yield f"redis://127.0.0.1:{port}", {}


@pytest.mark.parametrize("storage, lists", [(s3, True), (webdav, True), (redis, False)], ids=["S3", "WebDAV", "Redis"])
def test_machines_share_images_through(tmp_path, storage, lists):
    fleet = Fleet(tmp_path, PYTHON)
    with storage(fleet) as (url, variables):
        one = fleet.machine("one", url=url, **variables)
        first = fleet.start(one)
        one.wait()
        other = fleet.machine("other", url=url, **variables)
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
    with s3(fleet) as (url, variables):
        one = fleet.machine("one", url=url.replace("images", "others"), **variables)
        assert fleet.start(one).fell_back
        one.wait()
        assert is_thawed(fleet.start(one)) and made(one)
        pushed = one.snapboot("remote", "push", log=False)
        assert pushed.status == 1 and "such as the bucket, the region or the endpoint, is missing or wrong" in pushed.err, pushed
        assert not any(value in pushed.err for value in variables.values()), pushed


@pytest.mark.fault("a remote store whose credentials are missing or wrong", "the machine makes its own image, and the message says why")
@pytest.mark.parametrize(
    "storage, changed, words",
    [
        (webdav, ("&password=of-no-use-elsewhere", "&password=wrong"), "it is forbidden (401): credentials are missing or wrong"),
        (s3, ("?", "?disable_config_load=true&"), "there are no credentials for it"),
    ],
    ids=["WebDAV", "S3"],
)
def test_credentials_that_do_not_suffice(tmp_path, storage, changed, words):
    fleet = Fleet(tmp_path, PYTHON)
    with storage(fleet) as (url, _):
        one = fleet.machine("one", url=url.replace(*changed), AWS_EC2_METADATA_DISABLED="true")
        listed = one.snapboot("remote", "list", log=False)
        assert listed.status == 1 and words in listed.err and "elsewhere" not in listed.err, listed
        assert fleet.start(one).fell_back
        one.wait()
        assert made(one) and is_thawed(fleet.start(one)), said(one)
    assert said(one)["about"] == "push" and words in said(one)["text"], said(one)
