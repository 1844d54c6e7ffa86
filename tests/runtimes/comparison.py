"""Runs files of tests the ordinary way and thawed, two at a time, and tells which outcomes differ."""

import concurrent.futures
import dataclasses
import fnmatch
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib

from common.support import bound_to_variables

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SNAPBOOT = pathlib.Path(os.environ.get("SNAPBOOT", ROOT / "target/release/snapboot"))
sys.path.insert(0, str(ROOT / "tools"))

import workloads  # noqa: E402

WORKERS = 2
ATTEMPTS = 3  # a difference counts when it shows each time: some tests depend on the machine's load
SECONDS = 600  # only what hangs takes so long, whatever else the machine does
ALL = os.environ.get("RUNTIME_TESTS") == "all"  # make test RUNTIME_TESTS=all
# The worst one counts where a test has several. A test that is only `started` took its process with it, or hung.
OUTCOMES = ("ok", "skip", "FAIL", "ERROR", "started")


def environment(**extra):
    """What every program here gets; a fallback says why it is one."""
    return workloads.clean_environment(SNAPBOOT_LOG="1", **extra)


def freeze(image, command, preload=(), cwd=None, env=None, options=()):
    """Writes an image and returns its path. Fails the test with what the freeze said."""
    options = [*bound_to_variables(command[0]), *options, *(["--preload", ",".join(preload)] if preload else [])]
    words = [str(word) for word in (SNAPBOOT, "freeze", "-o", image, *options, "--", *command)]
    done = subprocess.run(
        words,
        cwd=cwd,
        env=env or environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout
    return str(image)


@dataclasses.dataclass
class Run:
    """How the tests of one file went. exe: what the process was an instance of."""

    exe: str
    outcomes: dict
    ended: str
    said: str


def run(argv, seconds=SECONDS):
    """Runs `argv` in a new directory, with RECORD in it replaced by the record's path. Returns a Run."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="runtimes-"))
    try:
        record, log, cwd = folder / "record", folder / "log", folder / "cwd"
        cwd.mkdir()
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [str(record) if word == "RECORD" else word for word in argv],
                cwd=cwd,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                status = process.wait(seconds)
                ended = f"status {status}"
            except subprocess.TimeoutExpired:
                ended = f"stopped after {seconds} s"
            finally:
                with_its_children(process)
        exe, outcomes = read(record)
        return Run(exe, outcomes, ended, log.read_text(errors="replace"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def with_its_children(process):
    """Ends whatever a test left behind in its session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def read(record):
    """The process' executable and the outcomes in a record that cpython/runner.py describes."""
    lines = record.read_text().splitlines() if record.exists() else []
    entries = [json.loads(line) for line in lines]
    outcomes, ended = {}, set()
    for name, outcome in entries[1:]:
        if outcome == "started":
            ended.discard(name)
            outcomes.setdefault(name, "started")
        elif name in ended:
            outcomes[name] = max(outcomes[name], outcome, key=OUTCOMES.index)
        else:
            ended.add(name)
            outcomes[name] = outcome
    return (entries[0][0] if entries else "nothing"), outcomes


@dataclasses.dataclass
class Comparison:
    """What came of running one file both ways: the ordinary outcomes, and the differences, one line each."""

    outcomes: dict
    differences: list
    said: str


def compare(ordinary, images, arguments, accepted=(), seconds=SECONDS):
    """Runs the interpreter `ordinary` and each of the images of it with the same arguments.

    accepted: patterns of test ids whose outcomes may differ. Fails the test when an image fell back.
    """
    remaining = None
    for _ in range(ATTEMPTS):
        first, found, said = run([ordinary, *arguments], seconds), {}, ""
        for image in images:
            thawed = run([image, *arguments], seconds)
            assert thawed.exe == image, f"not thawed, but run by {thawed.exe}:\n{thawed.said[:2000]}"
            found |= {(name, image): pair for name, pair in differences(first, thawed, accepted).items()}
            said += thawed.said
        remaining = found if remaining is None else {key: value for key, value in found.items() if key in remaining}
        if not remaining:
            break
    lines = [f"{name}: ordinary {was}, thawed from {image} {became}" for (name, image), (was, became) in sorted(remaining.items())]
    return Comparison(first.outcomes, lines, said)


def differences(ordinary, thawed, accepted):
    """What differs: test id, or `the process`, -> what it was and what it became."""
    found = {}
    for name in ordinary.outcomes.keys() | thawed.outcomes.keys():
        outcomes = tuple(side.outcomes.get(name, "nothing") for side in (ordinary, thawed))
        if outcomes[0] != outcomes[1] and not any(fnmatch.fnmatchcase(name, pattern) for pattern in accepted):
            found[name] = outcomes
    if ordinary.ended != thawed.ended:
        found["the process"] = (ordinary.ended, thawed.ended)
    return found


class Images:
    """Images made once and on demand, from any thread."""

    def __init__(self, folder):
        self.folder = folder
        self.lock = threading.Lock()
        self.made = {}

    def get(self, name, command, preload=()):
        """The image of that name; written when it is first asked for."""
        with self.lock:
            lock = self.made.setdefault(name, threading.Lock())
        with lock:
            image = self.folder / f"{name}.img"
            return str(image) if image.exists() else freeze(image, command, preload)


class Workers:
    """Runs all comparisons of a session ahead of the tests that ask for them, WORKERS at a time."""

    def __init__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(WORKERS)
        self.futures = {}

    def submit(self, key, function, *arguments):
        self.futures[key] = self.pool.submit(function, *arguments)

    def result(self, key):
        """What the function of `key` returned; raises what it raised."""
        return self.futures[key].result()

    def close(self):
        self.pool.shutdown(cancel_futures=True)


def table(path):
    """A TOML file next to this one."""
    return tomllib.loads((HERE / path).read_text())
