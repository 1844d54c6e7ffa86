"""What all Python tests share: the marks, and that starts of their images are counted nowhere."""

import os

os.environ["SNAPBOOT_STATE"] = ""


def pytest_configure(config):
    """Make the marks known."""
    config.addinivalue_line("markers", "fault(what, outcome): a fault that is survived; tools/faults.py lists these in docs/limits.md")
