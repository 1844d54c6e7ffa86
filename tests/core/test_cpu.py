"""Another CPU than the one that an image was made on or for: the ordinary way, and the feature that differs is named.

There is one CPU here, so it is the image that says that it comes from another one.
"""

import pytest

from . import support
from .image_file import ImageFile

ASK = ["-c", "print('right')"]
XCR0 = 0xFFFFFFFF


def leaf(image_file, number, subleaf=0):
    """Where in the file the row of a leaf is."""
    rows = image_file.rows("cpu")
    (row,) = [
        row
        for row in rows
        if (image_file.get("CpuLeaf", "leaf", row), image_file.get("CpuLeaf", "subleaf", row)) == (number, subleaf)
    ]
    return row


def flipped(image, path, number, register, bit, subleaf=0):
    """A copy of an image that wants the opposite of one bit, and whether it wants the bit now."""
    changed = ImageFile(support.read(image))
    row = leaf(changed, number, subleaf)
    value = changed.get("CpuLeaf", register, row) ^ (1 << bit)
    changed.set("CpuLeaf", register, row, value)
    return support.write(path, changed.seal()), bool(value >> bit & 1)


def why(image):
    """Status and lines of `snapboot inspect --why` without the first."""
    result = support.run([support.SNAPBOOT, "inspect", "--why", image], log=False)
    return result.status, [line.strip() for line in result.out.splitlines()[1:]]


@pytest.mark.parametrize(
    "number, subleaf, register, bit, name",
    [
        (1, 0, "ecx", 20, "sse4_2"),
        (1, 0, "edx", 26, "sse2"),
        (7, 0, "ebx", 5, "avx2"),
        (7, 0, "ebx", 16, "avx512f"),
        (7, 0, "ecx", 8, "gfni"),
        (7, 1, "eax", 4, "avx_vnni"),
        (0xD, 1, "eax", 1, "xsavec"),
        (0x80000001, 0, "ecx", 5, "abm"),
        (XCR0, 0, "eax", 6, "xcr0_avx512_zmm_hi256"),
        (XCR0, 0, "eax", 18, "xcr0_amx_tiledata"),
    ],
)
def test_a_cpu_with_or_without_one_feature(python_image, tmp_path, number, subleaf, register, bit, name):
    image, wanted = flipped(python_image, tmp_path / "other.img", number, register, bit, subleaf)
    result = support.run([image, *ASK])
    assert (result.out, result.status, result.fell_back) == ("right\n", 0, True), result
    assert f": {name}; " in result.err and ("has not" if wanted else "without a feature") in result.err, result
    assert why(image) == (1, [f"CPU: {name}: {'there -> gone' if wanted else 'not there -> there'}"])


def test_another_model(python_image, tmp_path):
    image, _ = flipped(python_image, tmp_path / "other.img", 1, "eax", 4)
    result = support.run([image, *ASK])
    assert result.fell_back and "another model of CPU" in result.err and result.out == "right\n", result
    status, lines = why(image)
    assert status == 1 and lines[0].startswith("CPU: model 0x") and len(lines) == 1


def test_every_feature_that_differs_is_listed(python_image, tmp_path):
    changed = ImageFile(support.read(python_image))
    row = leaf(changed, 7)
    changed.set("CpuLeaf", "ebx", row, changed.get("CpuLeaf", "ebx", row) ^ (1 << 5 | 1 << 16 | 1 << 30))
    status, lines = why(support.write(tmp_path / "other.img", changed.seal()))
    assert status == 1 and [line.split(": ")[1] for line in lines] == ["avx2", "avx512f", "avx512bw"]


def test_what_does_not_count_may_differ(python_image, tmp_path):
    """A mask of zero: what is behind it is not asked for."""
    changed = ImageFile(support.read(python_image))
    row = leaf(changed, 7)
    for register in ("eax", "ebx", "ecx", "edx"):
        changed.set("CpuLeaf", register + "_mask", row, 0)
        changed.set("CpuLeaf", register, row, 0)
    assert support.thawed([support.write(tmp_path / "other.img", changed.seal()), *ASK]).out == "right\n"
