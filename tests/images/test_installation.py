"""Images do not depend on the installation that made them."""

import json
import shutil

import pytest
from common import support

PYTHON = (support.PYTHON, ["-c", "print('hello')"], "main.py", "print('hello')\n")
RUBY = (support.RUBY, ["-e", "puts 'hello'"], "main.rb", "puts 'hello'\n")


@pytest.fixture
def installation(tmp_path):
    """A copy of the installation, with its command."""
    top = tmp_path / "installation"
    library = top / "lib/snapboot"
    library.mkdir(parents=True)
    (top / "bin").mkdir()
    shutil.copy(support.SNAPBOOT, top / "bin/snapboot")
    source = support.launcher().parent
    for name in ("snapboot-launcher", "libsnapboot_freezer.so"):
        shutil.copy(source / name, library / name)
    for name in ("python", "ruby"):
        shutil.copytree(support.ROOT / name, library / name, ignore=shutil.ignore_patterns("__pycache__"))
    return top


@pytest.mark.parametrize("language", [PYTHON, pytest.param(RUBY, marks=support.needs_ruby)], ids=["python", "ruby"])
@pytest.mark.parametrize("kind", ["bare", "code", "script"])
def test_an_image_outlives_its_installation(installation, tmp_path, language, kind):
    interpreter, code, name, text = language
    script = tmp_path / name
    script.write_text(text)
    command, arguments = {"bare": ([], code), "code": (code, []), "script": ([script], [])}[kind]
    image = tmp_path / "app.img"
    words = [installation / "bin/snapboot", "freeze", "-o", image, "--", interpreter, *command]
    assert support.run(words, log=False).status == 0
    told = support.run([support.SNAPBOOT, "inspect", "--json", image], log=False).out
    assert json.loads(told)["files"] and str(installation) not in told
    shutil.rmtree(installation)
    assert support.thawed([image, *arguments]).out == "hello\n"
