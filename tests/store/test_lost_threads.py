"""The store makes no image of a program whose threads its thaws would be without; what starts them again, or has ended, does no harm."""

import pytest
from common import support
from common.languages import both

from store.stores import Store, is_thawed

pytestmark = pytest.mark.sample(4, whole=True)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


# A thread of a file that the main part loads does the work of the program.
WORKER = {
    "python": "import queue, threading\nasked, done = queue.Queue(), queue.Queue()\n"
    "def work():\n    while True:\n        done.put(asked.get() + 1)\n"
    "threading.Thread(target=work, daemon=True).start()\n",
    "ruby": "ASKED, DONE = Queue.new, Queue.new\nThread.new { loop { DONE << (ASKED.pop + 1) } }\n",
}
MAIN = {
    "python": "import sys, worker\nworker.asked.put(int(sys.argv[1]))\nprint(worker.done.get(timeout=9))\n",
    "ruby": 'require_relative "worker"\nASKED << ARGV[0].to_i\nputs DONE.pop(true) rescue (Thread.pass; retry)\n',
}


@both
def test_a_worker_thread_is_there_in_each_start(store, language):
    (store.folder / f"worker{language.ending}").write_text(WORKER[language.name])
    script = store.folder / f"main{language.ending}"
    script.write_text(MAIN[language.name])
    for number in range(3):
        result = store.run(language.program, script, str(number))
        assert (result.status, result.out) == (0, f"{number + 1}\n"), result
        store.wait()


AT_A_FREEZE_POINT = {
    "python": "import snapboot, threading, time\nthreading.Thread(target=lambda: time.sleep(99), daemon=True).start()\n"
    "snapboot.freeze_point()\nprint(threading.active_count())\n",
    "ruby": 'require "snapboot"\nThread.new { sleep }\nSnapboot.freeze_point\nputs Thread.list.size\n',
}


@both
def test_no_image_is_made_without_a_thread(store, language):
    script = store.folder / f"main{language.ending}"
    script.write_text(AT_A_FREEZE_POINT[language.name])
    paths = {"python": ("PYTHONPATH", support.ROOT / "python"), "ruby": ("RUBYLIB", support.ROOT / "ruby/lib")}
    name, path = paths[language.name]
    store.env[name] = str(path)
    for _ in range(2):
        assert store.run(language.program, script).out == "2\n"
        row, = store.wait()
        assert row["state"] == "refused" and "thread" in row["why"][0].lower() and script.name in row["why"][0], row


@both
def test_a_thread_that_is_started_again_or_has_ended_does_not_matter(store, language):
    script = store.folder / f"main{language.ending}"
    script.write_text({
        "python": "import snapboot, os, threading, time\n"
        "def start():\n    threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
        "start(); os.register_at_fork(after_in_child=start)\n"
        "ended = threading.Thread(target=print); ended.start(); ended.join()\n"
        "snapboot.freeze_point()\nprint(threading.active_count())\n",
        "ruby": 'require "snapboot"\nThread.new { sleep }.thread_variable_set(:fork_safe, true)\nThread.new { 1 }.join\n'
        "Snapboot.freeze_point\nputs 1\n",
    }[language.name])
    paths = {"python": ("PYTHONPATH", support.ROOT / "python"), "ruby": ("RUBYLIB", support.ROOT / "ruby/lib")}
    name, path = paths[language.name]
    store.env[name] = str(path)
    first = store.run(language.program, script)
    row, = store.wait()
    assert row["state"] == "fresh", row
    thawed = store.run(language.program, script)
    assert is_thawed(thawed) and thawed.out.split()[-1:] == first.out.split()[-1:], (first, thawed)
