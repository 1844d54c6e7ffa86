"""`snapboot check` says what of the machine is in the way, and tries it where it can."""

import json

import pytest
from common import support

pytestmark = pytest.mark.sample(2, whole=True)

# Becomes another program under a filter that refuses these system calls.
REFUSING = """\
import ctypes, os, struct, sys
numbers, argv = [int(number) for number in sys.argv[1].split(',')], sys.argv[2:]
load, refuse, allow = (0x20, 0, 0, 0), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)
rows = [load] + [(0x15, len(numbers) - row, 0, number) for row, number in enumerate(numbers)] + [allow, refuse]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *row) for row in rows))
program = struct.pack('HxxxxxxQ', len(rows), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0
os.execv(argv[0], argv)
"""
SECCOMP, PROCESS_VM_READV, GETRANDOM = 317, 310, 318


def checks(before=(), **options):
    """The lines by name, and the exit status."""
    result = support.run([*before, support.SNAPBOOT, "check", "--json"], log=False, **options)
    return {line["name"]: line for line in json.loads(result.out)["checks"]}, result.status


def refusing(*numbers):
    return [support.PYTHON, "-c", REFUSING, ",".join(map(str, numbers))]


def test_here_everything_is_permitted():
    lines, status = checks()
    assert status == 0 and lines["recorder"]["state"] == "yes", lines
    assert lines["seccomp"]["state"] == "yes" and lines["ptrace"]["state"] == "yes", lines


def test_a_filter_that_does_not_matter():
    lines, status = checks(refusing(GETRANDOM + 100))
    assert status == 0 and lines["recorder"]["state"] == "yes", lines
    assert lines["seccomp"]["state"] == "yes" and "permitted" in lines["seccomp"]["reason"], lines


@pytest.mark.parametrize("number", [SECCOMP, PROCESS_VM_READV])
def test_a_filter_that_refuses_what_freezing_needs(tmp_path, number):
    lines, status = checks(refusing(number))
    assert status == 1 and lines["recorder"]["state"] == "no", lines
    assert "cannot watch which files" in lines["recorder"]["reason"], lines
    assert lines["seccomp"]["state"] == "note" and "may forbid what freezing needs" in lines["seccomp"]["reason"], lines
    words = [support.SNAPBOOT, "freeze", "-o", tmp_path / "app.img", "--", support.PYTHON]
    refused = support.run([*refusing(number), *words], log=False)
    assert refused.status == 2 and "snapboot check" in refused.err and "unconfined" not in refused.err, refused


def test_folders_that_are_not_there(tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    env = support.environment(TMPDIR=str(tmp_path / "no"), XDG_CACHE_HOME=str(there))
    lines, _ = checks(env=env)
    assert lines["temporary"]["state"] == "note" and "does not exist" in lines["temporary"]["reason"], lines
    assert lines["store"]["state"] == "yes" and "made when" in lines["store"]["reason"], lines
    assert not list(there.iterdir())
    (there / "snapboot").write_text("")
    assert "no directory" in checks(env=env)[0]["store"]["reason"]


@support.needs_root
def test_folders_that_cannot_be_written():
    env = support.environment(TMPDIR="/", XDG_CACHE_HOME="/var")
    if support.run(["setpriv", "--version"], log=False).status != 0:
        pytest.skip("there is no setpriv")
    before = ["setpriv", f"--reuid={support.NOBODY}", f"--regid={support.NOBODY}", "--clear-groups"]
    if support.run([*before, support.SNAPBOOT, "--version"], log=False).status != 0:
        pytest.skip("another user cannot reach the command")
    lines, _ = checks(before, env=env)
    assert "cannot be written" in lines["temporary"]["reason"], lines
    assert lines["store"]["state"] == "note" and "does not exist, and /var cannot be written" in lines["store"]["reason"], lines
