"""Data pages that were damaged: found by every start that is asked to look, and by `snapboot verify`.

The head and the tables are checked in every start (test_hostile.py).
"""

import os

import pytest
from common import support
from common.image_file import ImageFile, image_format

ASK = ["-c", "print('right')"]


@pytest.fixture(scope="module")
def checked_image(open_directory):
    """An image whose every start checks the data pages."""
    return support.frozen(open_directory / "checked.img", [support.PYTHON], "--preload", "json", "--check-pages")


def damaged(image, path, share):
    """A copy of an image with one bit flipped, at this share of the data pages."""
    changed = ImageFile(support.read(image))
    start, size = changed.head("pages_offset"), changed.head("pages_size")
    changed.bytes[start + min(int(size * share), size - 1)] ^= 1
    return support.write(path, changed.bytes)


@pytest.mark.parametrize("share", [0, 0.3, 0.77, 1])
@pytest.mark.fault("a bit of the data pages flips; the image was made with --check-pages", "the ordinary start")
def test_a_flipped_bit_where_the_image_asks_for_a_check(checked_image, tmp_path, share):
    image = damaged(checked_image, tmp_path / "app.img", share)
    result = support.run([image, *ASK])
    assert (result.out, result.status, result.fell_back) == ("right\n", 0, True), result
    assert "the data pages" in result.err, result
    verify = support.run([support.SNAPBOOT, "verify", image])
    assert verify.status == 1 and "data pages" in verify.err, verify
    why = support.run([support.SNAPBOOT, "inspect", "--why", image], log=False)
    assert why.status == 1 and "data pages" in why.out, why


@pytest.mark.parametrize("share", [0, 0.5, 1])
@pytest.mark.fault("a bit of the data pages flips; SNAPBOOT_VERIFY=1", "the ordinary start")
def test_a_flipped_bit_where_the_environment_asks_for_a_check(python_image, tmp_path, share):
    image = damaged(python_image, tmp_path / "app.img", share)
    result = support.run([image, *ASK], env=support.environment(SNAPBOOT_VERIFY="1"))
    assert result.out == "right\n" and result.fell_back and "the data pages" in result.err, result


def test_whole_images_pass_the_check(checked_image, python_image):
    assert support.thawed([checked_image, *ASK]).out == "right\n"
    for value in ("1", "0", ""):
        assert support.thawed([python_image, *ASK], env=support.environment(SNAPBOOT_VERIFY=value)).out == "right\n"


def test_an_image_that_checks_was_rehearsed_as_others_are(checked_image):
    assert len(ImageFile(support.read(checked_image)).rows("hot")) > 0


def test_each_variant_is_checked(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--check-pages", "--variants", "2")
    assert support.thawed([image, *ASK]).out == "right\n"
    content = support.read(image)
    content[ImageFile(content).head("pages_offset")] ^= 1
    changed = support.write(tmp_path / "changed.img", content)
    results = [support.run([changed, *ASK]) for _ in range(30)]
    assert {result.out for result in results} == {"right\n"}
    assert {result.fell_back for result in results} == {True, False}, "one variant is damaged, the other is not"


def test_nobody_looks_who_is_not_asked(python_image, tmp_path):
    """A page that no start touches: the image is used, as its pages are not read."""
    changed = ImageFile(support.read(python_image))
    pages = range(changed.head("pages_offset"), changed.head("pages_offset") + changed.head("pages_size"), 4096)
    touched = set()
    for row in changed.rows("touched"):
        start, size = (changed.get("TouchedRange", field, row) for field in ("offset", "size"))
        touched.update(range(start, start + size, 4096))
    changed.bytes[max(set(pages) - touched)] ^= 1
    image = support.write(tmp_path / "app.img", changed.bytes)
    for value, falls_back in ((None, False), ("0", False), ("", False), ("1", True)):
        result = support.run([image, *ASK], env=support.environment(SNAPBOOT_VERIFY=value))
        assert result.out == "right\n" and result.fell_back == falls_back, (value, result)


def test_an_unknown_flag_is_not_passed_over(python_image, tmp_path):
    changed = ImageFile(support.read(python_image))
    changed.set("Settings", "flags", changed.rows("settings")[0], 2 * image_format().constants["CHECK_PAGES"])
    result = support.run([support.write(tmp_path / "app.img", changed.seal()), *ASK])
    assert result.fell_back and "flags of the settings" in result.err, result


@support.needs_ruby
def test_ruby(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.RUBY], "--preload", "json", "--check-pages")
    ask = ["-e", "puts :right"]
    assert support.thawed([image, *ask]).out == "right\n"
    result = support.run([damaged(image, tmp_path / "other.img", 0.5), *ask])
    assert result.out == "right\n" and result.fell_back and "the data pages" in result.err, result


def test_what_a_start_uses_of_libraries_is_written_down(python_image):
    """The launcher reads it ahead where the image is not in memory."""
    image = ImageFile(python_image.read_bytes())
    used = set()
    for row in image.rows("touched-files"):
        file = image.section("files")[0] + image.get("TouchedFileRange", "file", row) * image_format().size("MappedFile")
        path = image.text("MappedFile", "path", file)
        size = image.get("MappedFile", "size", file)
        begin, length = (image.get("TouchedFileRange", field, row) for field in ("offset", "size"))
        assert length > 0 and begin < size and begin % 4096 == length % 4096 == 0
        used.add(os.path.basename(os.fsdecode(path)))
    assert "libc.so.6" in used
