"""Images of a free-threaded build of CPython: what it knows of threads, owners of objects and its memory goes on after a thaw."""

import pytest
from common import pythons, support

BOOT = """
import sys, threading

class Node:
    pass

IDENT = threading.get_ident()
NODES = [Node() for _ in range(20_000)]
for node, after in zip(NODES, NODES[1:]):
    node.after, after.before = after, node  # in cycles
del node, after
TEXTS = ["text %d" % number for number in range(50_000)]
MADE_ELSEWHERE = []
thread = threading.Thread(target=lambda: MADE_ELSEWHERE.extend(["%d elsewhere" % number] for number in range(20_000)))
thread.start()
thread.join()
# Memory that mimalloc has given back, and may want to use again.
GONE = [bytes(100_000) for _ in range(300)]
del GONE
"""
PROGRAM = """
import gc, os, sys, threading, weakref
import boot

print(sys._is_gil_enabled(), sys.flags.gil, threading.get_ident() == threading.main_thread().ident)
print([sys.getrefcount(thing) for thing in (boot.NODES[5], boot.TEXTS, boot.MADE_ELSEWHERE[7], object(), sys, print)])

seen = weakref.ref(boot.NODES[9_999])
counts = [0] * 4
def work(number):
    own = []
    for _ in range(20):
        own.append([text + "!" for text in boot.TEXTS[number::4]])
        counts[number] += sum(len(one) for one in boot.MADE_ELSEWHERE) + len(own[-1])
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(counts)
def drop():
    boot.NODES.clear()
    boot.MADE_ELSEWHERE.clear()
dropping = threading.Thread(target=drop)
dropping.start()
dropping.join()
gc.unfreeze()
print(gc.collect() > 0, seen() is None, set(bytes(100_000)))
child = os.fork()
if child == 0:
    other = threading.Thread(target=lambda: print("child", sys._is_gil_enabled(), len(boot.TEXTS), flush=True))
    other.start()
    other.join()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.fixture(scope="module")
def free_threaded():
    return pythons.free_threaded() or pytest.skip("there is no free-threaded Python here")


@pytest.fixture
def env(tmp_path):
    (tmp_path / "boot.py").write_text(BOOT)
    (tmp_path / "program.py").write_text(PROGRAM)
    return support.environment(PYTHONPATH=str(tmp_path))


@pytest.mark.parametrize("gil", [[], ["-X", "gil=0"], ["-X", "gil=1"]], ids=" ".join)
def test_same(gil, free_threaded, env, tmp_path):
    words = [free_threaded, *gil, tmp_path / "program.py"]
    image = support.frozen(tmp_path / "app.img", words, "--preload", "boot", env=env)
    ordinary = support.run(words, env=env, log=False)
    assert (ordinary.status, ordinary.err) == (0, "") and ordinary.out.startswith(str(gil == ["-X", "gil=1"])), ordinary
    for _ in range(3):
        assert support.thawed([image], env=env).out == ordinary.out


def test_the_variable_counts(free_threaded, env, tmp_path):
    code = "import sys; print(sys._is_gil_enabled())"
    image = support.frozen(tmp_path / "bare.img", [free_threaded], env=env)
    assert support.thawed([image, "-c", code], env=env).out == "False\n"
    with_gil = support.run([image, "-c", code], env={**env, "PYTHON_GIL": "1"})
    assert (with_gil.status, with_gil.out) == (0, "True\n") and "PYTHON_GIL" in with_gil.err and with_gil.fell_back, with_gil
    with_gil = support.run([image, "-X", "gil=1", "-c", code], env=env)
    assert (with_gil.status, with_gil.out, with_gil.fell_back) == (0, "True\n", True), with_gil


def test_memory_is_the_main_threads(free_threaded, env, tmp_path):
    """The number by which objects and pages of memory know their owner is the same as when the image was made."""
    code = "import boot, threading; print(threading.get_ident() == boot.IDENT, threading.main_thread().ident == boot.IDENT)"
    image = support.frozen(tmp_path / "bare.img", [free_threaded], "--preload", "boot", env=env)
    assert support.thawed([image, "-c", code], env=env).out == "True True\n"
