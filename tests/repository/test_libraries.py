"""What the libraries that a start loads make it load besides."""

import re
import subprocess

import pytest
from common import support

# Of any start: each other one takes a start a tenth of a millisecond and more.
USUAL = re.compile(r"(libc\.so\.6|ld-linux-.*\.so\.\d|libpthread\.so\.0|libdl\.so\.2|libm\.so\.6)")


@pytest.mark.parametrize("name", ["python", "ruby", "freezer"])
def test_a_library_needs_only_what_every_process_has(name):
    path = support.SNAPBOOT.resolve().parent / f"libsnapboot_{name}.so"
    told = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    assert "Dynamic section" in told
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", told)
    assert all(USUAL.fullmatch(library) for library in needed), needed
