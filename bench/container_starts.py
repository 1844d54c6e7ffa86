#!/usr/bin/env python3
"""Measures how long containers take to start, ordinary and thawed, as bench/containers.toml has it, and stores what it found.

    bench/container_starts.py                     all, into bench/results/<machine>-containers-<date>.json
    bench/container_starts.py -n 3 --only 'flask*'     some, quickly; stored only where -o says (an existing file is added to)

Containers are built from the recipes of docs/containers.md. A cold start comes after the kernel has dropped its page cache and podman has
started a container that does nothing. So the files of the container are cold and the engine is warm, as on a server.
"""

import argparse
import fnmatch
import functools
import json
import os
import pathlib
import platform
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]

import containers  # noqa: E402
import measure  # noqa: E402
import packages  # noqa: E402
import plans  # noqa: E402
import podman as engine  # noqa: E402
import run  # noqa: E402
import workloads  # noqa: E402
from architectures import ARCHITECTURES  # noqa: E402

BASE = "snapboot-base"
CACHE = pathlib.Path("/proc/sys/vm/drop_caches")
STRICT = "SNAPBOOT_ON_STALE=error"  # a start that does not thaw is an error
NAME = "measured"
NOBODY = 65534


class Bench:
    """podman with a storage of its own, and the containers that scenarios need; each is built when one first asks for it."""

    def __init__(self, top: str, wheel: pathlib.Path):
        self.podman = engine.Podman(top)
        self.podman.import_base(containers.prepare(), BASE)
        self.wheel = wheel
        self.built = run.once(self.build)
        self.root = run.once(self.mount)

    def build(self, name: str) -> str:
        """Build the container of that name."""
        with tempfile.TemporaryDirectory(prefix="snapboot-") as context:
            containers.build(self.podman, name, BASE, self.wheel, pathlib.Path(context))
        return name

    def mount(self, name: str) -> str:
        """The root of a container, where it can be written to."""
        return self.podman.must("mount", self.podman.must("create", self.built(name)).strip()).strip()

    def measure(self, scenario: dict, rounds: int) -> dict:
        """Measure a scenario. Returns its entry in the results: figures by case, or why there are none."""
        entry: dict = {"kind": scenario.get("kind", "time"), "cases": {}}
        try:
            self.built(scenario["container"])
            takers = {case: functools.partial(self.sample, scenario, words) for case, words in scenario["cases"].items()}
            if entry["kind"] == "time":
                entry["prints"] = run.same_output({case: self.printed(scenario, words) for case, words in scenario["cases"].items()})
            samples = measure.interleaved(takers, rounds, warmup=1)
            entry["cases"] = {case: measure.summed_up(series) for case, series in samples.items()}
        except (AssertionError, OSError, measure.MeasureError, workloads.Unavailable) as reason:
            entry["skipped"] = run.text_of(reason)
        return entry

    def words(self, scenario: dict, words: list[str], port: int = 0) -> list[str]:
        """The command line of a case."""
        words = [word.replace("{port}", str(port)) for word in words]
        if not scenario.get("root"):
            return self.podman.start_words("--name", NAME, "-e", STRICT, *words, network="host")
        root = self.root(scenario["container"])
        place = [f"--root={root}", "--wd=/srv" if os.path.isdir(f"{root}/srv") else "--wd=/"]
        ids = [f"--setuid={NOBODY}", f"--setgid={NOBODY}"]
        spaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *ids, *place]
        return ["env", "-i", "PATH=/usr/bin:/bin", "HOME=/", STRICT, *spaces, *words]

    def printed(self, scenario: dict, words: list[str]) -> str:
        """What a case prints."""
        done = subprocess.run(self.words(scenario, words), input=scenario.get("input", ""), capture_output=True, text=True)
        if done.returncode != 0:
            raise measure.MeasureError(f"`{measure.shown(words)}` ended with {done.returncode}: {done.stderr[-400:]}")
        return done.stdout

    def sample(self, scenario: dict, words: list[str]) -> float:
        """Milliseconds of one start."""
        if scenario.get("cold"):
            self.cool()
        if scenario.get("kind") == "response":
            return self.response(scenario, words)
        began = time.monotonic_ns()
        self.printed(scenario, words)
        return (time.monotonic_ns() - began) / 1e6

    def cool(self) -> None:
        """Empty the page cache, then warm what starts a container."""
        os.sync()
        CACHE.write_text("3")
        self.podman.must("run", "--rm", "--network=host", *self.podman.limits, BASE, "true")
        subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], check=True)

    def response(self, scenario: dict, words: list[str]) -> float:
        """Milliseconds from just before a server's container is started until its first answer."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        argv = self.words(scenario, words, port)
        with tempfile.TemporaryFile("w+") as log:
            began = time.monotonic_ns()
            server = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                wait_for(lambda: measure.answers(port), server, log)
                return (time.monotonic_ns() - began) / 1e6
            finally:
                if scenario.get("root"):
                    server.kill()
                else:
                    self.podman("rm", "--force", "--time", "10", NAME)
                server.wait(measure.LIMIT_SECONDS)


def wait_for(answers: Callable[[], bool], server: subprocess.Popen, log) -> None:
    """Wait until a server answers. Raises MeasureError if it ends before that."""
    began = time.monotonic()
    while not answers():
        if server.poll() is not None or time.monotonic() - began > measure.LIMIT_SECONDS:
            log.seek(0)
            raise measure.MeasureError(f"`{measure.shown(server.args)}` did not answer: {log.read()[-400:]}")
        time.sleep(0.0005)


def built_wheel() -> pathlib.Path:
    """The wheel of this build."""
    packages.make(["wheel"], ARCHITECTURES[platform.machine()], packages.PACKAGES)
    return max(packages.PACKAGES.glob(f"*_{platform.machine()}.whl"), key=lambda path: path.stat().st_mtime)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=9, metavar="N", help="samples of each case (default 9)")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="scenarios by name; may be repeated")
    parser.add_argument("--wheel", type=pathlib.Path, metavar="FILE", help="the wheel to measure (default: of this build)")
    parser.add_argument("-o", type=pathlib.Path, metavar="FILE", help="where to store")
    options = parser.parse_args()
    plan = plans.read(plans.CONTAINERS)
    wanted = [name for name in plan["scenario"] if any(fnmatch.fnmatch(name, p) for p in options.only or ["*"])]
    result = run.new_result("containers") | {"images": {}}
    top = tempfile.mkdtemp(prefix="podman-", dir=workloads.WORK)
    try:
        bench = Bench(top, options.wheel or built_wheel())
        for number, name in enumerate(wanted, 1):
            print(f"[{number}/{len(wanted)}] {name}: ", end="", flush=True)
            result["scenarios"][name] = bench.measure(plan["scenario"][name], options.n)
            print(run.spoken(result["scenarios"][name]), flush=True)
    except workloads.Unavailable as reason:
        sys.exit(f"containers cannot be measured here: {reason}")
    finally:
        engine.Podman(top).remove()
    if options.o and options.o.exists():
        result["scenarios"] = json.loads(options.o.read_text())["scenarios"] | result["scenarios"]
    path = options.o or (None if options.only else run.result_path(result))
    if path:
        run.store(result, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
