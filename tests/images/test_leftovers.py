"""What a boot makes and leaves behind would be shared by all starts: refused by name, with the place in the program; caches are not."""

import pathlib

import pytest
from common import support
from common.languages import PYTHON, both

pytestmark = pytest.mark.sample(6, whole=True)

# What is made, by language: the source (line 3 makes it), and its kind.
MADE = {
    "a temporary folder": (
        {
            "python": "import tempfile\n\nVALUE = tempfile.mkdtemp()",
            "ruby": "require 'tmpdir'\n\nVALUE = Dir.mktmpdir",
        },
        "folder",
    ),
    "a temporary folder elsewhere": (
        {
            "python": "import os, tempfile\nHERE = os.path.dirname(__file__)\nVALUE = tempfile.mkdtemp(dir=HERE)",
            "ruby": "require 'tmpdir'\n\nVALUE = Dir.mktmpdir(nil, __dir__)",
        },
        "folder",
    ),
    "a temporary file": (
        {
            "python": "import tempfile\n\nKEPT = tempfile.NamedTemporaryFile()",
            "ruby": "require 'tempfile'\n\nKEPT = Tempfile.new('kept').tap(&:close)",
        },
        "file",
    ),
    "a socket": (
        {
            "python": "import os, socket, tempfile\nS = socket.socket(socket.AF_UNIX)\n"
            "S.bind(os.environ['TMPDIR'] + '/s')\nS.close()",
            "ruby": "require 'socket'\n\nUNIXServer.new(ENV.fetch('TMPDIR') + '/s').close",
        },
        "socket",
    ),
    "a link": (
        {
            "python": "import os\n\nos.symlink('nowhere', os.environ['TMPDIR'] + '/lock')",
            "ruby": "\n\nFile.symlink('nowhere', ENV.fetch('TMPDIR') + '/lock')",
        },
        "link",
    ),
}


@pytest.fixture
def temporary(tmp_path):
    """A directory for temporary things of the test's own, with a short path for sockets' sake."""
    folder = tmp_path / "t"
    folder.mkdir()
    return folder


@both
@pytest.mark.parametrize("case", MADE)
def test_refused_by_name(language, case, tmp_path, temporary):
    sources, kind = MADE[case]
    env, path = language.write(tmp_path, sources[language.name])
    env["TMPDIR"] = str(temporary)
    image = tmp_path / "x.img"
    result = support.freeze(image, [language.program], "--preload", language.preload(), env=env, cwd=tmp_path)
    assert result.status == 2, result
    assert f"{path}:3 makes the {kind} {tmp_path}/" in result.err and "snapboot.defer" in result.err, result
    assert not image.exists()
    assert not any(temporary.iterdir()), "what the boots made is removed"


@both
def test_what_the_next_start_finds_is_no_matter(language, tmp_path, temporary):
    """A cache: the first boot makes it, all others find it."""
    source = {
        "python": """
            import os
            HERE = os.path.dirname(__file__) + "/cache"
            os.makedirs(HERE, exist_ok=True)
            if not os.path.exists(HERE + "/data"):
                with open(HERE + "/data", "w") as file: file.write("content")
            VALUE = open(HERE + "/data").read()
        """,
        "ruby": """
            require 'fileutils'
            HERE = __dir__ + "/cache"
            FileUtils.mkdir_p(HERE)
            File.write(HERE + "/data", "content") unless File.exist?(HERE + "/data")
            VALUE = File.read(HERE + "/data")
        """,
    }[language.name]
    env, _ = language.write(tmp_path, "\n".join(line[12:] for line in source.splitlines()))
    image = tmp_path / "x.img"
    support.frozen(image, [language.program], "--preload", language.preload(), env=env, cwd=tmp_path)
    for _ in range(2):
        assert support.thawed(language.argv(image), env=env, cwd=tmp_path).out == "content\n"


def test_what_is_removed_before_the_freeze_is_no_matter(tmp_path, temporary):
    source = """
import os, shutil, snapboot, tempfile
@snapboot.defer
def fresh():
    global VALUE
    VALUE = tempfile.mkdtemp()
early = tempfile.mkdtemp()
snapboot.before_freeze(lambda: shutil.rmtree(early))
"""
    env, _ = PYTHON.write(tmp_path, source)
    env = {**env, "TMPDIR": str(temporary), "PYTHONPATH": f"{tmp_path}:{support.ROOT / 'python'}"}
    image = support.frozen(tmp_path / "x.img", [PYTHON.program], "--preload", "boot", env=env, cwd=tmp_path)
    made = {support.thawed(PYTHON.argv(image), env=env, cwd=tmp_path).out.strip() for _ in range(2)}
    assert len(made) == 2 and all(pathlib.Path(folder).is_dir() for folder in made)


@both
@pytest.mark.parametrize("way", ["..", "link"])
def test_the_freeze_s_own_files_are_none_of_the_boot(way, language, tmp_path):
    """However its folder is named."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    (here / "link").symlink_to(there)
    env, path = language.write(tmp_path, "VALUE = 1")
    preload = "boot" if language is PYTHON else str(path.with_suffix(""))
    image = support.frozen(f"{way}/x.img", [language.program], "--preload", preload, env=env, cwd=here)
    option = "-c" if language is PYTHON else "-e"
    assert support.thawed([f"./{image}", option, ""], env=env, cwd=here).status == 0


@both
def test_a_refused_freeze_names_what_it_has_made(language, tmp_path):
    """A server's socket is refused; the folder that each boot has made beside it is not what is in the way."""
    folder = tmp_path / "state"
    if language is PYTHON:
        make = f"import os, socket\nos.makedirs({str(folder)!r} + '/work-%d' % os.getpid())"
        listen = "VALUE = socket.create_server(('127.0.0.1', 0))"
    else:
        make = f"require 'fileutils'; require 'socket'\nFileUtils.mkdir_p({str(folder)!r} + \"/work-#$$\")"
        listen = "VALUE = TCPServer.new('127.0.0.1', 0)"
    env, _ = language.write(tmp_path, f"{make}\n{listen}")
    made = support.freeze(tmp_path / "x.img", [language.program], "--preload", language.preload(), env=env, cwd=tmp_path)
    assert made.status == 2 and "a listening TCP socket" in made.err, made
    assert f"the boot of this freeze has made the folder {folder}, and nothing removes that now; " in made.err, made
