"""A thawed process that a signal ends has reported by then what it loaded, and the next image has it. The process notices nothing."""

import os
import signal

import pytest
from common import support
from common.languages import PYTHON
from common.servers import started
from common.waiting import SECONDS, wait_until

from store.stores import Store

pytestmark = pytest.mark.sample(2, whole=True)

# Loads more than a few modules behind its freeze point, and waits for a signal without a handler, as many workers do.
PROGRAM = """import sys, time
EARLY = set(sys.modules)

def serve():
    import csv, fractions, late, sched, zipapp
    print(*(name in EARLY for name in ("csv", "fractions", "late", "sched", "zipapp")), flush=True)
    {}

if __name__ == "__main__":
    serve()
"""
IDLE = "while True: time.sleep(0.02)"
# The handler raises while the loop expects it, children have one thread, a trace function sees the program alone, and there is no child.
BUSY = """import os, signal
    class Tick(Exception): pass
    seen, caught, ticks, expects = set(), 0, 0, False
    def tick(*_):
        nonlocal ticks, expects
        if expects:
            expects, ticks = False, ticks + 1
            raise Tick
    def trace(frame, event, _):
        seen.add(frame.f_code.co_filename)
    def step():
        nonlocal caught, expects
        try:
            expects = True
            while True: sum(range(50))
        except Tick:
            caught += 1
    signal.signal(signal.SIGALRM, tick)
    sys.settrace(trace)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    while True:
        step()
        if caught % 100 == 0:
            child = os.fork()
            if child == 0:
                os._exit(len(os.listdir("/proc/self/task")))
            while True:
                try:
                    _, status = os.waitpid(-1, 0)
                    break
                except Tick:
                    pass
            assert os.waitstatus_to_exitcode(status) == 1
            try: os.waitpid(-1, os.WNOHANG)
            except ChildProcessError: pass
            else: raise SystemExit("there is a child")
            assert ticks == caught and seen == {__file__}, (ticks, caught, seen)
            print("all is well", flush=True)
"""


@pytest.mark.parametrize("more", [IDLE, BUSY], ids=["idle", "busy"])
def test_what_a_signal_ends_has_reported(more, tmp_path):
    tmp_path.chmod(0o755)
    store, log = Store(tmp_path), tmp_path / "log"
    words = store.write_program(PYTHON, {"server.py": PROGRAM.format(more), "late.py": "VALUE = 1\n"})

    def serve(until=lambda: True, end=signal.SIGTERM):
        """One start, which a signal ends once `until` holds and the program has got on since. Returns the lines that it printed."""
        with started([support.SNAPBOOT, "run", "--", *words], tmp_path, store.env, log) as process:
            wait_until(lambda: "\n" in log.read_text(), log.read_text)
            wait_until(lambda: process.poll() is not None or until(), lambda: f"{log.read_text()} {store.list()}")
            lines = log.read_text().count("\n")
            wait_until(lambda: more is IDLE or process.poll() is not None or log.read_text().count("\n") > lines + 1, log.read_text)
            process.send_signal(end)
            assert process.wait(SECONDS) == -end, log.read_text()
        return log.read_text().splitlines()

    def learnt():
        (row,) = store.wait()
        return "late" in store.snapboot("inspect", row["path"], log=False).out

    assert serve()[0] == "False False False False False"
    (row,) = store.wait()
    profile = os.path.join(os.path.dirname(row["path"]), "profile")
    # What was written last is there at once: it is one call.
    assert serve(lambda: os.path.exists(profile) and os.path.getsize(profile))[0] == "False False False False False"
    assert serve(end=signal.SIGKILL)[0] == "False False False False False"
    assert learnt()
    assert serve()[0] == "True True True True True"
    assert not store.is_busy()
