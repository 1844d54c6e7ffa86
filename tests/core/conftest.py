"""Images that many tests of the core share; no test changes them, each takes a copy."""

import os
import pathlib
import tempfile

import pytest

from . import support


@pytest.fixture(scope="session")
def open_directory():
    """A directory that an ordinary user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="snapboot-core-") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


@pytest.fixture(scope="session")
def python_image(open_directory):
    """An image of a bare Python, and one module loaded."""
    return support.frozen(open_directory / "python.img", [support.PYTHON], "--preload", "json")


@pytest.fixture(scope="session")
def ruby_image(open_directory):
    """An image of a bare Ruby."""
    if support.RUBY is None:
        pytest.skip("there is no ruby")
    return support.frozen(open_directory / "ruby.img", [support.RUBY], "--preload", "json")
