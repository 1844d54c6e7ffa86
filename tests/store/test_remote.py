"""Images that machines share: one makes an image and gives it to the remote store, others take it. Whatever is wrong there, a start is the
ordinary one, and the machine makes an image of its own."""

import http.server
import json
import os
import re
import shutil
import socket
import threading

import pytest
from common import support
from common.languages import PYTHON, RUBY, both

from store.fleets import SOURCE, Fleet, made, said
from store.stores import is_thawed

HEADS = 8192 + 16384  # where the area ends that names the store


@both
def test_a_second_machine_takes_the_image_of_the_first(tmp_path, language):
    fleet = Fleet(tmp_path, language)
    one = fleet.machine("one")
    first = fleet.start(one)
    one.wait()
    assert fleet.objects("images") and said(one) == {"about": "push", "text": ""}, said(one)

    other = fleet.machine("other")
    ordinary = fleet.start(other)
    assert ordinary.fell_back and ordinary.out == first.out, ordinary
    other.wait()
    assert said(other)["about"] == "fetch" and said(other)["text"].startswith("the image was pulled"), said(other)
    (own,), (taken,) = made(one), made(other)
    assert own.read_bytes()[HEADS:] == taken.read_bytes()[HEADS:] and taken.stat().st_mode & 0o777 == 0o700
    again = fleet.start(other)
    assert is_thawed(again) and again.out == first.out, again
    # Its heads name the store that it is in.
    assert os.fsencode(taken) in taken.read_bytes()[:HEADS] and os.fsencode(own) not in taken.read_bytes()[:HEADS]
    assert other.snapboot("verify", taken, log=False).status == 0

    fleet.script.write_text(SOURCE[language.name] + language.show + "\n")
    before = fleet.objects("images")
    edited = fleet.start(other)
    assert edited.fell_back and edited.out == first.out + "1\n", edited
    other.wait()
    assert len(fleet.objects("images")) > len(before), said(other)


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    """A fleet of which one machine has pushed an image."""
    fleet = Fleet(tmp_path_factory.mktemp("fleet"), PYTHON)
    one = fleet.machine("one")
    fleet.start(one)
    one.wait()
    assert len(fleet.objects("images")) == 1, said(one)
    fleet.keep()
    return fleet


@pytest.fixture
def fleet(pushed):
    """The same; what a test does to the remote store and its machine is undone."""
    yield pushed
    pushed.restore()
    shutil.rmtree(pushed.top / "other", ignore_errors=True)


def test_a_pull_takes_the_image_and_no_other_inputs(fleet):
    other = fleet.machine("other")
    pulled = fleet.pull(other)
    assert pulled.status == 0 and pulled.out.startswith("the image was pulled"), pulled
    assert is_thawed(fleet.start(other))
    shutil.rmtree(fleet.top / "other")

    other, before = fleet.machine("other"), fleet.part.read_text()
    fleet.part.write_text("VALUE = 9\n")
    refused = fleet.pull(other)
    fleet.part.write_text(before)
    assert refused.status == 1 and f"no image fits; of the newest differs: {fleet.part}" in refused.out, refused
    assert not made(other)


