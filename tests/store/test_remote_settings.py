"""Who says which remote store counts: the environment, or the user's own settings, and never a project. And who signs."""

import os
import shutil

import pytest
from common.languages import PYTHON
from common.ready import prepared

from store.fleets import Fleet, made, said
from store.stores import is_thawed


def configured(fleet, name, settings, **variables):
    """A machine without variables of the remote store, whose user has these settings."""
    own = fleet.top / (name + "-config") / "snapboot"
    own.mkdir(parents=True)
    (own / "snapboot.toml").write_text(settings)
    none = dict.fromkeys(("SNAPBOOT_REMOTE_KEYS", "SNAPBOOT_REMOTE_SECRET_KEY"))
    machine = fleet.machine(name, XDG_CONFIG_HOME=str(own.parent), **{**none, **variables})
    if "SNAPBOOT_REMOTE" not in variables:
        del machine.env["SNAPBOOT_REMOTE"]
    return machine


def both_keys(fleet):
    return f"[remote]\nurl = 'file://{fleet.remote}'\nkeys = ['{fleet.top}/key.pub']\nsecret-key = '{fleet.top}/key'\n"


def test_the_users_settings_name_the_store_and_its_keys(tmp_path):
    fleet = Fleet(tmp_path, PYTHON)
    one = configured(fleet, "one", both_keys(fleet))
    fleet.start(one)
    one.wait()
    assert len(fleet.objects("images")) == 1, said(one)
    shutil.copy(fleet.top / "key.pub", fleet.top / "other-config.pub")
    other = configured(fleet, "other", f"[remote]\nurl = 'file://{fleet.remote}'\nkeys = ['../../other-config.pub']\n")
    assert "a key of SNAPBOOT_REMOTE_KEYS has signed" in other.snapboot("check", log=False).out
    pulled = fleet.pull(other)
    assert pulled.status == 0 and made(other) and is_thawed(fleet.start(other)), pulled


def test_variables_win(tmp_path):
    fleet = Fleet(tmp_path, PYTHON)
    settings = f"[remote]\nurl = 'file://{tmp_path}/nowhere'\nkeys = ['{tmp_path}/no.pub']\n"
    one = configured(fleet, "one", settings)
    assert "no such file" in one.snapboot("remote", "list", log=False).err
    other = configured(fleet, "other", settings, SNAPBOOT_REMOTE=f"file://{fleet.remote}", SNAPBOOT_REMOTE_KEYS=f"{tmp_path}/key.pub")
    assert other.snapboot("remote", "list", log=False).status == 0
    off = configured(fleet, "off", settings, SNAPBOOT_REMOTE="")
    assert "remote store" not in off.snapboot("check", log=False).out


WRONG = [
    ("[remote]\nurll = 'x'\n", 0o644, "snapboot.toml:2: unknown field `urll`"),
    ("[remote]\nurl = 'file:///'\n", 0o666, "mode 0666"),
]


@pytest.mark.fault("settings of the remote store that are wrong, or that others can change", "images are made, and the message says why")
@pytest.mark.parametrize("text, mode, words", WRONG)
def test_settings_that_do_not_count(tmp_path, text, mode, words):
    fleet = Fleet(tmp_path, PYTHON)
    one = configured(fleet, "one", text)
    (tmp_path / "one-config/snapboot/snapboot.toml").chmod(mode)
    listed = one.snapboot("remote", "list", log=False)
    assert listed.status == 2 and words in listed.err, listed
    fleet.start(one)
    one.wait()
    assert made(one) and is_thawed(fleet.start(one)) and words in said(one)["text"], said(one)


def test_a_project_names_no_store(tmp_path):
    fleet = Fleet(tmp_path, PYTHON)
    none = dict.fromkeys(("SNAPBOOT_REMOTE_KEYS", "SNAPBOOT_REMOTE_SECRET_KEY"))
    one = fleet.machine("one", **none)
    del one.env["SNAPBOOT_REMOTE"]
    (fleet.files / "snapboot.toml").write_text(f"command = 'python show.py'\n[remote]\nurl = 'file://{fleet.remote}'\n")
    refused = one.snapboot("freeze", cwd=fleet.files, log=False)
    assert refused.status == 2 and "snapboot.toml:2: [remote] belongs into your own settings" in refused.err, refused
    assert one.snapboot("remote", "list", cwd=fleet.files, log=False).status == 2
    fleet.start(one)
    one.wait()
    assert made(one) and not fleet.objects("images")


def test_a_machine_that_may_only_read_gives_nothing_and_leaves_no_trace(tmp_path):
    fleet = Fleet(tmp_path, PYTHON)
    one = configured(fleet, "one", both_keys(fleet) + "read-only = true\n")
    fleet.start(one)
    one.wait()
    assert made(one) and not list(fleet.remote.rglob("*/*")) and "SNAPBOOT_REMOTE_READ_ONLY is set" in said(one)["text"], said(one)


SIGNS = """#!{python}
import sys
from cryptography.hazmat.primitives.serialization import load_pem_private_key
with open({key!r}, "rb") as file:
    key = load_pem_private_key(file.read(), None)
sys.stdout.{write}
"""


@pytest.fixture(scope="module")
def signing_python():
    """A Python that has a library for signatures: that of moto."""
    return prepared("storages")["bin"] + "/python"


@pytest.mark.parametrize(
    "write", ["buffer.write(key.sign(sys.stdin.buffer.read()))", "write(key.sign(sys.stdin.buffer.read()).hex())"], ids=["bytes", "digits"]
)
def test_a_command_signs(tmp_path, signing_python, write):
    fleet = Fleet(tmp_path, PYTHON)
    command = tmp_path / "sign"
    command.write_text(SIGNS.format(python=signing_python, key=str(tmp_path / "key"), write=write))
    command.chmod(0o755)
    one = fleet.machine("one", SNAPBOOT_REMOTE_SECRET_KEY=None, SNAPBOOT_REMOTE_SIGN_COMMAND=str(command))
    fleet.start(one)
    one.wait()
    assert len(fleet.objects("images")) == 1, said(one)
    other = fleet.machine("other")
    assert fleet.pull(other).status == 0 and is_thawed(fleet.start(other))


@pytest.mark.fault("a command that signs and fails, prints something else, or signs with another key", "the image stays on its machine")
@pytest.mark.parametrize("command, words", [("false", "has failed"), ("echo x", "prints something else"), ("printf %064d 0", "no key of")])
def test_a_command_that_does_not_sign(tmp_path, command, words):
    fleet = Fleet(tmp_path, PYTHON)
    one = fleet.machine("one", SNAPBOOT_REMOTE_SECRET_KEY=None, SNAPBOOT_REMOTE_SIGN_COMMAND=command)
    fleet.start(one)
    one.wait()
    assert not fleet.objects("images") and words in said(one)["text"], said(one)
    assert made(one) and is_thawed(fleet.start(one)) and not list((fleet.remote / "v1/leases").rglob("*/*")), os.listdir(fleet.remote)
