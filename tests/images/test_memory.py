"""Memory that comes from an image behaves as the anonymous memory that it was.

A private file mapping does not by itself: dropping its pages brings bytes of the file back, where malloc expects zeros, and
growing it shows what lies behind it in the file. See crates/freezer/src/sys/image_memory.rs and libc/glibc/malloc.rs for what is done.
"""

import pathlib
import resource
import shutil
import signal
import tempfile
import textwrap

import pytest
from common import support
from common.ready import prepared

pytestmark = pytest.mark.sample(6, whole=True)

HOLDER = """
import ctypes, os, sys, threading
library = ctypes.CDLL(os.path.dirname(os.path.abspath(__file__)) + "/libmemory.so")
for name in ("deep", "huge_calloc"):
    getattr(library, name).argtypes = [ctypes.c_size_t]
library.before()
small, middle, large = (bytearray(b"x" * size) for size in (100_000, 3_000_000, 40_000_000))
text = "\\u00e4" * 1_000_000
items = list(range(300_000))

def warm():
    threading.local().room = bytearray(1000)

threads = [threading.Thread(target=warm) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """An image of a Python that holds memory of all kinds, and its environment."""
    folder = tmp_path_factory.mktemp("memory")
    source = pathlib.Path(__file__).with_name("memory.c").read_text()
    support.cc(source, folder / "libmemory.so", "-shared", "-fPIC")
    (folder / "holder.py").write_text(HOLDER)
    env = support.environment(PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1")
    return support.frozen(folder / "app.img", [support.PYTHON], "--preload", "holder", env=env), env


def ask(program, code, **options):
    """Run code in a thawed process that has `library` and the holder's names. Returns what it printed."""
    image, env = program
    text = "from holder import *\nimport holder\n" + textwrap.dedent(code)
    result = support.thawed([image, "-c", text], env=env, **options)
    assert result.status == 0, result
    return result.out


STEPS = [
    "kept",
    "drop",
    "posix_drop",
    "give_up",
    "wipe_on_fork",
    "grow",
    "unhide",
    "move_the_break",
    "dirty_callocs",
    "arenas",
]


@pytest.mark.parametrize("step", STEPS)
def test_alone(program, step):
    assert ask(program, f"print(library.{step}())") == "0\n"


@pytest.mark.parametrize("how", ["run", "launcher"])
def test_an_image_that_is_not_executed(program, how, tmp_path):
    """Without mode x the launcher is another file than the image: pages are told by what is mapped, not by /proc/self/exe."""
    image, env = program
    copy = tmp_path / "app.img"
    shutil.copyfile(image, copy)
    copy.chmod(0o600)
    start = [support.SNAPBOOT, "run"] if how == "run" else [support.launcher()]
    code = f"from holder import *; print([getattr(library, step)() for step in {STEPS}])"
    assert support.thawed([*start, copy, "-c", code], env=env).out == f"{[0] * len(STEPS)}\n"


def test_one_after_the_other(program):
    steps = [step for step in STEPS if step != "kept"]
    assert ask(program, f"print([getattr(library, step)() for step in {steps}])") == f"{[0] * len(steps)}\n"


def test_the_same_in_an_ordinary_start(program):
    """What the functions expect is what anonymous memory does."""
    _, env = program
    steps = [step for step in STEPS if step != "kept"]
    code = f"from holder import *; print([getattr(library, step)() for step in {steps}])"
    assert support.run([support.PYTHON, "-c", code], env=env).out == f"{[0] * len(steps)}\n"


def test_callocs_in_threads(program):
    code = """
    from concurrent.futures import ThreadPoolExecutor
    print(library.dirty_callocs(), sum(ThreadPoolExecutor(8).map(lambda _: sum(map(any, [bytes(9999)] * 9)), range(64))))
    """
    assert ask(program, code) == "0 0\n"


@pytest.mark.parametrize("size", [100_000, 3_000_000, 100_000_000])
def test_large_callocs(program, size):
    assert ask(program, f"print(library.huge_calloc({size}))") == "0\n"


@pytest.mark.parametrize("name, size", [("small", 100_000), ("middle", 3_000_000), ("large", 40_000_000)])
def test_a_bytearray_that_grows_past_its_size(program, name, size):
    code = f"""
    grown = holder.{name}
    for round in range(3):
        before = len(grown)
        grown.extend(bytes(before))
        assert grown.count(0, before) == before, "what was added is zeros"
        grown[before:] = b"x" * before
    print(len(grown), grown == b"x" * len(grown))
    del grown[100:]
    print(grown == b"x" * 100)
    """
    assert ask(program, code) == f"{size * 8} True\nTrue\n"


