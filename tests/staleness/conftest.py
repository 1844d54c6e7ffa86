"""What the tests of staleness share."""

import pytest


@pytest.fixture
def homes(tmp_path):
    """Two home directories."""
    folders = [tmp_path / name for name in ("home", "another-home")]
    for folder in folders:
        folder.mkdir()
    return [str(folder) for folder in folders]
