"""The wheel's version is the workspace's: there is one number for crates, gem and wheel."""

import pathlib
import re

from setuptools import setup


def version():
    """The version in the workspace's Cargo.toml; in a source distribution, which has none, the one it was made with."""
    here = pathlib.Path(__file__).resolve().parent
    workspace = here.parent / "Cargo.toml"
    if workspace.is_file():
        return re.search(r'^version = "([^"]+)"', workspace.read_text(), re.MULTILINE).group(1)
    return re.search(r"^Version: (\S+)", (here / "PKG-INFO").read_text(), re.MULTILINE).group(1)


setup(version=version())
