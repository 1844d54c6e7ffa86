"""What the tests of the boot archive share."""

import pytest

from .rubies import Rubies


@pytest.fixture(scope="session")
def rubies():
    """Starts a Ruby by name, once for all tests; skips where it cannot be had."""
    started = Rubies()
    yield started
    started.close()