def test_lists_and_strings_that_grow(program):
    code = """
    items.extend(range(300_000, 3_000_000))
    print(items == list(range(3_000_000)), (text * 20).count("\\u00e4"))
    items.clear(); items.extend(range(10)); print(items[-1])
    """
    assert ask(program, code) == "True 20000000\n9\n"


def test_a_hundred_megabytes(program):
    code = """
    blocks = [bytearray(100 << 20), bytearray(1 << 20)] + [bytes(1000) for _ in range(100_000)]
    blocks[0][-1] = 1
    print(len(blocks[0]), sum(blocks[0][::4096]), blocks[0][-1])
    """
    assert ask(program, code) == f"{100 << 20} 0 1\n"


def test_the_garbage_collector_under_load(program):
    code = """
    import gc
    class Node: pass
    def ring():
        nodes = [Node() for _ in range(50)]
        for one, other in zip(nodes, nodes[1:] + nodes[:1]): one.next = other
    for _ in range(4000): ring()
    print(gc.collect() >= 0, gc.isenabled(), len([o for o in gc.get_objects() if isinstance(o, Node)]))
    """
    assert ask(program, code) == "True True 0\n"


def test_thread_stacks(program):
    """glibc keeps the stacks of ended threads, and drops their pages by itself."""
    code = """
    def work(number):
        local = bytearray(200_000)
        return sum(local) + library.deep(400 + number)
    for round in range(5):
        out = [None] * 30
        def run(i): out[i] = work(i)
        threads = [threading.Thread(target=run, args=(i,)) for i in range(30)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert out == [0] * 30
    threading.stack_size(16 << 20)
    thread = threading.Thread(target=run, args=(0,)); thread.start(); thread.join()
    print("all")
    """
    assert ask(program, code) == "all\n"


