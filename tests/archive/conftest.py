"""What the tests of the boot archive share."""

import os

import pytest

from .rubies import Rubies

# On TruffleRuby and JRuby a boot takes seconds: these only, unless SNAPBOOT_RUBIES=all.
ON_EACH_JVM = (
    "[truffleruby-pure-jruby-pure]", "[jruby-pure-cruby-native]", "names-missing-", "load-path-growing-", "load-path-emptied-",
    "files-edited-while",
)  # fmt: skip
ON_JRUBY = (
    "test_nothing_stale", "test_same_calls", "loaded-features-forgotten-", "files-links-", "files-directory-appears-", "running-threads-",
)  # fmt: skip


def is_sampled(item):
    """Whether a test runs without SNAPBOOT_RUBIES=all."""
    kinds = [str(value) for name, value in getattr(getattr(item, "callspec", None), "params", {}).items() if name != "case"]
    if "truffleruby-pure" in kinds:
        return any(word in item.name for word in ON_EACH_JVM)
    return "jruby-pure" not in kinds or any(word in item.name for word in ON_EACH_JVM + ON_JRUBY)


def pytest_collection_modifyitems(config, items):
    """Leaves out most of the boots in a JVM."""
    if os.environ.get("SNAPBOOT_RUBIES") == "all":
        return
    own = [item for item in items if item.path.parent.name == "archive"]
    left_out = [item for item in own if not is_sampled(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def rubies():
    """Starts a Ruby by name, once for all tests; skips where it cannot be had."""
    started = Rubies()
    yield started
    started.close()
