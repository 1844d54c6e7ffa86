#!/usr/bin/env python3
"""Starts a program at once on many machines whose remote store is empty: how many of them make an image, and whether a start waits.

Each machine is a store of its own. Prints JSON: times of starts in milliseconds, and what became of the images. `--storage s3` needs the
workload `storages`. Decision 96 has the figures.
"""

import argparse
import concurrent.futures
import json
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from common.languages import PYTHON  # noqa: E402
from store.fleets import Fleet, directory, look_again, made, s3  # noqa: E402

STORAGES = {"directory": directory, "s3": s3}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=50)
    parser.add_argument("--storage", choices=STORAGES, default="directory")
    given = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp(prefix="snapboot-fleet-"))
    try:
        print(json.dumps(measured(Fleet(top, PYTHON), STORAGES[given.storage], given.machines), indent=1))
    finally:
        shutil.rmtree(top, ignore_errors=True)


def measured(fleet, storage, count):
    """What came of the starts of so many machines."""
    with storage(fleet) as (url, variables):
        machines = [fleet.machine(str(number), url=url, **variables) for number in range(count)]
        # Alternately, so that both kinds meet the same load.
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            starts = list(pool.map(lambda machine: (timed(fleet, machine, ["--no-freeze"]), timed(fleet, machine, [])), machines))
        for machine in machines:
            machine.wait()
        at_once = images(machines[0])
        left = [machine for machine in machines if not made(machine)]
        for machine in left:
            look_again(machine)
            fleet.start(machine)
            machine.wait()
        return {
            "machines": count,
            "start without images (ms)": summary([ordinary for ordinary, _ in starts]),
            "start that asks for one (ms)": summary([asking for _, asking in starts]),
            "images made": at_once,
            "machines that left it to another": len(left),
            "images made after their second look": images(machines[0]),
            "machines without an image then": sum(not made(machine) for machine in machines),
        }


def timed(fleet, machine, options):
    """How long a start takes (ms)."""
    begun = time.monotonic()
    result = machine.run(*fleet.words, "a", options=options, cwd=fleet.files, log=False)
    assert result.status == 0, result
    return (time.monotonic() - begun) * 1000


def summary(times):
    return {"median": round(statistics.median(times), 1), "maximum": round(max(times), 1)}


def images(machine):
    """How many images the remote store has: each machine that makes one gives it."""
    return len(json.loads(machine.snapboot("remote", "list", "--json", log=False).out))


if __name__ == "__main__":
    main()
