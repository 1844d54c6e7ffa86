"""`snapboot inspect --strings`: secrets in an image are found, wherever they are."""

import pytest
from common import support

COUNT = 2000


@pytest.fixture(scope="module")
def image(open_directory):
    """An image whose memory holds numbered needles, one behind the other, that no source has in this form."""
    folder = open_directory / "strings"
    folder.mkdir()
    (folder / "helper.py").write_text(
        f"ROW = b''.join(b'needle-%04d ' % number for number in range({COUNT}))\n"
        "import os\nKEY = os.environ.get('OWN_KEY', '')[::-1]\n"
    )
    env = support.environment(PYTHONPATH=str(folder), OWN_KEY="kept-out-7391")
    return support.frozen(folder / "app.img", [support.PYTHON], "--preload", "helper", "--withhold", "OWN_KEY", env=env)


def search(pattern, image):
    """Exit status and lines of a search."""
    result = support.run([support.SNAPBOOT, "inspect", "--strings", pattern, image], log=False)
    assert result.status == 2 or result.err == "", result
    return result.status, result.out.splitlines(), result.err


def test_what_is_in_memory_is_found_also_across_pages(image):
    status, lines, _ = search("needle-[0-9]{4}", image)
    found = [line.rpartition(": ")[2] for line in lines]
    assert status == 0 and set(found) == {f"needle-{number:04d}" for number in range(COUNT)}
    assert all("+0x" in line.partition(": ")[0] for line in lines), lines[0]


def test_what_is_not_there_is_not_found(image):
    assert search("needle-[0-9]{5}", image) == (1, [], "")


def test_a_variable_gets_into_the_image_only_when_it_is_named(image, tmp_path):
    assert search("kept-out-7391|1937-tuo-tpek", image)[0] == 1
    env = support.environment(PYTHONPATH=str(image.parent), OWN_KEY="kept-out-7391")
    named = (tmp_path / "named.img", [support.PYTHON], "--preload", "helper", "--env", "OWN_KEY")
    status, lines, _ = search("1937-tuo-tpek", support.frozen(*named, env=env))
    assert status == 0 and lines[0].startswith(("[heap]+0x", "[anonymous 0x")), lines


def test_command_and_libraries_are_named(image, tmp_path):
    own = support.frozen(tmp_path / "own.img", [support.PYTHON, "-c", "word = 'in-the-' 'command'"])
    names = {line.partition("+")[0] for line in search("in-the-' 'command", own)[1]}
    assert {"(command)", "(tables)"} <= names, "the command as it is executed, and as it was typed"
    names = {line.partition("+")[0] for line in search(r"needle-0000|/[a-z0-9/._-]+\.py", image)[1]}
    assert "(tables)" in names, "the inputs"
    names = {line.rpartition("+")[0] for line in search(r"[\x01-\x7f]{8}", image)[1]}
    assert "[stack]" in names and any(name.startswith("/") and ".so" in name for name in names), names


def test_what_cannot_be_searched(image, tmp_path):
    assert search("a(", image)[0] == 2 and "regular expression" in search("a(", image)[2]
    assert search("x*", image)[0] == 2
    (tmp_path / "no.img").write_bytes(b"no image")
    assert search("x", tmp_path / "no.img")[0] == 2
    assert search("x", tmp_path / "none.img")[0] == 2


@support.needs_ruby
def test_ruby(tmp_path):
    (tmp_path / "helper.rb").write_text("ROW = Array.new(50) { |number| format('needle-%04d', number) }\n")
    image = support.frozen(tmp_path / "app.img", [support.RUBY], "--preload", str(tmp_path / "helper.rb"))
    status, lines, _ = search("needle-[0-9]{4}", image)
    assert status == 0 and len({line.rpartition(": ")[2] for line in lines}) == 50