def test_the_stack_grows_to_its_limit_and_not_beyond(program):
    image, env = program
    most = 8 << 20
    limit = dict(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (most, most)))
    code = "from holder import library; print(library.deep(int(__import__('sys').argv[1])))"
    below, above = str((most >> 10) * 8 // 10), str((most >> 10) * 3 // 2)
    assert support.run([image, "-c", code, below], env=env, **limit).out == "0\n"
    for argv in ([support.PYTHON], [image]):
        assert support.run([*argv, "-c", code, above], env=env, **limit).status == -signal.SIGSEGV


def test_deep_recursion(program):
    code = """
    def down(n): return 0 if n == 0 else 1 + down(n - 1)
    try: down(10 ** 6)
    except RecursionError as error: print(str(error)[:31])
    sys.setrecursionlimit(20_000)
    print(down(15_000))
    nested = eval("[" * 90 + "]" * 90); print(len(repr(nested)))
    """
    assert ask(program, code) == "maximum recursion depth exceede\n15000\n180\n"


def test_fork_after_a_thaw(program):
    code = """
    import multiprocessing
    context = multiprocessing.get_context("fork")
    def child(queue): holder.middle[:4] = b"mine"; queue.put((bytes(holder.middle[:4]), library.dirty_callocs(), library.drop()))
    queue = context.Queue(); process = context.Process(target=child, args=(queue,)); process.start()
    print(queue.get()); process.join(); print(process.exitcode, bytes(holder.middle[:4]), library.kept())
    """
    assert ask(program, code) == "(b'mine', 0, 0)\n0 b'xxxx' 0\n"


def test_what_a_thaw_writes_stays_in_it(program):
    image, _ = program
    before = image.read_bytes()
    for _ in range(2):
        assert ask(program, "print(holder.large.find(b'y')); holder.large[:] = b'y' * len(holder.large)") == "-1\n"
    assert image.read_bytes() == before


def test_shared_memory_depends_on_no_name_in_the_folder_of_names(tmp_path):
    (tmp_path / "holder.py").write_text("import mmap, multiprocessing\narea, lock = mmap.mmap(-1, 4096), multiprocessing.Lock()\n")
    env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    result = support.freeze(tmp_path / "app.img", [support.PYTHON], "--preload", "holder", env=env)
    assert (result.status, result.err) == (0, ""), result
    with tempfile.NamedTemporaryFile(dir="/dev/shm"):
        assert support.thawed([tmp_path / "app.img", "-c", "import holder; print(holder.lock.acquire())"], env=env).out == "True\n"


def test_programs_that_a_thaw_starts_do_not_get_the_freezer(program):
    code = """
    import subprocess
    print(subprocess.run(["cat", "/proc/self/maps"], capture_output=True, text=True).stdout.count("freezer"))
    own = ("SNAPBOOT_LOG", "SNAPBOOT_STATE", "SNAPBOOT_STORE")
    print([name for name in os.environ if name.startswith(("LD_", "SNAPBOOT_")) and name not in own])
    """
    assert ask(program, code) == "0\n[]\n"


@pytest.fixture(scope="module")
def numpy_image(tmp_path_factory):
    """An image of a Python with arrays."""
    folder = tmp_path_factory.mktemp("numpy")
    python = prepared("pandas")["python"]
    (folder / "arrays.py").write_text(
        "import numpy as np\nsmall, large = np.ones(1000), np.ones(3_000_000)\n"
        "square = np.random.rand(300, 300)\nproduct = square @ square\n"
    )
    env = support.environment(PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1")
    return support.frozen(folder / "app.img", [python], "--preload", "arrays", env=env), env


def test_numpy_arrays_that_grow(numpy_image):
    image, env = numpy_image
    code = """if True:
        from arrays import *
        for array in (small, large):
            size = len(array)
            array.resize(size * 4, refcheck=False)
            print(array[:size].all(), array[size:].any(), np.zeros(size * 2).any())
        print(np.zeros((5000, 500)).any(), np.linalg.norm(square @ square - product) < 1e-9, np.linalg.inv(square).shape)
        print(np.linalg.eigvals(square[:50, :50]).shape, np.fft.fft(large).shape)
    """
    result = support.thawed([image, "-c", code], env=env)
    assert result.out == "True False False\n" * 2 + "False True (300, 300)\n(50,) (12000000,)\n", result


# ---- Ruby ----

JEMALLOC = [path for path in ("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib64/libjemalloc.so.2") if pathlib.Path(path).exists()]

RUBY_HOLDER = """
HELD = Array.new(200_000) { |n| "string number #{n}" }
BIG = 'x' * 3_000_000
TABLE = HELD.each_with_index.to_h
HALF = Array.new(100_000) { 'y' * 500 }
HALF.clear
GC.start
"""

RUBY_WORK = """
BIG << ('z' * 9_000_000)
p BIG.size, BIG.count('x'), TABLE['string number 77']
10.times { Array.new(20_000) { |n| 'w' * (n % 3000) }.size }
GC.start
GC.compact if GC.respond_to?(:compact)
p HELD.each_with_index.all? { |s, n| s == "string number #{n}" }
threads = Array.new(20) { |n| Thread.new { Array.new(5_000) { 'q' * n }.join.size } }
p threads.sum(&:value)
p Array.new(1000) { "\\0" * 5000 }.all? { |s| s.count("\\0") == 5000 }
pid = fork { HELD << 'child'; GC.start; exit!(HELD.size == 200_001 ? 0 : 1) }
p Process.wait2(pid)[1].exitstatus
def down(n) = n.zero? ? 0 : 1 + down(n - 1)
p down(5_000)
begin; down(10_000_000); rescue SystemStackError => e; p e.class; end
p 'x' * 10
"""

RUBY_ANSWER = "12000000\n3000000\n77\ntrue\n950000\ntrue\n0\n5000\nSystemStackError\n\"xxxxxxxxxx\"\n"


@support.needs_ruby
@pytest.mark.parametrize("preload", ["glibc", *JEMALLOC])
def test_ruby_on_its_allocators(tmp_path, preload):
    (tmp_path / "holder.rb").write_text(RUBY_HOLDER)
    env = support.environment(**({} if preload == "glibc" else {"LD_PRELOAD": preload}))
    image = support.frozen(tmp_path / "app.img", [support.RUBY], "--preload", "./holder", env=env, cwd=tmp_path)
    result = support.thawed([image, "-e", "require './holder'\n" + RUBY_WORK], env=env, cwd=tmp_path)
    assert (result.out, result.status) == (RUBY_ANSWER, 0), result
    code = "puts File.read('/proc/self/maps').scan(/libjemalloc/).empty?, ENV['LD_PRELOAD'].inspect"
    loaded = support.thawed([image, "-e", code], env=env)
    assert loaded.out == ("true\nnil\n" if preload == "glibc" else f'false\n"{preload}"\n')


@support.needs_ruby
@pytest.mark.skipif(not JEMALLOC, reason="there is no libjemalloc2")
def test_an_image_on_jemalloc_falls_back_without_it(tmp_path):
    env = support.environment(LD_PRELOAD=JEMALLOC[0])
    image = support.frozen(tmp_path / "app.img", [support.RUBY], env=env)
    result = support.run([image, "-e", "p 1"])
    assert result.fell_back and "LD_PRELOAD" in result.err and result.out == "1\n", result


@pytest.mark.skipif(not JEMALLOC, reason="there is no libjemalloc2")
def test_callocs_of_jemalloc(tmp_path):
    """jemalloc drops pages with MADV_DONTNEED and then trusts them to be zeros."""
    source = pathlib.Path(__file__).with_name("memory.c").read_text().replace("malloc_trim(0)", "(void)0")
    support.cc(source, tmp_path / "libmemory.so", "-shared", "-fPIC")
    (tmp_path / "holder.py").write_text(HOLDER)
    settings = "dirty_decay_ms:0,muzzy_decay_ms:0"
    env = support.environment(
        PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1", PYTHONMALLOC="malloc", LD_PRELOAD=JEMALLOC[0], MALLOC_CONF=settings
    )
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "holder", env=env)
    calls = "library.dirty_callocs(), library.huge_calloc(50_000_000), library.kept(), library.drop(), library.grow()"
    code = f"from holder import *; print({calls})"
    assert support.thawed([image, "-c", code], env=env).out == "0 0 0 0 0\n"


def test_small_blocks_of_a_start_lie_side_by_side(tmp_path):
    """A boot leaves free blocks all over the heap; a start that took these would have to bring in a page for each."""
    (tmp_path / "scattered.py").write_text("""if True:
        import ctypes, random
        libc = ctypes.CDLL(None)
        libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
        for block in random.Random(1).sample([libc.malloc(200) for _ in range(20_000)], 2000):
            libc.free(block)
    """)
    env = support.environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    code = "from scattered import libc; blocks = [libc.malloc(200) for _ in range(4)]; print(max(blocks) - min(blocks))"
    image = support.frozen(tmp_path / "app.img", [support.PYTHON], "--preload", "scattered", env=env)
    scattered = int(support.run([support.PYTHON, "-c", code], env=env).out)
    together = int(support.thawed([image, "-c", code], env=env).out)
    assert together < 64 * 1024 < 256 * 1024 < scattered


# Blocks of work come and go; how many pages each round brings in.
ROUNDS = {
    "python": """if True:
        def faults(): return int(open("/proc/self/stat").read().rpartition(") ")[2].split()[7])
        def work(): return bytearray(b"a" * 1_300_000), bytearray(b"b" * 1_300_000)
        for _ in range(4): work()
        before = faults()
        for _ in range(20): work()
        print((faults() - before) // 20)
    """,
    "ruby": """
        def faults = File.read("/proc/self/stat").rpartition(") ").last.split[7].to_i
        def work = ["a" * 1_300_000, "b" * 1_300_000].each(&:clear)
        4.times { work }
        before = faults
        20.times { work }
        puts((faults - before) / 20)
    """,
}


@pytest.mark.parametrize("language", ["python", pytest.param("ruby", marks=support.needs_ruby)])
def test_memory_for_the_next_round_of_work_is_kept(language, tmp_path):
    """malloc learns how large blocks are that come and go; as long as it has not, it gives each back to the kernel."""
    program, option = (support.PYTHON, "-c") if language == "python" else (support.RUBY, "-e")
    env = support.environment()
    image = support.frozen(tmp_path / "app.img", [program], env=env)
    assert int(support.thawed([image, option, ROUNDS[language]], env=env).out) < 64


# Frozen strings with gaps between them, and what new ones write to of the image (KiB), if it takes as much room as the gaps give.
GAPS = """
strings = Array.new(100_000) { |number| "kept #{number}" }
OBJECTS = Array.new(2000) { Object.new }
SHOWN = OBJECTS.map(&:to_s)
KEPT = strings.reject.with_index { |_, number| number % 10 == 5 }
def anonymous = File.read("/proc/self/smaps_rollup")[/^Anonymous: +([0-9]+)/, 1].to_i
class Server
  def run
    before = anonymous
    GC.disable
    all = Array.new(24_000) { +"new" }
    p anonymous - before, OBJECTS.map(&:to_s) == SHOWN, all.size
  end
end
Server.new.run
"""


@support.needs_ruby
def test_new_objects_of_a_server_in_ruby_lie_side_by_side(tmp_path):
    """Gaps that the boot of a server has left in the heap are closed; only what extensions may know by its address stays where it is."""
    (tmp_path / "gaps.rb").write_text(GAPS)
    image = support.frozen(tmp_path / "app.img", [support.RUBY, "gaps.rb"], "--at", "Server#run", cwd=tmp_path)
    written, is_there, _ = support.thawed([image], cwd=tmp_path).out.split()
    assert int(written) < 1500 and is_there == "true", written
