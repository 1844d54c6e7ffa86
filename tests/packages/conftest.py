"""The wheel and the gem, newly built."""

import re
import subprocess
import sys

import packages
import pytest
from common import support

VERSION = re.search(r'^version = "(.*)"', (support.ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


def build(kind, name):
    """The package of that kind. Skips where it cannot be built."""
    words = [sys.executable, support.ROOT / "tools/packages.py", "--quick", kind]
    done = subprocess.run(words, capture_output=True, text=True)
    if "cannot be built here" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return packages.QUICK / name


@pytest.fixture(scope="session")
def version():
    return VERSION


@pytest.fixture(scope="session")
def wheel():
    return build("wheel", f"snapboot-{VERSION}-py3-none-manylinux_2_28_x86_64.whl")


@pytest.fixture(scope="session")
def gem():
    return build("gem", f"snapboot-{VERSION}-x86_64-linux.gem")
