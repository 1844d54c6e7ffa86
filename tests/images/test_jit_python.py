"""CPython's JIT compiler, from 3.14 on, where a build has it: what it compiled while the program booted is a part of the image."""

import sys

import pytest
from common import support

HAS_JIT = getattr(sys, "_jit", None) is not None and sys._jit.is_available()
pytestmark = pytest.mark.skipif(not HAS_JIT, reason="this Python has no JIT compiler")

WARM = """
def step(i):
    return i * 2 if i % 3 else 1

def hot(count):
    total = 0
    for i in range(count):
        total += step(i)
    return total

hot(100_000)
"""
PROGRAM = """
import gc, os, sys, warm, _opcode

def is_compiled(function):
    code = function.__code__
    for place in range(0, len(code.co_code), 2):
        try:
            if _opcode.get_executor(code, place) is not None:
                return True
        except (ValueError, RuntimeError):
            pass
    return False

def later(count):
    text = ""
    for i in range(count):
        text = str(i) + text[:3]
    return text

print(sys._jit.is_enabled(), is_compiled(warm.hot), is_compiled(later))
print(warm.hot(200_000), later(50_000), is_compiled(later), flush=True)
child = os.fork()
if child == 0:
    print(warm.hot(1000), later(1000), flush=True)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
warm.step = lambda i: i
print(warm.hot(100_000))
warm.range = lambda count: [1.5] * count
print(warm.hot(100_000))
sys.settrace(lambda *_: None)
print(warm.hot(100))
sys.settrace(None)
gc.collect()
for number in range(300):
    names = {}
    exec("def made(count):\\n  total = %d\\n  for i in range(count): total += i\\n  return total" % number, names)
    assert names["made"](6000) == number + 6000 * 5999 // 2
print(warm.hot(5000))
"""


def test_compiled_code_is_a_part_of_the_image(tmp_path):
    (tmp_path / "warm.py").write_text(WARM)
    (tmp_path / "program.py").write_text(PROGRAM)
    env = support.environment(PYTHON_JIT="1", PYTHONPATH=str(tmp_path))
    command = [support.PYTHON, tmp_path / "program.py"]
    image = support.frozen(tmp_path / "program.img", command, "--preload", "warm", env=env)
    ordinary = support.run(command, env=env)
    assert ordinary.status == 0 and ordinary.out.startswith("True True False\n"), ordinary
    for _ in range(3):
        thawed = support.run([image], env={**env, "SNAPBOOT_LOG": "1"})
        assert (thawed.status, thawed.out, thawed.err) == (0, ordinary.out, ordinary.err)


def test_a_start_without_it_is_ordinary(tmp_path):
    env = support.environment(PYTHON_JIT="1")
    image = support.frozen(tmp_path / "program.img", [support.PYTHON, "-c", "import sys; print(sys._jit.is_enabled())"], env=env)
    other = support.run([image], env={**env, "PYTHON_JIT": "0", "SNAPBOOT_LOG": "1"})
    assert other.out == "False\n" and "PYTHON_JIT" in other.err and "starting the ordinary way" in other.err
