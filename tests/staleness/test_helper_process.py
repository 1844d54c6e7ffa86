"""The second process that looks at many inputs: it finds what the first one would, and nothing is left of it."""

import os
import shutil
import subprocess

import pytest
from common import support

ASK = """\
import os
print(len(os.listdir("/proc/self/task")), sum(getattr(many, f"m{i}").VALUE for i in range(200)))
try:
    print("a child", os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no child")
"""
EXPECTED = "1 200\nno child\n"


def make_many(folder, python):
    """An image with more than enough inputs, its environment, and the folder of its modules."""
    package = folder / "many"
    package.mkdir()
    (package / "__init__.py").write_text("".join(f"from . import m{number}\n" for number in range(200)))
    for number in range(200):
        (package / f"m{number}.py").write_text("VALUE = 1\n")
    env = support.environment(PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1", HOME="/")
    image = support.frozen(folder / "many.img", [python], "--preload", "many,_random,_struct", env=env)
    return image, env, package


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return make_many(tmp_path_factory.mktemp("many"), support.PYTHON)


def ask(image):
    return [image, "-c", "import many\n" + ASK]


def clones(prefix, image, env):
    """How many processes a start makes, and its Result."""
    if not shutil.which("strace"):
        pytest.skip("there is no strace")
    log = image.with_name("strace")
    result = support.run(["strace", "-f", "-e", "trace=clone", "-o", log, *prefix, *ask(image)], env=env)
    return log.read_text().count("clone("), result


def test_nothing_is_left_of_it(many):
    image, env, _ = many
    made, result = clones([], image, env)
    assert result.out == EXPECTED and not result.fell_back, result
    assert made == (1 if len(os.sched_getaffinity(0)) > 1 else 0)


def test_none_where_there_is_one_cpu(many):
    image, env, _ = many
    one = str(min(os.sched_getaffinity(0)))
    made, result = clones(["taskset", "-c", one], image, env)
    assert result.out == EXPECTED and not result.fell_back, result
    assert made == 0


def test_none_for_few_inputs(python_image):
    made, result = clones([], python_image, support.environment())
    assert made == 0, result


@support.needs_root
def test_where_no_process_can_be_made(open_directory):
    """The first process looks itself then."""
    image, env, package = make_many(open_directory, support.public_python())
    alone = ["prlimit", "--nproc=0:0", *support.as_nobody(ask(image))]
    assert support.thawed(alone, env=env, cwd="/").out == EXPECTED
    (package / "m7.py").write_text("VALUE = 2\n")
    result = support.run(alone, env=env, cwd="/")
    assert result.out == "1 201\nno child\n" and "m7.py" in result.err, result


@pytest.mark.parametrize("number", [0, 199])
def test_what_it_finds_counts(many, number):
    image, env, package = many
    path = package / f"m{number}.py"
    path.write_text("VALUE = 2\n")
    try:
        result = support.run(ask(image), env=env)
    finally:
        path.write_text("VALUE = 1\n")
    assert result.out == "1 201\nno child\n" and result.fell_back, result
    assert f"m{number}.py" in result.err
    assert support.thawed(ask(image), env=env).out == EXPECTED


def test_a_library_with_other_times(many, tmp_path):
    """The process that maps it waits for the other one, which knows what was compared before."""
    image, env, _ = many
    venv = tmp_path / "venv"
    subprocess.run([support.PYTHON, "-m", "venv", "--without-pip", "--copies", venv], check=True)
    own = support.frozen(tmp_path / "own.img", [venv / "bin/python"], "--preload", "many", env=env)
    os.utime(venv / "bin/python3")
    os.utime(os.path.realpath(venv / "bin/python"))
    for _ in range(2):
        assert support.thawed(ask(own), env=env).out == EXPECTED
    seen = own.with_name("own.img.seen")
    assert seen.exists()
