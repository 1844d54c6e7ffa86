"""What all Python tests share: the marks, images that no test changes, and that starts of images are counted nowhere."""

import os
import pathlib
import sys
import tempfile

import pytest

os.environ["SNAPBOOT_STATE"] = ""
TESTS = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS), str(TESTS.parent / "tools")]

from common import support  # noqa: E402


def pytest_configure(config):
    """Make the marks known."""
    config.addinivalue_line("markers", "fault(what, outcome): a fault that is survived; tools/faults.py lists these in docs/limits.md")


@pytest.fixture(scope="session")
def open_directory():
    """A directory that an ordinary user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="snapboot-tests-") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


@pytest.fixture(scope="session")
def python_image(open_directory):
    """An image of a bare Python, and one module loaded. Each test that changes it takes a copy."""
    return support.frozen(open_directory / "python.img", [support.PYTHON], "--preload", "json")


@pytest.fixture(scope="session")
def ruby_image(open_directory):
    """An image of a bare Ruby."""
    if support.RUBY is None:
        pytest.skip("there is no ruby")
    return support.frozen(open_directory / "ruby.img", [support.RUBY], "--preload", "json")
