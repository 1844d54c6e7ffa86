#!/usr/bin/env python3
"""Measures machines that share images through an S3 store (moto), and reckons with a thousand of them (fleet.toml, fleet_model.py).

    bench/fleet.py                into bench/results/<machine>-fleet-<date>.json, and docs/fleets.md
    bench/fleet.py --machines 5   start so many at once; stored nowhere
    bench/fleet.py --write        write docs/fleets.md from the newest results

Each machine is a store of its own on this one; all have the same files. The store's log tells how many requests there were, and the
machines' own counts how many bytes. It is an error if both disagree about the requests.
"""

import argparse
import asyncio
import concurrent.futures
import contextlib
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools"), str(ROOT / "tests")]

import fleet_model  # noqa: E402
import marked  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402
import run as harness  # noqa: E402
import workloads  # noqa: E402
from common import support  # noqa: E402
from common.languages import PYTHON  # noqa: E402
from common.servers import free_port  # noqa: E402
from fleet_model import Load  # noqa: E402
from store.fleets import Fleet, look_again, s3  # noqa: E402

PLAN = tomllib.loads((ROOT / "bench/fleet.toml").read_text())
PAGE = ROOT / "docs/fleets.md"
# A request in the log of moto's server.
REQUEST = re.compile(r"(?P<method>[A-Z]+) (?P<path>/\S+) HTTP/")
LISTS = "list-type="
AT_ONCE = 2


class Program(Fleet):
    """Machines that have the same virtual environment, which lies at the same path on each."""

    def __init__(self, top: pathlib.Path):
        super().__init__(top, PYTHON)
        self.venv = self.files / "venv"
        subprocess.run([sys.executable, "-m", "venv", self.venv], check=True)
        self.install(*PLAN["program"]["requirements"])
        self.words = [self.venv / "bin" / PLAN["program"]["command"], *PLAN["program"]["arguments"]]

    def install(self, *requirements: str) -> None:
        subprocess.run([self.venv / "bin/python", "-m", "pip", "install", "-q", *requirements], check=True)

    def run(self, machine) -> None:
        """A start on a machine, and what the start has a builder do."""
        result = machine.run(*self.words, cwd=self.files, log=False)
        assert result.status == 0, result
        machine.wait()


class Bucket:
    """An empty S3 store, its machines and what was asked of it."""

    def __init__(self, program: Program, url: str, variables: dict[str, str], log: pathlib.Path):
        self.program, self.log, self.settings = program, log, {"url": url, **variables}
        self.machines = []
        self.before = Load()

    def machine(self):
        """A new machine with an empty store."""
        # All buckets' machines lie in one folder.
        name = f"{self.log.stem}-{len(self.machines)}"
        self.machines.append(self.program.machine(name, **self.settings))
        return self.machines[-1]

    def asked(self) -> Load:
        """What was asked of the store since the last call."""
        _, *requests = filter(None, map(REQUEST.search, self.log.read_text().splitlines()))  # the first has made the bucket
        writes = sum(match["method"] in ("PUT", "POST") or LISTS in match["path"] for match in requests)
        counts = [machine_counts(machine) for machine in self.machines]
        given, fetched = (sum(count[f"bytes_{what}"] for count in counts) for what in ("given", "fetched"))
        counted = sum(count["requests"] for count in counts)
        if counted != len(requests):
            listed = "\n".join(" ".join(match.groups()) for match in requests)
            raise SystemExit(f"the machines count {counted} requests, and the store has {len(requests)}:\n{listed}")
        now = Load(writes, len(requests) - writes, given, fetched)
        difference, self.before = now - self.before, now
        return difference


def machine_counts(machine) -> dict:
    """What a machine counts of the remote store, as a collector of metrics reads it."""
    text = machine.snapboot("list", "--openmetrics", log=False).out
    names = {
        "requests": "snapboot_remote_requests_total",
        "bytes_given": 'snapboot_remote_traffic_bytes_total{direction="given"}',
        "bytes_fetched": 'snapboot_remote_traffic_bytes_total{direction="fetched"}',
    }
    found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(found[sample]) for name, sample in names.items()}


@contextlib.contextmanager
def bucket(program: Program, name: str):
    """An empty bucket of this name."""
    log = program.top / f"{name}.log"
    with s3(program, log=log) as (url, variables):
        yield Bucket(program, url, variables, log)


def measured_steps(program: Program) -> dict[str, Load]:
    """What each step costs: one machine after the other takes it."""
    steps = {}
    with bucket(program, "steps") as store:
        one, other, third = (store.machine() for _ in range(3))
        # The first that takes an image marks it as used; what others ask for counts.
        for kind in ("", " next"):
            for name, machine in (("makes", one), ("marks", other), ("takes", third)):
                program.run(machine)
                steps[name + kind] = store.asked()
            program.install(PLAN["program"]["next"])
        program.install(*PLAN["program"]["requirements"])
        program.run(store.machine())
        steps["looks"] = store.asked() - steps["takes"]
    with bucket(program, "leaves") as store:
        start_at_once(program, [store.machine() for _ in range(3)])
        steps["leaves"] = (store.asked() - steps["makes"]) * 0.5
    return steps


