"""Fixtures: every CPython on this machine, and the two ways of thawing."""

import os

import harness
import pytest

PYTHONS = harness.find_pythons()
WAYS = ["simulated"] + (["image"] if os.path.exists(harness.SNAPBOOT) else [])


def pytest_collection_modifyitems(config, items):
    """Leaves out most of the simulation on all but the newest CPython: what it shows there, the real images of that version show, too
    (SNAPBOOT_PYTHONS=all: all of it on each)."""
    if os.environ.get("SNAPBOOT_PYTHONS") == "all" or "image" not in WAYS:
        return
    minors = {version: int(version[2:]) for version in PYTHONS}
    left_out, number = [], 0
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if getattr(item, "originalname", "") != "test_same_as_ordinary" or params["bare"] != "simulated":
            continue
        number += 1
        minor = minors[params["python"]]
        if minor != max(minors.values()) and number % 16 != minor % 16:
            left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


@pytest.fixture(params=sorted(PYTHONS, key=lambda version: int(version[2:])), scope="session")
def python(request):
    """The path of an interpreter; the tests run for each."""
    return PYTHONS[request.param]


@pytest.fixture(params=WAYS, scope="session")
def bare(request, python):
    """An image of the bare interpreter."""
    image = harness.Image([python]) if request.param == "image" else harness.Simulated([python], 1, "bare")
    yield image
    image.close()


@pytest.fixture(scope="session")
def real(python):
    """A real image of the bare interpreter, for what the simulation cannot show."""
    if "image" not in WAYS:
        pytest.skip("target/release/snapboot is not built")
    image = harness.Image([python])
    yield image
    image.close()


@pytest.fixture
def module():
    """Loads a module of the front end into this process: `module("command_line")`."""
    names = {"__name__": "front end"}
    path = os.path.join(harness.FRONT_END, "loader.py")
    with open(path) as file:
        exec(compile(file.read(), path, "exec"), names)
    return names["loader"](harness.FRONT_END)
