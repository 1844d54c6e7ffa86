"""A freeze that succeeds leaves an image that thaws: it starts the image once, before that gets its name."""

import re

import pytest
from common import support
from common.languages import both

pytestmark = pytest.mark.sample(2, whole=True)

SCAN = {
    "python": """\
import os
top = os.path.dirname(os.path.abspath(__file__))
VALUE = sum(len(os.listdir(os.path.join(top, name))) for name in os.listdir(top) if os.path.isdir(os.path.join(top, name)))
""",
    "ruby": """\
VALUE = Dir.children(__dir__).select { |name| File.directory?("#{__dir__}/#{name}") }.sum { |name| Dir.children("#{__dir__}/#{name}").size }
""",
}


@both
def test_a_boot_that_looks_around_in_the_folder_of_the_image(tmp_path, language):
    folder = tmp_path / "a folder"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    for output in (folder, tmp_path / "link"):
        env, _ = language.write(folder, SCAN[language.name])
        image = output / "app.img"
        result = support.freeze(
            image, [language.program], "--preload", language.preload(), env=env, cwd=folder
        )
        assert result.status == 0 and re.search(r"  thaws in \d+ ms$", result.out.strip()), result
        for place in (image, folder / "app.img", folder.resolve() / "app.img"):
            support.thawed(language.argv(place), env=env, cwd=folder)
        image.unlink()


@both
def test_an_image_that_never_thaws_is_not_kept(tmp_path, language):
    image = support.frozen(tmp_path / "app.img", [language.program])
    before = support.read(image)
    result = support.freeze(image, [language.program], "--max-age", "1ms")
    assert result.status == 2 and result.out == "", result
    assert "does not thaw" in result.err and "stale: the image is older than --max-age allows" in result.err, result
    assert support.read(image) == before and [path.name for path in tmp_path.iterdir()] == ["app.img"]


def test_a_front_end_that_falls_back_says_why_and_runs_nothing(tmp_path):
    image = support.frozen(tmp_path / "app.img", [support.PYTHON])
    env = support.environment(SNAPBOOT_REHEARSE="1")
    result = support.run([image, "-O", "-c", "print('ran')"], env=env, log=False)
    assert result.status == 125 and result.out == "" and "these options need an ordinary start" in result.err, result
