"""An image with --max-age or --max-thaws is stale afterwards, and wherever that cannot be told."""

import concurrent.futures
import os
import shutil
import time

import pytest
from common import support
from common.image_file import ImageFile

ASK = ["-c", "print(1)"]
DAY = 24 * 3600 * 10**9


def counter(image):
    return image.with_name(image.name + ".thaws")


def stale(image, **options):
    """Run an image that must fall back. Returns why."""
    result = support.run([image, *ASK], **options)
    assert result.out == "1\n" and result.fell_back and "stale" in result.err, result
    return result.err


def why(image):
    result = support.run([support.SNAPBOOT, "inspect", "--why", image], log=False)
    assert result.status == (result.out != f"{image}: fresh\n"), result
    return result.out


def limits(image):
    out = support.run([support.SNAPBOOT, "inspect", image], log=False).out
    return next(line.strip() for line in out.splitlines() if line.strip().startswith("limits"))


def made_at(image, made):
    """A copy of an image that says it was made at another time (ns since 1970)."""
    patched = ImageFile(support.read(image))
    [row] = patched.rows("settings")
    patched.set("Settings", "made", row, made)
    return support.write(image.with_name("patched.img"), patched.seal())


def test_age(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--max-age", "36h")
    support.thawed([image, *ASK])
    assert why(image) == f"{image}: fresh\n" and "(36h after it was made)" in limits(image)
    now = time.time_ns()
    support.thawed([made_at(image, now - DAY), *ASK])
    old = made_at(image, now - 2 * DAY)
    assert "older than --max-age" in stale(old)
    assert "48h ago; to be used for 36h" in why(old)
    strict = support.run([old, *ASK], env=support.environment(SNAPBOOT_ON_STALE="error"), log=False)
    assert strict.status == 125 and "older than --max-age" in strict.err, strict
    future = made_at(image, now + DAY)
    assert "the clock is behind" in stale(future)
    assert "age: unknown" in why(future)


def test_without_limits(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON])
    support.thawed([made_at(image, 0), *ASK])
    assert limits(image).split() == ["limits", "none"] and not counter(image).exists()


@pytest.mark.parametrize("given", [["--max-age", "soon"], ["--max-age", "0s"], ["--max-thaws", "0"], ["--max-thaws", "x"]])
def test_limits_that_are_none(tmp_path, given):
    result = support.freeze(tmp_path / "app.img", [support.PYTHON], *given)
    assert result.status == 2 and given[1] in result.err, result


def test_thaws(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--max-thaws", "3")
    assert counter(image).stat().st_mode & 0o777 == 0o600
    assert why(image) == f"{image}: fresh\n", "asking takes no thaw"
    for used in range(3):
        assert f"for 3 thaws ({used} so far)" in limits(image)
        support.thawed([image, *ASK])
    size = counter(image).stat().st_size
    assert "as often as --max-thaws allows" in stale(image)
    assert "thaws: all of --max-thaws 3 were used" in why(image)
    assert counter(image).stat().st_size == size == 16 + 3
    strict = support.run([image, *ASK], env=support.environment(SNAPBOOT_ON_STALE="error"), log=False)
    assert strict.status == 125 and "--max-thaws" in strict.err, strict
    support.frozen(image, [support.PYTHON], "--max-thaws", "3")
    support.thawed([image, *ASK])
    support.frozen(image, [support.PYTHON])
    assert not counter(image).exists(), "a counter without use"


def test_thaws_at_the_same_time(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--max-thaws", "20")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: support.run([image, *ASK]), range(40)))
    assert all(result.out == "1\n" for result in results)
    assert sum(not result.fell_back for result in results) == 20


def test_a_stale_image_takes_no_thaw(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--max-thaws", "1", "--guard", "ordinarily")
    assert support.run([image, "-c", "print(1)", "ordinarily"]).fell_back
    assert support.run([image, *ASK], env=support.environment(PYTHONOPTIMIZE="1")).fell_back
    support.thawed([image, *ASK])


def missing(image):
    counter(image).unlink()


def of_another_image(image):
    other = support.frozen(image.with_name("other.img"), [support.PYTHON], "--max-thaws", "9")
    shutil.copy(counter(other), counter(image))


def cut_off(image):
    os.truncate(counter(image), 15)


def a_directory(image):
    counter(image).unlink()
    counter(image).mkdir()


def a_link(image):
    counter(image).rename(image.with_name("elsewhere"))
    counter(image).symlink_to("elsewhere")


@pytest.mark.fault(
    "IMAGE.thaws, in which the starts of an image with `--max-thaws` are counted, is missing, damaged or another image's",
    "the ordinary start, until the program is frozen again",
)
@pytest.mark.parametrize("harm", [missing, of_another_image, cut_off, a_directory, a_link])
def test_thaws_that_cannot_be_counted(tmp_path, harm):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--max-thaws", "9")
    harm(image)
    assert "IMAGE.thaws" in stale(image)
    assert "thaws: they cannot be counted" in why(image)


def test_an_image_moves_with_its_counter(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--max-thaws", "2")
    support.thawed([image, *ASK])
    moved = image.rename(tmp_path / "moved.img")
    assert "IMAGE.thaws" in stale(moved)
    counter(image).rename(counter(moved))
    (tmp_path / "link").symlink_to(moved)
    assert "for 2 thaws (1 so far)" in limits(tmp_path / "link")
    support.thawed([tmp_path / "link", *ASK])
    stale(moved)


@pytest.mark.fault("IMAGE.thaws cannot be written: the file system is mounted read-only", "the ordinary start")
def test_where_nothing_can_be_written(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--max-thaws", "9")
    script = 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; shift; exec "$@"'
    result = support.run(support.in_mount_namespace(script, str(tmp_path), str(image), *ASK))
    assert result.out == "1\n" and "IMAGE.thaws" in result.err, result


def test_a_file_with_the_counters_name_is_kept(tmp_path):
    image = tmp_path / "app.img"
    counter(image).write_text("my own notes")
    result = support.freeze(image, [support.PYTHON], "--max-thaws", "9")
    assert result.status == 2 and "does not count an image's thaws" in result.err, result
    support.frozen(image, [support.PYTHON])
    assert counter(image).read_text() == "my own notes"
