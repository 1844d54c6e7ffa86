"""What the programs in this folder share: each works once and prints its result, or, with `steady`, how often it can in a second."""

import sys
import time

SECONDS = 3


def run(work):
    """Calls `work`, which returns something to print; with the argument `steady` again and again, after it has become warm."""
    if sys.argv[1:] != ["steady"]:
        print(work())
        return
    work()
    times, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        work()
        times += 1
    print(times / (time.perf_counter() - began))
