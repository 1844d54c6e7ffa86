"""The kernel's release and version: an image is bound to them where something but a text follows from them. `setarch` shows others."""

import subprocess

import pytest
from common import support

from .programs import frozen_with_module

OTHER = ["setarch", "--uname-2.6"]
pytestmark = [
    pytest.mark.sample(8, whole=True),
    pytest.mark.skipif(subprocess.run([*OTHER, "true"], capture_output=True).returncode != 0, reason="no other release can be shown"),
]

KEEPS = "import os, platform\nKEPT = {'release': platform.release(), 'version': os.uname().version, 'all': platform.platform()}\n"
DECIDES = "import os\nIS_OLD = int(os.uname().release.split('.')[0]) < 5\n"


def test_what_is_only_kept_is_renewed(tmp_path):
    image, env = frozen_with_module(tmp_path, KEEPS)
    shown = "import module, os; print(module.KEPT); r = os.uname().release; print(r in module.KEPT['all'], r == module.KEPT['release'])"
    for start in ([], OTHER):
        ordinary = support.run([*start, support.PYTHON, "-c", shown], env=env, log=False)
        assert ordinary.out.endswith("\nTrue True\n")
        assert support.thawed([*start, image, "-c", shown], env=env).out == ordinary.out


def test_a_decision_by_the_release_binds_the_image(tmp_path):
    image, env = frozen_with_module(tmp_path, DECIDES)
    ask = [image, "-c", "import module; print(module.IS_OLD)"]
    assert support.thawed(ask, env=env).out == "False\n"
    other = support.run([*OTHER, *ask], env=env)
    assert other.fell_back and other.out == "True\n" and "kernel" in other.err, other
    inspected = support.run([support.SNAPBOOT, "inspect", image], log=False).out
    assert "module.IS_OLD depends on it" in " ".join(inspected.split())


def test_who_asks_for_the_system_alone_is_not_bound(tmp_path):
    image, env = frozen_with_module(tmp_path, "import platform\nSYSTEM, MACHINE = platform.system(), platform.uname().machine\n")
    assert support.thawed([*OTHER, image, "-c", "import module; print(module.SYSTEM)"], env=env).out == "Linux\n"
