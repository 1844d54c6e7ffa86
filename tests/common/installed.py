"""Copies of the installation, which tests change."""

import shutil

from . import support


def copy(top):
    """Copy what freezes and thaws programs below this folder. Returns the command."""
    library = top / "libexec/snapboot"
    library.mkdir(parents=True)
    (top / "bin").mkdir()
    shutil.copy(support.SNAPBOOT, top / "bin/snapboot")
    source = support.launcher().parent
    for name in ("snapboot-launcher", "snapboot-entry", "snapboot-remote", "libsnapboot_freezer.so"):
        shutil.copy(source / name, library / name)
    for name in ("python", "ruby"):
        shutil.copytree(support.ROOT / name, library / name, ignore=shutil.ignore_patterns("__pycache__"))
    return top / "bin/snapboot"


def edit(top, path, before, after):
    """Exchange a text that occurs once in a file of such a copy. path: below its libraries."""
    file = top / "libexec/snapboot" / path
    text = file.read_text()
    assert text.count(before) == 1, (path, before)
    file.write_text(text.replace(before, after))
