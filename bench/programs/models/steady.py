"""What the programs in this folder share: each works once and prints its result, or, with `steady`, how often it can in a second.

That is told from the median of all rounds, since whatever else the machine does falls upon some of them."""

import statistics
import sys
import time

SECONDS = 3


def run(work):
    """Calls `work`, which returns something to print; with the argument `steady` again and again, after it has become warm."""
    if sys.argv[1:] != ["steady"]:
        print(work())
        return
    work()
    rounds, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        began = time.perf_counter()
        work()
        rounds.append(time.perf_counter() - began)
    print(1 / statistics.median(rounds))
