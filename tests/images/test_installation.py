"""Images do not depend on the installation that made them."""

import json
import shutil

import pytest
from common import installed, support

pytestmark = pytest.mark.sample(2, whole=True)

PYTHON = (support.PYTHON, ["-c", "print('hello')"], "main.py", "print('hello')\n")
RUBY = (support.RUBY, ["-e", "puts 'hello'"], "main.rb", "puts 'hello'\n")


@pytest.fixture
def installation(tmp_path):
    """A copy of the installation, with its command."""
    top = tmp_path / "installation"
    installed.copy(top)
    return top


@pytest.mark.parametrize("language", [PYTHON, pytest.param(RUBY, marks=support.needs_ruby)], ids=["python", "ruby"])
@pytest.mark.parametrize("kind", ["bare", "code", "script"])
def test_an_image_outlives_its_installation(installation, tmp_path, language, kind):
    interpreter, code, name, text = language
    script = tmp_path / name
    script.write_text(text)
    command, arguments = {"bare": ([], code), "code": (code, []), "script": ([script], [])}[kind]
    image = tmp_path / "app.img"
    words = [installation / "bin/snapboot", "freeze", "-o", image, *support.bound_to_variables(interpreter), "--", interpreter, *command]
    assert support.run(words, log=False).status == 0
    told = support.run([support.SNAPBOOT, "inspect", "--json", image], log=False).out
    assert json.loads(told)["files"] and str(installation) not in told
    shutil.rmtree(installation)
    assert support.thawed([image, *arguments]).out == "hello\n"


def test_the_package_leads_to_its_command(tmp_path):
    """`python -m snapboot` of a source tree, of an installation, and of a package that is alone."""
    package = support.ROOT / "python"

    def run(folder, **variables):
        env = support.environment(PYTHONPATH=str(folder), **variables)
        return support.run([support.PYTHON, "-m", "snapboot", "--version"], env=env, log=False)

    version = support.run([support.SNAPBOOT, "--version"], log=False).out
    if support.SNAPBOOT == support.ROOT / "target/release/snapboot":
        assert run(package).out == version
    prefix = tmp_path / "prefix"
    installed = prefix / "libexec/snapboot/python"
    shutil.copytree(package / "snapboot", installed / "snapboot")
    alone = run(installed, PATH="/nowhere")
    assert alone.status == 1
    assert "there is no command `snapboot` beside it or in PATH" in alone.err
    assert run(installed, PATH=str(support.SNAPBOOT.parent)).out == version
    (prefix / "bin").mkdir()
    (prefix / "bin/snapboot").write_text("#!/bin/sh\necho installed $1\n")
    (prefix / "bin/snapboot").chmod(0o755)
    assert run(installed, PATH=str(support.SNAPBOOT.parent)).out == "installed --version\n"
