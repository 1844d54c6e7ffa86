"""An image whose script was named by a relative path: as typed where that leads to the script, by its absolute path elsewhere."""

import glob
import os
import pathlib
import shutil
import tempfile

import pytest
from common import support
from common.waiting import settle

pytestmark = pytest.mark.sample(20, whole=True)

PYTHON = """\
import os, sys
import helper
print([os.path.relpath(__file__, {top!r}) if os.path.isabs(__file__) else __file__, sys.argv, sys.path[0], helper.A])
"""
RUBY = """\
require_relative "helper"
p [__FILE__, $0, __FILE__ == $0, __dir__, ARGV, A, DATA.read]
raise "told" if ARGV == ["raise"]
__END__
data
"""


@pytest.fixture(params=["python", pytest.param("ruby", marks=support.needs_ruby)])
def program(request, tmp_path):
    """The directory of a program in app/, the command, and an image of it."""
    home = tmp_path / "home"
    (home / "app").mkdir(parents=True)
    (home / "data").mkdir()
    is_python = request.param == "python"
    name = "main.py" if is_python else "main.rb"
    (home / "app" / name).write_text(PYTHON.format(top=str(home)) if is_python else RUBY)
    (home / "app" / ("helper.py" if is_python else "helper.rb")).write_text("A = 1\n")
    settle()
    command = [support.PYTHON if is_python else support.RUBY, f"app/{name}"]
    return home, command, support.frozen(home / "app.img", command, cwd=home)


def same(result, ordinary):
    assert (result.status, result.out, result.err) == (ordinary.status, ordinary.out, ordinary.err)


def ordinary(command, *arguments, **options):
    return support.run([*command, *arguments], log=False, **options)


def absolute(home, command):
    return [command[0], f"{home}/{command[1]}"]


def stale(image, *arguments, **options):
    """Run the image where a compared variable differs."""
    result = support.run([image, *arguments], env=support.environment(OPENSSL_CONF="/dev/null"), log=False, **options)
    logged = support.run([image, *arguments], env=support.environment(OPENSSL_CONF="/dev/null"), **options)
    assert logged.fell_back, logged
    return result


def test_at_home_it_is_as_typed(program):
    home, command, image = program
    for arguments in ([], ["raise"]):
        expected = ordinary(command, *arguments, cwd=home)
        same(support.thawed([image, *arguments], cwd=home), expected)
        same(stale(image, *arguments, cwd=home), expected)


@pytest.mark.parametrize("place", ["data", "app", ".."])
def test_elsewhere_it_is_the_same_script_by_its_absolute_path(program, place):
    home, command, image = program
    for arguments in ([], ["raise"]):
        expected = ordinary(absolute(home, command), *arguments, cwd=home / place)
        same(support.thawed([image, *arguments], cwd=home / place), expected)
        same(stale(image, *arguments, cwd=home / place), expected)


def test_another_script_of_that_name_is_not_taken_for_it(program, tmp_path):
    home, command, image = program
    other = tmp_path / "other"
    shutil.copytree(home / "app", other / "app")
    with open(other / command[1], "r+") as file:
        content = file.read()
        file.seek(0)
        file.write("print('other')\n" + content)
    same(support.thawed([image], cwd=other), ordinary(absolute(home, command), cwd=other))


def test_a_link_to_its_directory_is_home_too(program, tmp_path):
    home, command, image = program
    os.symlink(home / "app", tmp_path / "app")
    expected = ordinary(command, cwd=tmp_path)
    assert command[1] in expected.out
    result = support.thawed([image], cwd=tmp_path)
    assert command[1] in result.out and result.status == 0, result


def test_a_script_that_moved_is_found_as_typed(program, tmp_path):
    home, command, image = program
    moved = tmp_path / "moved"
    os.rename(home, moved)
    result = support.run([moved / "app.img"], cwd=moved)
    same(support.run([moved / "app.img"], cwd=moved, log=False), ordinary(command, cwd=moved))
    assert result.fell_back


@support.needs_ruby
@pytest.mark.parametrize("length", [24, 44, 45, 46, 70])
@pytest.mark.parametrize("name", ["a.rb", "a-long-name-of-a-program.rb"])
def test_ruby_with_names_of_many_lengths(name, length):
    """Ruby keeps short names in another way than long ones, and compares what it has kept with "-", whose byte is 45."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="e") as top:
        home = pathlib.Path(top, "x" * max(1, length - len(f"{top}//{name}")))
        home.mkdir()
        (home / name).write_text(RUBY.replace('require_relative "helper"', "A = 2"))
        settle()
        image = support.frozen(home / "app.img", [support.RUBY, name], cwd=home)
        same(support.run([image], cwd="/", log=False), ordinary([support.RUBY, home / name], cwd="/"))


def test_python_3_8_shows_names_as_they_were_given(tmp_path):
    found = glob.glob(os.path.expanduser("~/.pyenv/versions/3.8.*/bin/python"))
    if not found:
        pytest.skip("there is no Python 3.8")
    python = found[0]
    (tmp_path / "main.py").write_text("import sys\nprint(__file__, sys.argv, (lambda: 0).__code__.co_filename)\n")
    image = support.frozen(tmp_path / "app.img", [python, "main.py"], cwd=tmp_path)
    same(support.thawed([image], cwd=tmp_path), ordinary([python, "main.py"], cwd=tmp_path))
    same(support.thawed([image], cwd="/"), ordinary([python, f"{tmp_path}/main.py"], cwd="/"))
