"""An image gets no permission bit that a file which its boot has read lacks."""

import os
import pathlib
import shutil
import tempfile

import pytest
from common import support
from common.languages import both

READS = {"python": 'VALUE = open("secret").read()\n', "ruby": 'VALUE = File.read("secret")\n'}
PRELOAD = {"python": "reads", "ruby": "./reads"}
# One that everybody may run: those of version managers often lie in somebody's home.
PROGRAMS = {"python": "/usr/bin/python3", "ruby": "/usr/bin/ruby"}


@pytest.fixture
def folder():
    """A folder into which everybody may go, unlike those of pytest."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="snapboot-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@both
def test_a_file_that_others_may_not_read_closes_the_image(folder, language):
    program = PROGRAMS[language.name]
    if not os.path.exists(program):
        pytest.skip(f"there is no {program}")
    (folder / f"reads{language.ending}").write_text(READS[language.name])
    secret, place = folder / "secret", folder / "place"
    place.mkdir()
    (place / "file").write_text("hidden words")
    image = folder / "app.img"

    def mode_of(expected):
        result = support.freeze(image, [program], "--preload", PRELOAD[language.name], cwd=folder)
        assert result.status == 0, result
        assert ("and who may not read that" in result.err) == (expected != 0o755), result
        return oct(image.stat().st_mode & 0o7777)

    secret.symlink_to("place/file")
    assert mode_of(0o755) == "0o755"
    place.chmod(0o700)
    assert mode_of(0o700) == "0o700", "the directory is closed"
    place.chmod(0o755)
    (place / "file").chmod(0o600)
    assert mode_of(0o700) == "0o700", "the file is closed"