def test_times_do_not_count_and_content_does_whatever_the_times_are(fleet):
    other, before = fleet.machine("other"), fleet.part.stat()
    content = fleet.part.read_text()
    fleet.part.write_text(content.replace("1", "2"))
    os.utime(fleet.part, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert fleet.pull(other).status == 1 and not made(other)
    fleet.part.write_text(content)
    assert fleet.pull(other).status == 0 and made(other)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def take_signature(path):
    path.write_bytes(b"snapboot-manifest-1 unsigned\n" + path.read_bytes().split(b"\n", 1)[1])


FAR_TOO_LARGE = 1 << 40
# What happens, to which kind of object, and the words about it.
DAMAGES = [
    ("changed", flip, "chunks", "it was damaged or exchanged"),
    ("cut off", lambda path: os.truncate(path, 100), "chunks", "it was damaged or exchanged"),
    ("empty", lambda path: os.truncate(path, 0), "chunks", "it was damaged or exchanged"),
    ("far too large", lambda path: os.truncate(path, FAR_TOO_LARGE), "chunks", "larger than it should be"),
    ("missing", os.unlink, "chunks", "it is not there any more"),
    ("changed", flip, "images", "or it was changed since"),
    ("cut off", lambda path: os.truncate(path, 40), "images", "damaged or of another version"),
    ("without a signature", take_signature, "images", "it is not signed"),
    ("far too large", lambda path: os.truncate(path, FAR_TOO_LARGE), "images", "larger than it should be"),
]


@pytest.mark.fault("a remote store with damaged, missing or oversized objects", "nothing is taken, and the message says what is wrong")
@pytest.mark.parametrize("damage, kind, words", [row[1:] for row in DAMAGES], ids=[f"{row[2]} {row[0]}" for row in DAMAGES])
def test_nothing_damaged_is_taken(fleet, damage, kind, words):
    damage(max(fleet.objects(kind), key=lambda path: path.stat().st_size))
    other = fleet.machine("other")
    pulled = fleet.pull(other)
    assert pulled.status in (1, 2) and words in pulled.err, pulled
    assert not made(other)
    assert other.snapboot("remote", "verify", log=False).status == 1


def test_only_known_keys_count(fleet):
    support.run([support.SNAPBOOT, "remote", "key", fleet.top / "foreign"])
    other = fleet.machine("other", SNAPBOOT_REMOTE_KEYS=str(fleet.top / "foreign.pub"))
    pulled = fleet.pull(other)
    assert pulled.status == 2 and "none of the keys in SNAPBOOT_REMOTE_KEYS has signed it" in pulled.err and not made(other), pulled
    other.env["SNAPBOOT_REMOTE_KEYS"] += f":{fleet.top / 'key.pub'}"
    assert fleet.pull(other).status == 0


def test_without_keys_a_directory_counts_if_nobody_else_can_write_there(fleet):
    other = fleet.machine("other", SNAPBOOT_REMOTE_KEYS=None)
    fleet.remote.chmod(0o777)
    pulled, checked = fleet.pull(other), other.snapboot("check", log=False).out
    fleet.remote.chmod(0o755)
    assert pulled.status == 2 and "mode 0777" in pulled.err and "names no key that could have signed it" in pulled.err, pulled
    assert not made(other) and "mode 0777" in checked
    assert fleet.pull(other).status == 0
    assert "images that only you or root can have put there" in other.snapboot("check", log=False).out


def test_nobody_makes_a_directory_on_the_way(fleet):
    other = fleet.machine("other", url=f"file://{fleet.top}/nowhere")
    for action in (["list"], ["push"], ["pull", "--", *fleet.words]):
        asked = other.snapboot("remote", *action, cwd=fleet.files, log=False)
        assert asked.status == 1 and "no such file or directory" in asked.err, asked
    assert "no such file or directory" in other.snapboot("check", log=False).out
    assert not (fleet.top / "nowhere").exists()


def test_without_keys_no_bucket_counts(fleet):
    other = fleet.machine("other", url="s3://bucket?region=x&endpoint=http://127.0.0.1:1", SNAPBOOT_REMOTE_KEYS=None)
    pulled = fleet.pull(other)
    assert pulled.status == 2 and "no image of s3://bucket is used" in pulled.err and "endpoint" not in pulled.err, pulled


class Answer(http.server.BaseHTTPRequestHandler):
    """Gives every request the same answer."""

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_HEAD = do_PROPFIND = do_MKCOL = answer

    def log_message(self, *_):
        pass


ANSWERS = [(403, "403"), (404, "there is no image"), (500, "5xx"), (None, "has not answered in time"), (0, "cannot be reached")]


@pytest.mark.fault("a remote store that answers 403, 404, 500 or nothing, or is not there", "no image is taken, and the message says why")
@pytest.mark.parametrize("status, words", ANSWERS)
def test_no_answer_matters(fleet, status, words):
    """None: it never answers. 0: nobody listens."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if status is None:
            silent.listen()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) if status else None
        host, port = server.server_address if server else silent.getsockname()
        if server:
            server.status = status
            threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"webdav:///?endpoint=http://{host}:{port}"
        other = fleet.machine("other", url=url, SNAPBOOT_REMOTE_TIMEOUT="60" if status else "3")
        pulled = fleet.pull(other)
        if server:
            server.shutdown()
            server.server_close()
    assert pulled.status == 1 and words in pulled.out + pulled.err and not made(other), pulled


@pytest.mark.fault("a remote store that can be neither read nor written", "the machine makes its own image")
def test_a_builder_makes_an_image_as_ever_and_says_what_was_wrong(fleet):
    (fleet.top / "no-folder").write_text("")
    other = fleet.machine("other", url=f"file://{fleet.top}/no-folder/remote")
    assert fleet.start(other).fell_back
    other.wait()
    assert "not a directory" in said(other)["text"], said(other)
    assert is_thawed(fleet.start(other))
    # A start that has no image, and logs, says it.
    image, = made(other)
    image.unlink()
    assert "not a directory" in fleet.start(other).err
    other.wait()


@pytest.mark.parametrize("mode, stays", [(0o600, True), (0o400, True), (0o644, False)])
def test_what_was_read_of_a_private_file_stays(tmp_path, mode, stays):
    fleet = Fleet(tmp_path, PYTHON)
    fleet.part.chmod(mode)
    one = fleet.machine("one")
    fleet.start(one)
    one.wait()
    image, = made(one)
    assert bool(fleet.objects("images")) == (not stays)
    pushed = one.snapboot("remote", "push", image, log=False)
    assert pushed.status == (2 if stays else 0), pushed
    if stays:
        assert f"stays on this machine: its boot has read {fleet.part}" in pushed.err and f"{mode:04o}" in pushed.err, pushed


def test_images_are_listed_verified_and_pruned(fleet):
    other = fleet.machine("other")
    listed = other.snapboot("remote", "list", "--json", log=False)
    row, = json.loads(listed.out)
    assert (row["name"], row["usable"], row["why"]) == ("show.py", True, None), row
    assert "show.py" in other.snapboot("remote", "list", log=False).out
    verified = other.snapboot("remote", "verify", log=False)
    assert verified.status == 0 and "1 images" in verified.out and "0 faults" in verified.out, verified
    assert other.snapboot("remote", "prune", log=False).status == 0 and fleet.objects("images")
    long_ago = 1_000_000_000
    for path in [*fleet.objects("images"), *fleet.objects("chunks")]:
        os.utime(path, (long_ago, long_ago))
    pruned = other.snapboot("remote", "prune", "--older-than", "1d", log=False)
    assert pruned.status == 0 and "removed 1 images" in pruned.out, pruned
    assert not fleet.objects("images") and not fleet.objects("chunks")


def manifests(fleet):
    """What the manifests say, the oldest first."""
    return [json.loads(path.read_bytes().split(b"\n", 1)[1]) for path in fleet.objects("images")]


@pytest.fixture(
    scope="module", params=[PYTHON, pytest.param(RUBY, marks=support.needs_ruby)], ids=lambda language: language.name
)
def upgraded(request, tmp_path_factory):
    """A fleet of which one machine has pushed two versions of an image, and the other one has pulled the first."""
    fleet = Fleet(tmp_path_factory.mktemp("upgraded"), request.param)
    fleet.share_two_versions()
    fleet.keep()
    return fleet


@pytest.fixture
def other(upgraded, request):
    """A copy of the other machine. What a test does to the remote store is undone."""
    name = re.sub(r"\W", "-", request.node.name)
    shutil.copytree(upgraded.top / "other", upgraded.top / name)
    yield upgraded.again(name)
    upgraded.restore()


def fetched(pulled):
    """How many chunks a pull says that it has fetched."""
    assert pulled.status == 0, pulled
    return int(re.search(r"\((\d+) chunks, \d+ bytes\)", pulled.out)[1])


def test_of_the_next_version_what_differs_is_fetched(upgraded, other):
    first, second = manifests(upgraded)
    assert second["hash_seed"] == first["hash_seed"] and second["difference"]["from"] == first["identity"]
    parts = [second["difference"][part] for part in ("front", "rest")]
    assert fetched(upgraded.pull(other)) == sum(len(part["chunks"]) for part in parts) < len(second["chunks"]) / 2
    # In the place of the one before, which is stale.
    (taken,) = made(other)
    assert any(taken.read_bytes()[HEADS:] == path.read_bytes()[HEADS:] for path in made(upgraded.again("one")))
    again = upgraded.start(other)
    assert is_thawed(again) and again.out.startswith("2"), again


@pytest.mark.parametrize("part", ["front", "rest"])
def test_where_the_difference_is_damaged_all_is_fetched(upgraded, other, part):
    second = manifests(upgraded)[1]
    for digest in set(second["difference"][part]["chunks"]):
        flip(upgraded.remote / "v1/chunks" / digest[:2] / digest)
    assert fetched(upgraded.pull(other)) >= len(set(second["chunks"]))
    again = upgraded.start(other)
    assert is_thawed(again) and again.out.startswith("2"), again


def test_where_the_image_before_was_changed_all_is_fetched(upgraded, other):
    (before,) = made(other)
    with open(before, "r+b") as image:
        image.seek(before.stat().st_size // 2)
        image.write(os.urandom(before.stat().st_size // 4))
    assert fetched(upgraded.pull(other)) >= len(set(manifests(upgraded)[1]["chunks"]))
    again = upgraded.start(other)
    assert is_thawed(again) and again.out.startswith("2"), again


def test_where_the_image_before_is_gone_all_is_fetched(upgraded, other):
    made(other)[0].unlink()
    assert fetched(upgraded.pull(other)) == len(manifests(upgraded)[1]["chunks"])


def test_an_image_that_is_given_once_more_keeps_its_difference(upgraded, other):
    before = manifests(upgraded)
    pushed = upgraded.again("one").snapboot("remote", "push", log=False)
    assert pushed.status == 0 and before[1]["difference"], pushed
    assert [each["difference"] for each in manifests(upgraded)][-1] == before[1]["difference"]


def test_an_image_that_is_used_stays(fleet):
    other = fleet.machine("other")
    long_ago = 1_000_000_000
    for path in [*fleet.objects("images"), *fleet.objects("chunks")]:
        os.utime(path, (long_ago, long_ago))
    assert fleet.pull(other).status == 0
    for options in ([], ["--unused-for", "1d"], ["--max-size", "1G"]):
        pruned = other.snapboot("remote", "prune", *options, log=False)
        assert pruned.status == 0 and "removed 0 images, and 0 chunks" in pruned.out, pruned
    (mark,) = fleet.objects("used")
    os.utime(mark, (long_ago, long_ago))
    assert "removed 1 images" in other.snapboot("remote", "prune", log=False).out
    assert not fleet.objects("images") and not fleet.objects("chunks") and not fleet.objects("used")


@pytest.mark.fault("a manifest of another version, or a damaged one, while the remote store is pruned", "no chunk goes that it may need")
def test_what_cannot_be_read_keeps_its_chunks(fleet):
    other = fleet.machine("other")
    (manifest,), before = fleet.objects("images"), fleet.objects("chunks")
    manifest.write_text("of another version")
    for path in before:
        os.utime(path, (1_000_000_000, 1_000_000_000))
    pruned = other.snapboot("remote", "prune", "--max-size", "0", log=False)
    assert pruned.status == 0 and "1 manifests cannot be read here, so all chunks stay" in pruned.out, pruned
    assert fleet.objects("chunks") == before and manifest.exists()
