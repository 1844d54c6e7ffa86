"""How often an image has thawed and fallen back, and why it did last, is known without SNAPBOOT_LOG."""

import json
import os
import pty
import resource

import pytest
from common import support

pytestmark = pytest.mark.sample(3, whole=True)

SIZE = 512  # bytes
ASK = ["-c", "print(1)"]


@pytest.fixture(params=["SNAPBOOT_STATE", "XDG_STATE_HOME", "HOME"])
def place(request, tmp_path):
    """The variable that says where it is counted, with its value, and the folder."""
    (tmp_path / "state").mkdir()
    below = {"SNAPBOOT_STATE": "", "XDG_STATE_HOME": "snapboot", "HOME": ".local/state/snapboot"}[request.param]
    return {"SNAPBOOT_STATE": None, request.param: str(tmp_path / "state")}, tmp_path / "state" / below / "starts"


def in_state(tmp_path, **extra):
    return support.environment(SNAPBOOT_STATE=str(tmp_path / "state"), **extra)


def freeze(folder, env, *options, source="VALUE = 1\n"):
    """An image that becomes stale when mod.py changes, and what the freeze said."""
    (folder / "mod.py").write_text(source)
    image = folder / "app.img"
    words = [support.SNAPBOOT, "freeze", "-o", image, "--preload", "mod", *options, "--", support.PYTHON]
    result = support.run(words, env=env, log=False, cwd=folder)
    assert result.status == 0, result
    return image, result.out


def start(image, env, **options):
    result = support.run([image, *ASK], env=env, log=False, **options)
    assert (result.status, result.out, result.err) == (0, "1\n", ""), result


def counted(image, env):
    """The line of `inspect`, and the same from its JSON."""
    out = support.run([support.SNAPBOOT, "inspect", image], env=env, log=False).out
    line = next(line.strip() for line in out.splitlines() if line.strip().startswith("starts "))
    data = json.loads(support.run([support.SNAPBOOT, "inspect", "--json", image], env=env, log=False).out)
    return line.removeprefix("starts").strip(), data["starts"]


@pytest.mark.parametrize("variable", ["HOME", "XDG_STATE_HOME"])
def test_a_home_that_does_not_exist_is_not_made(tmp_path, variable):
    home = tmp_path / "nonexistent"
    variables = {"SNAPBOOT_STATE": None, "HOME": str(home), variable: str(home)}
    env = support.environment(PYTHONPATH=str(tmp_path), **variables)
    image, _ = freeze(tmp_path, env)
    start(image, env)
    assert not home.exists()


def test_a_stale_image_tells_of_itself(tmp_path, place):
    variables, folder = place
    env = support.environment(PYTHONPATH=str(tmp_path), **variables)
    image, said = freeze(tmp_path, env)
    assert "replaces" not in said
    assert counted(image, env)[0] == "thawed 0 times, fell back 0 times"
    for _ in range(3):
        start(image, env)
    assert counted(image, env)[0] == "thawed 3 times, fell back 0 times"
    with open(tmp_path / "mod.py", "a") as file:
        file.write("MORE = 2\n")
    for _ in range(2):
        start(image, env)
    line, data = counted(image, env)
    assert line.startswith("thawed 3 times, fell back 2 times (2 since it last thawed); last 2"), line
    assert line.endswith(f"stale: this file has changed: {tmp_path}/mod.py"), line
    assert (data["thaws"], data["fallbacks"], data["since_thaw"]) == (3, 2, 2)
    assert data["last_fallback"]["reason"] == f"stale: this file has changed: {tmp_path}/mod.py"
    # To ask is no start.
    support.run([support.SNAPBOOT, "inspect", "--why", image], env=env)
    assert counted(image, env)[0] == line
    [file] = folder.iterdir()
    assert (file.stat().st_size, file.stat().st_mode & 0o777) == (SIZE, 0o600)
    again = support.run([support.SNAPBOOT, "refreeze", image], env=env, log=False)
    assert "replaces an image whose last 2 starts fell back, 2" in again.out, again
    assert f"this file has changed: {tmp_path}/mod.py" in again.out, again
    start(image, env)
    assert counted(image, env)[0] == "thawed 1 time, fell back 0 times"
    assert [path.name for path in folder.iterdir()] != [file.name] and len(list(folder.iterdir())) == 1
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("app.img.")]


