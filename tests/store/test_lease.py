"""Leases: of many machines that miss the same image at the same time, one makes it, and the others take it. No start waits for that."""

import concurrent.futures
import contextlib
import http.server
import json
import os
import shutil
import signal
import threading

import pytest
from common import support
from common.languages import PYTHON

from store.fleets import Fleet, directory, look_again, made, s3, said
from store.stores import is_thawed

MACHINES = 5
LEASE = 120  # seconds

# A boot without arguments, as that of a freeze, goes on once the file is gone.
HANGING = """
import os, sys, time
while len(sys.argv) < 2 and os.path.exists({file!r}):
    time.sleep(0.01)
VALUE = 1
"""

REFUSED = """
import snapboot, threading, time
threading.Thread(target=lambda: time.sleep(99), daemon=True).start()
snapboot.freeze_point()
"""


@pytest.mark.parametrize("storage", [directory, s3])
def test_of_machines_that_start_at_once_one_makes_the_image(tmp_path, storage):
    fleet = Fleet(tmp_path, PYTHON)
    with storage(fleet) as (url, variables):
        machines = [fleet.machine(str(number), url=url, **variables) for number in range(MACHINES)]
        with concurrent.futures.ThreadPoolExecutor(MACHINES) as pool:
            starts = list(pool.map(fleet.start, machines))
        assert all(start.fell_back and start.out == starts[0].out for start in starts), starts
        for machine in machines:
            machine.wait()
        listed = machines[0].snapboot("remote", "list", "--json", log=False)
        assert len(json.loads(listed.out)) == 1, [said(machine) for machine in machines]
        for machine in machines:
            (row,) = machine.list()
            if not made(machine):
                assert row["state"] == "none" and "another machine is making it for the remote store" in row["why"][0], row
                look_again(machine)
                start = fleet.start(machine)
                assert start.fell_back and start.out == starts[0].out, start
                machine.wait()
            assert made(machine) and is_thawed(fleet.start(machine)), (row, said(machine))
        assert len(json.loads(machines[0].snapboot("remote", "list", "--json", log=False).out)) == 1


def leases(fleet):
    return list((fleet.remote / "v1/leases").glob("*/*"))


@pytest.fixture
def left(tmp_path):
    """A fleet, one machine of which has died while it made an image. Yields it and the lease that it has left."""
    fleet = Fleet(tmp_path, PYTHON)
    hang = tmp_path / "hang"
    hang.touch()
    fleet.part.write_text(HANGING.format(file=str(hang)))
    one = fleet.machine("dead")
    assert fleet.start(one).fell_back
    one.wait_until(lambda: leases(fleet) and one.builders(), "no lease was taken")
    for builder in one.builders():
        with contextlib.suppress(ProcessLookupError):
            os.kill(builder, signal.SIGKILL)
    hang.unlink()
    one.wait_until(lambda: not one.is_busy(), "the builder goes on")
    (lease,) = leases(fleet)
    return fleet, lease


@pytest.mark.fault("a machine that has died while it made an image for others", "they wait for two minutes, and then make their own")
def test_a_dead_machine_is_waited_for_as_long_as_its_lease_lasts(left):
    fleet, _ = left
    other = fleet.machine("other")
    assert fleet.start(other).fell_back
    other.wait()
    (row,) = other.list()
    assert not made(other) and "another machine is making it" in row["why"][0], row
    told = fleet.start(other)
    assert told.fell_back and "another machine is making it for the remote store" in told.err, told
    # Another look does not help, unless it has waited for long enough.
    look_again(other)
    fleet.start(other)
    other.wait()
    assert not made(other)
    look_again(other, LEASE)
    fleet.start(other)
    other.wait()
    assert made(other) and is_thawed(fleet.start(other)) and fleet.objects("images"), said(other)


def far_too_large(lease):
    os.truncate(lease, 1 << 40)


def past(lease):
    owner, ends = lease.read_text().split()
    lease.write_text(f"{owner} {int(ends) - LEASE}")


def directory_instead(lease):
    lease.unlink()
    lease.mkdir()


def no_folder(lease):
    shutil.rmtree(lease.parent)
    lease.parent.write_text("")


@pytest.mark.fault("leases that are damaged, far too large, over, or not to be read or written", "machines make their own images")
@pytest.mark.parametrize("damage", [far_too_large, past, directory_instead, no_folder])
def test_what_is_no_lease_is_in_nobodys_way(left, damage):
    fleet, lease = left
    damage(lease)
    other = fleet.machine("other")
    assert fleet.start(other).fell_back
    other.wait()
    assert made(other) and is_thawed(fleet.start(other)), said(other)


class Empty(http.server.BaseHTTPRequestHandler):
    """A WebDAV store that has nothing, and answers whatever would change it with the server's status; never, if that is None."""

    def has_nothing(self):
        self.answer(404)

    def refuses(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.status is None:
            self.server.has_ended.wait()
        self.answer(self.server.status or 500)

    def answer(self, status):
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    do_GET = do_HEAD = do_PROPFIND = has_nothing
    do_PUT = do_MKCOL = do_DELETE = do_MOVE = do_COPY = refuses

    def log_message(self, *_):
        pass


@pytest.mark.fault("a remote store that can be read, and answers 403, 404, 500 or nothing to a lease or an image", "it is made here")
@pytest.mark.parametrize("status", [403, 404, 500, None])
def test_a_store_that_takes_nothing(tmp_path, status):
    fleet = Fleet(tmp_path, PYTHON)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    server.status, server.has_ended = status, threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host, port = server.server_address
    one = fleet.machine("one", url=f"webdav:///?endpoint=http://{host}:{port}", SNAPBOOT_REMOTE_TIMEOUT="3")
    first = fleet.start(one)
    one.wait()
    again = fleet.start(one)
    server.has_ended.set()
    server.shutdown()
    server.server_close()
    assert first.fell_back and made(one) and is_thawed(again) and again.out == first.out, said(one)
    assert said(one)["about"] == "push" and said(one)["text"], said(one)


def test_a_lease_ends_with_the_work(tmp_path):
    fleet = Fleet(tmp_path, PYTHON)
    one = fleet.machine("one")
    fleet.start(one)
    one.wait()
    assert made(one) and fleet.objects("images") and not leases(fleet)
    # An image that stays on its machine, and a program that cannot be frozen.
    fleet.part.chmod(0o600)
    fleet.part.write_text("VALUE = 2\n")
    private = fleet.machine("private")
    fleet.start(private)
    private.wait()
    assert "stays on this machine" in said(private)["text"] and not leases(fleet), said(private)
    fleet.script.write_text(REFUSED)
    other = fleet.machine("other", PYTHONPATH=str(support.ROOT / "python"))
    fleet.start(other)
    (row,) = other.wait()
    assert row["state"] == "refused" and not leases(fleet), row
