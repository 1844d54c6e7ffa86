"""Shared by all comparisons: images, and the workers that run ahead."""

import signal

import pytest

from . import comparison

# What runs in a shell's background is started with SIGINT ignored, and would hand that on to the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    return comparison.Images(tmp_path_factory.mktemp("runtimes-images"))


@pytest.fixture(scope="session")
def workers(request, images):
    """All comparisons among the collected tests, under way. A test of comparisons is called with a `case` that has `compare(images)`."""
    workers = comparison.Workers()
    for item in request.session.items:
        case = item.callspec.params.get("case") if hasattr(item, "callspec") else None
        if hasattr(case, "compare"):
            workers.submit(case, case.compare, images)
    yield workers
    workers.close()
