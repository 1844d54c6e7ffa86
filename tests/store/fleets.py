"""Machines that share images: stores of their own, the same program at the same path, and a remote store."""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import urllib.request

from common import support
from common.ready import prepared
from common.servers import answering, free_port

from store.stores import Store

SOURCE = {
    "python": "import sys\nfrom part import VALUE\nprint(VALUE, sys.argv[1:])\n",
    "ruby": 'require_relative "part"\nputs "#{VALUE} #{ARGV}"\n',
}
PART = {"python": "VALUE = 1\n", "ruby": "VALUE = 1\n"}
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIATESTONLY", "AWS_SECRET_ACCESS_KEY": "of-no-use-elsewhere"}


class Fleet:
    """Machines that have the same files at the same paths, and a remote store. top: holds all of it."""

    def __init__(self, top, language):
        self.top, self.remote, self.language = top, top / "remote", language
        self.files = top / "files"
        self.files.mkdir()
        self.script = self.files / ("show" + language.ending)
        self.part = self.files / ("part" + language.ending)
        self.script.write_text(SOURCE[language.name])
        self.part.write_text(PART[language.name])
        self.words = [language.program, self.script]
        self.keys = {"SNAPBOOT_REMOTE_SECRET_KEY": str(top / "key"), "SNAPBOOT_REMOTE_KEYS": str(top / "key.pub")}
        self.remote.mkdir()
        assert support.run([support.SNAPBOOT, "remote", "key", top / "key"]).status == 0

    def machine(self, name, url=None, **variables):
        """A machine of that name, with an empty store."""
        folder = self.top / name
        folder.mkdir()
        return self.again(name, url, **variables)

    def again(self, name, url=None, **variables):
        """The machine of that name, with what it has."""
        folder = self.top / name
        return Store(folder, **{"SNAPBOOT_REMOTE": url or f"file://{self.remote}", **self.keys, **variables})

    def keep(self):
        """Keeps what the remote store has, for `restore`."""
        shutil.copytree(self.remote, self.top / "whole")

    def restore(self):
        """Gives the remote store what `keep` has kept."""
        shutil.rmtree(self.remote)
        shutil.copytree(self.top / "whole", self.remote)

    def start(self, machine):
        return machine.run(*self.words, "a", cwd=self.files)

    def share_two_versions(self):
        """Has the machine `one` push two versions of an image, and `other` take the first."""
        one, other = self.machine("one"), self.machine("other")
        self.start(one)
        one.wait()
        assert self.pull(other).status == 0
        self.part.write_text("VALUE = 2\n")
        self.start(one)
        one.wait()
        assert len(self.objects("images")) == 2, said(one)

    def pull(self, machine):
        return machine.snapboot("remote", "pull", "--", *self.words, cwd=self.files, log=False)

    def objects(self, kind):
        """The paths of all chunks or images (manifests) in the remote store."""
        return sorted(path for path in (self.remote / "v1" / kind).rglob("*") if path.is_file())


def made(machine):
    """The paths of a machine's images. There is nothing half of one beside them."""
    folder, = (machine.place / "cache").glob("show*")
    assert not [path for path in folder.iterdir() if path.name.startswith(".") and ".img." in path.name]
    return sorted(folder.glob("*.img"))


def said(machine):
    """What was said last about an image on its way."""
    file, = (machine.place / "cache").glob("show*/remote.json")
    return json.loads(file.read_text())


def look_again(machine, waited=0):
    """Has the next start of a machine look for what was put off. waited: for how long it has been (seconds)."""
    (file,) = (machine.place / "cache").glob("*/put-off.json")
    put_off = json.loads(file.read_text())
    file.write_text(json.dumps({**put_off, "at": 0, "since": put_off["since"] - waited}))


@contextlib.contextmanager
def directory(fleet):
    """The URL of the fleet's directory, and variables."""
    yield None, {}


@contextlib.contextmanager
def s3(fleet, log=os.devnull):
    """The URL of an empty bucket of moto, and the variables with which a machine may use it. log: the file of its requests."""
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"

    def has_made_bucket():
        with contextlib.suppress(OSError), urllib.request.urlopen(urllib.request.Request(f"{endpoint}/images", method="PUT")):
            return True

    with answering([pathlib.Path(prepared("storages")["bin"], "moto_server"), "-p", str(port)], has_made_bucket, log=log):
        yield f"s3://images/some/prefix?region=us-east-1&endpoint={endpoint}", CREDENTIALS


@contextlib.contextmanager
def webdav(fleet):
    """The URL of an empty folder of WsgiDAV, which wants a password, and no variables."""
    port = free_port()
    served = fleet.top / "webdav"
    served.mkdir()
    user = {"user_mapping": {"*": {"one": {"password": "of-no-use-elsewhere"}}}}
    basic = {"accept_basic": True, "accept_digest": False, "default_to_digest": False}
    settings = {"provider_mapping": {"/": str(served)}, "host": "127.0.0.1", "port": port, "simple_dc": user, "http_authenticator": basic}
    (fleet.top / "wsgidav.json").write_text(json.dumps(settings))

    def answers():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    server = [pathlib.Path(prepared("storages")["bin"], "wsgidav"), "--config", fleet.top / "wsgidav.json", "--server", "cheroot"]
    with answering(server, answers):
        yield f"webdav:///some/prefix?endpoint=http://127.0.0.1:{port}&username=one&password=of-no-use-elsewhere", {}
