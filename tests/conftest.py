"""What all Python tests share: the marks, images that no test changes, and that starts of images are counted nowhere."""

import os
import pathlib
import sys
import tempfile
import zlib

import pytest

os.environ["SNAPBOOT_STATE"] = ""
TESTS = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS), str(TESTS.parent / "tools")]

from common import support  # noqa: E402


def pytest_configure(config):
    """Make the marks known."""
    config.addinivalue_line("markers", "fault(what, outcome): a fault that is survived; tools/faults.py lists these in docs/limits.md")
    config.addinivalue_line("markers", "sample(n): of the cases of this test about one in n is run; all with SNAPBOOT_ALL_TESTS=1")


def pytest_collection_modifyitems(config, items):
    """Leave out what is not in the sample, unless all tests are wanted, or somebody has chosen some by name."""
    if os.environ.get("SNAPBOOT_ALL_TESTS") or config.option.keyword or any("::" in word for word in config.args):
        return
    groups = {}
    for item in items:
        mark = item.get_closest_marker("sample")
        if mark is not None:
            groups.setdefault(item.nodeid.partition("[")[0], []).append((zlib.crc32(item.name.encode()), mark.args[0], item))
    left = set()
    for cases in groups.values():
        # The same ones everywhere and always, whatever cases are added; at least one of each test.
        first = min(cases, key=lambda case: case[0])
        left |= {case[2] for case in cases if case[0] % case[1] and case is not first}
    if left:
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]


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
