"""podman as tests and measurements use it: with a storage of its own, and with the options that a container needs to start here."""

import itertools
import os
import pathlib
import shutil
import subprocess

from workloads import Unavailable

SECONDS = 1800  # only what hangs takes so long
# podman may itself run in a container: what it asks for by default can be more than is permitted there.
RUNTIMES = (["--runtime", "runc"], ["--runtime", "crun"], [])
LIMITS = ([], ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"])


class Podman:
    """podman, with a storage below the folder `top`."""

    def __init__(self, top: os.PathLike, runtime: list[str] = RUNTIMES[0], limits: list[str] = LIMITS[0]):
        self.top, self.runtime, self.limits = pathlib.Path(top), runtime, limits

    def words(self, *words) -> list[str]:
        """The command line."""
        places = ["--root", f"{self.top}/storage", "--runroot", f"{self.top}/run", "--cgroup-manager", "cgroupfs"]
        return ["podman", *places, *self.runtime, *map(str, words)]

    def start_words(self, *words, network: str = "none") -> list[str]:
        """The command line that starts a container, which is removed when it ends."""
        return self.words("run", "--rm", f"--network={network}", *self.limits, *words)

    def __call__(self, *words, **options) -> subprocess.CompletedProcess:
        return self._run(self.words(*words), **options)

    def must(self, *words, **options) -> str:
        """What podman printed; it has to succeed."""
        return _succeeded(self(*words, **options))

    def start(self, *words, **options) -> str:
        """What a container printed; it has to succeed."""
        return _succeeded(self.try_start(*words, **options))

    def try_start(self, *words, network: str = "none", **options) -> subprocess.CompletedProcess:
        """Start a container, by default without a network."""
        return self._run(self.start_words(*words, network=network), **options)

    def build(self, text: str, tag: str, context: os.PathLike, *options) -> str:
        """Build a container from the text of a Dockerfile. Returns what podman printed."""
        return self.must("build", "-q", "--network=none", "-t", tag, *options, "-f", "-", context, input=text)

    def import_base(self, archive: os.PathLike, tag: str) -> None:
        """Import a root, and find the options with which a container starts. Raises Unavailable if none does."""
        done = self("import", "-q", archive, tag)
        for self.runtime, self.limits in itertools.product(RUNTIMES, LIMITS) if done.returncode == 0 else ():
            done = self.try_start(tag, "true")
            if done.returncode == 0:
                return
        raise Unavailable(f"podman starts no container: {done.stderr.strip()}")

    def remove(self) -> None:
        """Remove the storage and all containers in it. Nothing is there where podman could not be installed."""
        if shutil.which("podman"):
            self("rm", "--all", "--force")
            self("rmi", "--all", "--force")
        subprocess.run(["umount", f"{self.top}/storage/overlay"], capture_output=True)
        shutil.rmtree(self.top, ignore_errors=True)

    def _run(self, argv: list[str], **options) -> subprocess.CompletedProcess:
        return subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=SECONDS, **options)


def _succeeded(done: subprocess.CompletedProcess) -> str:
    assert done.returncode == 0, f"{done.args}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout
