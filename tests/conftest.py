"""What all Python tests share: the marks, images that no test changes, and that starts of images are counted nowhere."""

import math
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
    """Make the marks known, and measure."""
    config.pluginmanager.register(CpuTimes())
    config.addinivalue_line("markers", "fault(what, outcome): a fault that is survived; tools/faults.py lists these in tests/README.md")
    config.addinivalue_line(
        "markers",
        "sample(n, each=None, unit=None, whole=False): of the cases of this test one in n is run, of each group of them at least one; all "
        "are run with SNAPBOOT_ALL_TESTS=1. whole: of all tests of the file, each of which takes long, one in n is run. each, unit: "
        "functions from a case's parameters to the name of its group (default: all are one) and of what is run together or not at "
        "all (default: each case alone)",
    )


class CpuTimes:
    """Puts the CPU time of each test (seconds) into pytest's report, as the property `cpu`: its own, with the fixtures that were set up
    for it, and that of the processes that it has waited for."""

    def __init__(self):
        self.before = cpu_time()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        """Measure from the end of the test before to the end of this one."""
        if call.when == "teardown":
            now = cpu_time()
            item.user_properties.append(("cpu", f"{now - self.before:.2f}"))
            self.before = now


def cpu_time():
    """Seconds, of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def pytest_collection_modifyitems(config, items):
    """Leave out what is not in the sample, unless all tests are wanted, or somebody has chosen some by name."""
    if os.environ.get("SNAPBOOT_ALL_TESTS") or config.option.keyword or any("::" in word for word in config.args):
        return
    tables = {}
    for item in items:
        if mark := item.get_closest_marker("sample"):
            (count,), parameters = mark.args, item.callspec.params if hasattr(item, "callspec") else {}
            each, unit = (mark.kwargs[name](parameters) if name in mark.kwargs else "" for name in ("each", "unit"))
            table = item.nodeid.partition("::" if mark.kwargs.get("whole") else "[")[0]
            units = tables.setdefault((table, each, count), {})
            units.setdefault(unit or item.name, []).append(item)
    left = set()
    for (*_, count), units in tables.items():
        # The same ones everywhere and always; another case in a table changes one at most.
        names = sorted(units, key=lambda name: zlib.crc32(name.encode()))
        left.update(item for name in names[math.ceil(len(names) / count) :] for item in units[name])
    if left:
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]


@pytest.fixture(scope="session")
def open_directory():
    """A directory that an ordinary user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="snapboot-tests-") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


@pytest.fixture
def open_path(open_directory):
    """A directory of one test that an ordinary user can reach. Below tmp_path, the next pytest to start would close the way."""
    path = pathlib.Path(tempfile.mkdtemp(dir=open_directory))
    path.chmod(0o755)
    return path


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
