"""The name of the host: an image of Python is bound to it where something but a text follows from it. Containers have a new one each."""

import pytest
from common import support

from .programs import frozen_with_module
from .test_facts import another_host

pytestmark = pytest.mark.sample(8, whole=True)

KEEPS = """
import os, platform, socket
from socket import gethostname
KEPT = {
    "socket": socket.gethostname(),
    "imported": gethostname(),
    "os": os.uname().nodename,
    "platform": platform.node(),
    "address": "worker@" + socket.gethostname(),
}
"""
DECIDES = "import socket\nIS_OTHER = socket.gethostname() == 'another-host'\n"
READS = "import os, socket\nIS_THERE = os.path.exists(f'{os.path.dirname(__file__)}/{socket.gethostname()}.conf')\n"
CALLED_BY_C = "import ctypes\nroom = ctypes.create_string_buffer(99)\nctypes.CDLL(None).gethostname(room, 99)\nKEPT = room.value\n"


def test_what_is_only_kept_is_renewed(tmp_path):
    image, env = frozen_with_module(tmp_path, KEEPS)
    shown = "import module, socket; print(module.KEPT, type(module.gethostname), socket.gethostname is module.gethostname)"
    for start in ([], another_host()):
        ordinary = support.run([*start, support.PYTHON, "-c", shown], env=env, log=False)
        assert support.thawed([*start, image, "-c", shown], env=env).out == ordinary.out
        assert ("another-host" in ordinary.out) is bool(start), ordinary


@pytest.mark.parametrize("text", [DECIDES, READS, CALLED_BY_C])
def test_what_follows_from_it_binds(tmp_path, text):
    (tmp_path / "another-host.conf").write_text("")
    image, env = frozen_with_module(tmp_path, text)
    shown = "import module; print({name: value for name, value in vars(module).items() if name[0].isupper()})"
    for start in ([], another_host()):
        ordinary = support.run([*start, support.PYTHON, "-c", shown], env=env, log=False)
        result = support.run([*start, image, "-c", shown], env=env)
        assert result.out == ordinary.out and result.fell_back is bool(start), (ordinary, result)


def test_a_program_that_prints_it_later_has_that_of_the_start(tmp_path):
    image, env = frozen_with_module(tmp_path, "import socket\nsocket.gethostname()\n")
    code = "import module, socket; print(socket.gethostname())"
    assert support.thawed([*another_host(), image, "-c", code], env=env).out == "another-host\n"


NEEDS_IT = "import os, socket\nif 'another-start' in socket.gethostname(): raise OSError('no address')\nKEPT = os.path.expanduser('~')\n"


def test_who_cannot_boot_with_another_is_bound_to_nothing_else(tmp_path):
    image, env = frozen_with_module(tmp_path, NEEDS_IT)
    ask = [image, "-c", "import module; print(module.KEPT)"]
    assert support.thawed(ask, env={**env, "HOME": "/elsewhere"}).out == "/elsewhere\n"
    assert support.run([*another_host(), *ask], env=env).fell_back