def test_a_thaw_forgives(tmp_path):
    env = in_state(tmp_path, PYTHONPATH=str(tmp_path))
    image, _ = freeze(tmp_path, env, "--guard", "fall")
    changed = {**env, "PYTHONOPTIMIZE": "1"}
    start(image, changed)
    start(image, env)
    line, data = counted(image, env)
    assert line.startswith("thawed 1 time, fell back 1 time; last ") and line.endswith("PYTHONOPTIMIZE"), line
    # What the image itself wants is no failure.
    support.run([image, *ASK, "fall"], env=env)
    assert counted(image, env)[1] == data
    _, said = freeze(tmp_path, env)
    assert "replaces" not in said
    # An error is one.
    strict = support.run([image, *ASK], env={**changed, "SNAPBOOT_ON_STALE": "error"}, log=False)
    assert strict.status == 125 and counted(image, env)[1]["fallbacks"] == 1


def test_where_nothing_can_be_counted(tmp_path):
    """The image starts as ever, and what stands in the way stays as it is."""
    state = tmp_path / "state"
    env = in_state(tmp_path, PYTHONPATH=str(tmp_path))
    image, _ = freeze(tmp_path, env)
    [file] = (state / "starts").iterdir()
    whole = file.read_bytes()

    def unchanged(why, env=env, **options):
        before = file.read_bytes() if file.is_file() else None
        for variables in ({}, {"PYTHONOPTIMIZE": "1"}):
            start(image, {**env, **variables}, **options)
        assert (file.read_bytes() if file.is_file() else None) == before, why

    unchanged("nobody wants it", env={**env, "SNAPBOOT_STATE": ""})
    unchanged("a relative place", env={**env, "SNAPBOOT_STATE": "state"}, cwd=tmp_path)
    unchanged("another home", env={**env, "SNAPBOOT_STATE": str(tmp_path / "no")})
    unchanged("too long", env={**env, "SNAPBOOT_STATE": "/x" * 600})
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE - 1, SIZE - 1))  # noqa: E731
    unchanged("a limit on the size of files", preexec_fn=limit)
    for other in (b"", whole + b"x", b"x" * SIZE, whole[:8] + b"12345678" + whole[16:]):
        file.write_bytes(other)
        unchanged("another file")
    file.write_bytes(whole)
    real = file.rename(tmp_path / "real")
    file.symlink_to(real)
    unchanged("a link")
    file.unlink()
    unchanged("a file that is gone")
    os.mkfifo(file)
    unchanged("a pipe")
    file.unlink()
    file.mkdir()
    unchanged("a folder")
    if support.IS_ROOT:
        file.rmdir()
        file.write_bytes(whole)
        os.chown(file, support.NOBODY, support.NOBODY)
        unchanged("a file of another user")


@support.needs_root
def test_folders_of_others_get_nothing(tmp_path):
    """As root with the home of another user: nothing of root's is made there."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, support.NOBODY, support.NOBODY)
    env = support.environment(SNAPBOOT_STATE=None, HOME=str(home), PYTHONPATH=str(tmp_path))
    image, _ = freeze(tmp_path, env)
    start(image, env)
    assert not list(home.iterdir())
    assert counted(image, env) == ("not counted here", None)


def test_a_terminal_is_told_in_words(tmp_path):
    env = in_state(tmp_path, PYTHONPATH=str(tmp_path))
    # With what is printed at one alone, there is no variant for that.
    image, _ = freeze(tmp_path, env, source="import sys\nVALUE = sys.stderr.isatty() and print('at a terminal')\n")
    master, slave = pty.openpty()
    try:
        support.subprocess.run([image, *ASK], env=env, stdout=support.subprocess.PIPE, stderr=slave, check=True)
    finally:
        os.close(slave)
        os.close(master)
    line = counted(image, env)[0]
    assert line.endswith("stale: standard error is a terminal; it was not (a pipe, a file) when the image was made"), line
    narrow, _ = freeze(tmp_path, env, source="import os\nVALUE = os.umask(0o22)\n")
    start(narrow, env, preexec_fn=lambda: os.umask(0o77))
    line = counted(narrow, env)[0]
    assert line.endswith("stale: this has changed since the boot: umask; it was 0022"), line
