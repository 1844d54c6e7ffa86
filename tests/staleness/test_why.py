"""`snapboot inspect --why` says of an image what the launcher does with it."""

import os
import shutil
import subprocess

import pytest
from common import support
from common.waiting import settle

ASK = ["-c", "import helper; print(helper.ANSWER)"]


@pytest.fixture
def program(tmp_path):
    """A folder with a module that holds a file open, the environment that finds it, and an image of it."""
    (tmp_path / "data.txt").write_text("data")
    (tmp_path / "helper.py").write_text("ANSWER = 'first!'\nOPEN = open(__file__[: -len('helper.py')] + 'data.txt', 'r+')\n")
    settle()
    env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "helper", env=env)
    return tmp_path, env, image


def asked(image, env, prefix=()):
    """Exit status and output of `inspect --why`, after making sure that the image itself does what they say."""
    answer = support.run([*prefix, support.SNAPBOOT, "inspect", "--why", image], env=env, log=False)
    ran = support.run([*prefix, support.SNAPBOOT, "run", image, *ASK], env=env)
    assert ran.fell_back == (answer.status == 1), (answer, ran)
    return answer.status, answer.out


def test_what_differs(program):
    folder, env, image = program
    assert asked(image, env) == (0, f"{image}: fresh\n")
    os.utime(folder / "helper.py")
    assert asked(image, env) == (0, f"{image}: fresh\n")
    with open(folder / "helper.py", "a") as file:
        file.write("# more\n")
    other = {name: value for name, value in env.items() if name != "PYTHONPATH"}
    status, said = asked(image, {**other, "PYTHONOPTIMIZE": "1"})
    size = (folder / "helper.py").stat().st_size
    assert status == 1 and said.startswith(f"{image}: stale\n"), said
    assert f"{folder}/helper.py: {size - 7} -> {size} bytes, modified 20" in said, said
    assert "PYTHONOPTIMIZE: unset -> set" in said and "PYTHONPATH: set -> unset" in said, said


def test_a_file_that_the_image_holds_open(program):
    folder, env, image = program
    (folder / "data.txt").unlink()
    status, said = asked(image, env)
    assert status == 1 and said.startswith(f"{image}: not used\n") and f"{folder}/data.txt" in said, said


def test_who_may_write_to_the_image(program):
    _, env, image = program
    image.chmod(0o775)
    status, said = asked(image, env)
    assert status == 1 and "chmod go-w" in said, said


def test_limits_of_the_caller(program):
    _, env, image = program
    low = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"]
    status, said = asked(image, env, low)
    assert status == 1 and "(ulimit -n)" in said, said
    stack = ["sh", "-c", 'ulimit -s unlimited && exec "$@"', "sh"]
    if subprocess.run([*stack, "true"], stderr=subprocess.DEVNULL).returncode == 0:
        status, said = asked(image, env, stack)
        assert status == 1 and "the stack limit is larger" in said, said


def test_a_descriptor_of_the_caller(program):
    _, env, image = program
    taken = ["bash", "-c", 'exec 100</dev/null; exec "$@"', "bash"]
    status, said = asked(image, env, taken)
    assert status == 1 and "in use by the caller" in said, said


def test_nothing_of_the_image_runs(program):
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    folder, env, image = program
    marker = folder / "ran"
    code = f"import helper, snapboot\n@snapboot.after_thaw\ndef mark(): open({str(marker)!r}, 'w')\n"
    (folder / "hooked.py").write_text(code)
    settle()
    env = {**env, "PYTHONPATH": f"{folder}:{support.ROOT / 'python'}"}
    image = support.frozen(folder / "hooked.img", [support.PYTHON], "--preload", "hooked", env=env)
    done = subprocess.run(
        ["strace", "-f", "-e", "trace=execve", support.SNAPBOOT, "inspect", "--why", image],
        env=env, capture_output=True, text=True,
    )
    started = [line for line in done.stderr.splitlines() if "execve(" in line]
    assert done.returncode == 0 and len(started) == 2 and str(image) + '", [' not in "".join(started), done.stderr
    assert not marker.exists()
    support.thawed([image, "-c", "pass"], env=env)
    assert marker.exists(), "otherwise this tests nothing"


def test_an_image_that_is_not_executable(program):
    _, env, image = program
    image.chmod(0o644)
    answer = support.run([support.SNAPBOOT, "inspect", "--why", image], env=env, log=False)
    assert answer.status == 1 and f"chmod +x {image}" in answer.out, answer
    assert support.thawed([support.SNAPBOOT, "run", image, *ASK], env=env).out == "first!\n"
