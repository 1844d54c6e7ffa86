"""What a frozen process depends on the architecture for: signals, threads, forks, callbacks from C, fiber-like frames, clocks."""

import ctypes
import datetime
import json
import os
import signal
import subprocess
import sys
import threading
import time


def deep(depth):
    return 0 if depth == 0 else 1 + deep(depth - 1)


def main():
    print("arguments", sys.argv[1:], os.uname().machine)
    seen = []
    signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    os.kill(os.getpid(), signal.SIGUSR1)
    signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while len(seen) < 2:
        time.sleep(0.005)
    print("signals", seen)
    lock, total = threading.Lock(), []

    def add(number):
        with lock:
            total.append(sum(range(number)))

    threads = [threading.Thread(target=add, args=(1000 * number,)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print("threads", sorted(total))
    child = os.fork()
    if child == 0:
        os._exit(7)
    print("fork", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print("subprocess", subprocess.run(["uname", "-m"], capture_output=True, text=True).stdout)
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))(lambda a, b: a[0] - b[0])
    numbers = (ctypes.c_int * 5)(5, 3, 9, 1, 7)
    ctypes.CDLL(None).qsort(numbers, 5, 4, compare)
    print("callback", list(numbers))
    print("floats", json.dumps([0.1 + 0.2, 1e300 * 1e10, 2.0**0.5, round(2.675, 2)]))
    begun, now = time.monotonic(), time.time()
    print("clocks", begun > 0, now > 1e9, datetime.datetime.now().year > 2000, time.monotonic() >= begun)
    print("resolution", time.get_clock_info("monotonic").resolution)
    print("frames", deep(900))
    try:
        raise ValueError("raised")
    except ValueError as error:
        print("exception", error)
    child = subprocess.run([sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"])
    print("killed", child.returncode)


if __name__ == "__main__":
    main()
    sys.exit(3)
