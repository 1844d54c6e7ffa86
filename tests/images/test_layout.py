"""How a thawed process' memory is laid out."""

import json
import os
import subprocess

import pytest
from common import support


def code_mappings(image):
    """Path -> (protection, offset) of all mappings of that file."""
    shown = subprocess.run([support.SNAPBOOT, "inspect", "--json", image], capture_output=True, check=True)
    found = {}
    for mapping in json.loads(shown.stdout)["mappings"]:
        if mapping["kind"] == "pages of files":
            found.setdefault(mapping["file"], []).append((mapping["protection"], mapping["offset"]))
    return found


def test_the_code_of_a_runtime_is_a_mapping_of_its_own(python_image):
    """py-spy and others find a runtime by that, and would not by a mapping that starts before the code."""
    mappings = code_mappings(python_image)
    runtime = max(mappings, key=os.path.getsize)
    assert "python" in runtime
    assert ("r--", 0) in mappings[runtime]
    assert [offset for protection, offset in mappings[runtime] if protection == "r-x" and offset > 0]


def test_code_and_constants_of_a_small_library_are_one_mapping(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "_struct,_random,math,_queue")
    small = [rows for path, rows in code_mappings(image).items() if "lib-dynload" in path]
    if not small:
        pytest.skip("this Python has its extension modules built in")
    assert all([protection for protection, _ in rows] == ["r-x"] for rows in small), small


def test_address_space_without_randomisation(tmp_path):
    """Then the kernel's vdso is always where it was while freezing, and has to be put aside first."""
    fixed = ["setarch", "-R"]
    if subprocess.run([*fixed, "true"], capture_output=True).returncode:
        pytest.skip("the address space cannot be fixed here")
    image = tmp_path / "app.img"
    done = support.run([*fixed, support.SNAPBOOT, "freeze", "-o", image, "--", support.PYTHON], log=False)
    assert done.status == 0, done
    ask = [image, "-c", "import time; print(time.time() > 0)"]
    assert support.thawed([*fixed, *ask]).out == "True\n"
    assert support.thawed(ask).out == "True\n"
