"""A remote store that answers badly to some requests only: for a lease, a difference or a mark. Images are made or taken."""

import contextlib
import email.utils
import http.server
import json
import pathlib
import shutil
import threading
import urllib.parse

import pytest
from common.languages import PYTHON

from store.fleets import Fleet, made, said
from store.stores import is_thawed

TRUNCATED, SILENT = "truncated", "silent"
ANSWERS = [403, 404, 500, 503, TRUNCATED, SILENT]


class Folder(http.server.BaseHTTPRequestHandler):
    """A WebDAV server of a folder, `server.top`. Requests for the paths that `server.is_bad` accepts are answered by `server.how`."""

    def answer(self):
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        name = urllib.parse.unquote(self.path).strip("/")
        with contextlib.suppress(OSError):
            if not self.server.is_bad(name):
                self.say(*self.result(self.server.top / name, content))
                return
            self.server.bad.append(name)
            if self.server.how == SILENT:
                self.server.has_ended.wait()
            elif self.server.how == TRUNCATED:
                self.say(207 if self.command == "PROPFIND" else 200, b"<", length=1000)
            else:
                self.say(self.server.how, b"")

    do_GET = do_HEAD = do_PROPFIND = do_PUT = do_MKCOL = do_DELETE = answer

    def result(self, path, content):
        """Status and content of an answer."""
        if self.command == "PUT":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            return 201, b""
        if self.command == "MKCOL":
            path.mkdir(parents=True, exist_ok=True)
            return 201, b""
        if not path.exists():
            return 404, b""
        if self.command == "DELETE":
            path.unlink()
            return 204, b""
        if self.command == "PROPFIND":
            below = sorted(path.iterdir()) if path.is_dir() and self.headers.get("Depth") == "1" else []
            return 207, b'<?xml version="1.0"?><D:multistatus xmlns:D="DAV:">%s</D:multistatus>' % b"".join(map(self.row, [path, *below]))
        return 200, path.read_bytes()

    def row(self, path):
        """What a list says of a file or folder."""
        status, place = path.stat(), path.relative_to(self.server.top)
        kind, end = ("<D:collection/>", "/") if path.is_dir() else ("", "")
        return (
            f"<D:response><D:href>/{urllib.parse.quote(str(place))}{end}</D:href><D:propstat><D:prop>"
            f"<D:getlastmodified>{email.utils.formatdate(status.st_mtime, usegmt=True)}</D:getlastmodified>"
            f"<D:getcontentlength>{status.st_size}</D:getcontentlength><D:resourcetype>{kind}</D:resourcetype>"
            "</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
        ).encode()

    def say(self, status, content, length=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(top, is_bad, how):
    """The URL of a folder whose server answers badly to some requests, and the paths of these."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Folder)
    server.daemon_threads = True
    server.top, server.is_bad, server.how, server.bad, server.has_ended = pathlib.Path(top), is_bad, how, [], threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield "webdav:///?endpoint=http://%s:%s" % server.server_address, server.bad
    finally:
        server.has_ended.set()
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory):
    """A fleet of which one machine has pushed two versions of an image, and the other one has the first."""
    fleet = Fleet(tmp_path_factory.mktemp("upgraded"), PYTHON)
    fleet.share_two_versions()
    shutil.rmtree(fleet.remote / "v1/used")
    fleet.keep()
    return fleet


@pytest.fixture
def other(upgraded, request):
    """The other machine. What a test does to it and to the remote store is undone."""
    shutil.copytree(upgraded.top / "other", upgraded.top / "kept")
    machine = upgraded.again("other")
    yield machine
    # A start may have left a builder behind, which writes into its store.
    machine.wait_until(lambda: not machine.is_busy(), "the builder has not ended")
    shutil.rmtree(upgraded.top / "other")
    (upgraded.top / "kept").rename(upgraded.top / "other")
    upgraded.restore()


def of_difference(fleet):
    """Whether an object belongs to the difference between two images alone."""
    *_, newest = fleet.objects("images")
    manifest = json.loads(newest.read_bytes().split(b"\n", 1)[1])
    digests = {digest for part in ("front", "rest") for digest in manifest["difference"][part]["chunks"]}
    return lambda name: pathlib.PurePath(name).name in digests


@pytest.mark.fault("a remote store that answers 403, 404, 500, 503, half or nothing to a difference", "all of the image is fetched")
@pytest.mark.parametrize("how", ANSWERS)
def test_a_difference_that_cannot_be_had(upgraded, other, how):
    with served(upgraded.remote, of_difference(upgraded), how) as (url, bad):
        other.env["SNAPBOOT_REMOTE"] = url
        pulled = upgraded.pull(other)
    assert bad and pulled.status == 0 and pulled.out.startswith("the image was pulled"), pulled
    again = upgraded.start(other)
    assert is_thawed(again) and again.out.startswith("2"), again


@pytest.mark.fault("a remote store that answers 403, 404, 500, 503, half or nothing to a mark of use", "the image is taken without it")
@pytest.mark.parametrize("how", ANSWERS)
def test_a_mark_that_cannot_be_written(upgraded, other, how):
    with served(upgraded.remote, lambda name: name.startswith("v1/used"), how) as (url, bad):
        other.env["SNAPBOOT_REMOTE"] = url
        pulled = upgraded.pull(other)
    assert bad and pulled.status == 0 and pulled.out.startswith("the image was pulled"), pulled
    assert is_thawed(upgraded.start(other)) and made(other)


@pytest.mark.fault("a remote store that answers 403, 404, 500, 503, half or nothing to a lease alone", "the image is made here, and given")
@pytest.mark.parametrize("how", ANSWERS)
def test_a_lease_that_cannot_be_read_or_written(tmp_path, how):
    fleet = Fleet(tmp_path, PYTHON)
    with served(fleet.remote, lambda name: name.startswith("v1/leases"), how) as (url, bad):
        one = fleet.machine("one", url=url)
        assert fleet.start(one).fell_back
        one.wait()
        assert bad and made(one) and is_thawed(fleet.start(one)), said(one)
    assert len(fleet.objects("images")) == 1, said(one)
    assert said(one) == {"about": "push", "text": ""}, said(one)