def start_at_once(program: Program, machines: list) -> None:
    """Starts the program on all machines, as many at a time as there is room for, and waits for their builders."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda machine: machine.run(*program.words, cwd=program.files, log=False), machines))
    for machine in machines:
        machine.wait()


def compared(program: Program, steps: dict[str, Load], count: int) -> dict:
    """What so many machines ask for, beside what the model says."""
    phases = {}

    def add(name: str, reckoned: Load) -> None:
        phases[name] = {"reckoned": dataclasses.asdict(reckoned), "measured": dataclasses.asdict(store.asked())}

    with bucket(program, "many") as store:
        machines = [store.machine() for _ in range(count)]
        start_at_once(program, machines)
        add("an empty remote store", fleet_model.of_empty(steps, count))
        left = [machine for machine in machines if not list((machine.place / "cache").glob("*/*.img"))]
        for machine in left:
            look_again(machine)
            program.run(machine)
        add("the second look", fleet_model.of_second_look(steps, len(left) + 1))
        program.install(PLAN["program"]["next"])
        for machine in machines:
            program.run(machine)
        add("the next version", fleet_model.of_next(steps, count))
    return {"machines": count, "left": len(left), "phases": phases}


@contextlib.contextmanager
def late(url: str, milliseconds: float):
    """A URL through which a store at `endpoint=http://127.0.0.1:PORT` answers so much later."""
    port, own = int(re.search(r"127\.0\.0\.1:(\d+)", url)[1]), free_port()
    loop = asyncio.new_event_loop()

    async def pass_on(reader, writer, delay):
        with contextlib.suppress(ConnectionError):
            while content := await reader.read(1 << 16):
                await asyncio.sleep(delay)
                writer.write(content)
                await writer.drain()
        writer.close()

    async def serve(reader, writer):
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pass_on(reader, inner_writer, 0), pass_on(inner_reader, writer, milliseconds / 1000))

    loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", own))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield url.replace(f":{port}", f":{own}")
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def second_machines(fleet: Fleet, rounds: int) -> dict:
    """Starts of machines with empty stores, where another one has given the images; beside ordinary ones."""
    found = {}
    for name, given in PLAN["second"]["programs"].items():
        try:
            values = workloads.prepare(given["workload"])
        except workloads.Unavailable as reason:
            print(f"{name}: {reason}")
            continue
        words = [word.format(**values) for word in given["command"]]
        found[name] = {"cases": second_machine(fleet, words, given.get("cwd", "{dir}").format(**values), given.get("env", {}), rounds)}
    return found


def second_machine(fleet: Fleet, words: list[str], folder: str, env: dict[str, str], rounds: int) -> dict:
    """The same of one program."""
    argv = [shutil.which(words[0]) or words[0], *words[1:]]
    latency = PLAN["second"]["latency"]
    with s3(fleet) as (direct, variables), late(direct, latency) as url, contextlib.chdir(folder):

        def machine():
            place = pathlib.Path(tempfile.mkdtemp(dir=fleet.top))
            return fleet.again(place.name, url, **variables, **env, SNAPBOOT_ARCHIVE=str(place / "archive"))

        first = machine()
        assert first.run(*argv, cwd=folder, log=False).status == 0
        first.wait()
        samples = {"ordinary": [], "first": [], "second": []}
        started = [str(support.SNAPBOOT), "run", "--", *argv]
        for number in range(-1, rounds):
            new = machine()
            taken = {"ordinary": measure.time_once(argv, new.env), "first": measure.time_once(started, new.env)}
            new.wait()
            taken["second"] = measure.time_once(started, new.env)
            # A program of a checkout has an image of its libraries, too.
            rows = new.wait()
            hits = sum(row["remote"]["hits"] for row in rows if row["remote"])
            if not hits or sum(row["thawed"] for row in rows) != 1:
                raise SystemExit(f"the second start should have thawed what was taken: {rows}")
            if number >= 0:
                for case, sample in taken.items():
                    samples[case].append(sample)
            shutil.rmtree(new.folder)
    return {case: measure.summed_up(values) for case, values in samples.items()}


def write_page() -> None:
    """Write the tables of docs/fleets.md from the newest results."""
    result = report.newest_result("fleet")
    if result:
        PAGE.write_text(marked.filled_in(PAGE.read_text(), fleet_model.page(result, PLAN), tool="bench/fleet.py"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, help=f"start so many at once, and store nothing (default: {PLAN['check']['machines']})")
    parser.add_argument("--rounds", type=int, default=PLAN["second"]["rounds"], help="starts of second machines (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="write the page from the newest results")
    options = parser.parse_args()
    if options.write:
        return write_page()
    result = harness.new_result("fleet")
    with tempfile.TemporaryDirectory(prefix="snapboot-fleet-") as folder:
        program = Program(pathlib.Path(folder))
        result["program"] = " with ".join(PLAN["program"]["requirements"])
        steps = measured_steps(program)
        result["steps"] = {name: dataclasses.asdict(load) for name, load in steps.items()}
        result["checked"] = compared(program, steps, options.machines or PLAN["check"]["machines"])
        result["second"] = second_machines(program, options.rounds)
    if options.machines:
        print(json.dumps(result, indent=1), fleet_model.page(result, PLAN), sep="\n")
    else:
        harness.store(result, harness.result_path(result))
        write_page()


if __name__ == "__main__":
    main()
