"""The Rubies that the boot archive serves, and one boot of each: CRuby as a process, TruffleRuby and JRuby in a JVM that stays."""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

import pytest
from common.waiting import SECONDS, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import workloads  # noqa: E402

SETUP = ROOT / "ruby/lib/snapboot/setup.rb"
END = b"\0boot ended "  # what tools/jvm/Boots.java prints after each boot


@dataclasses.dataclass(frozen=True)
class Result:
    """How a boot ended."""

    status: int
    out: str
    err: str

    def __str__(self):
        return f"status {self.status}\n--- stdout\n{self.out}--- stderr\n{self.err}"


@dataclasses.dataclass(frozen=True)
class Kind:
    """A Ruby, and which back end of the boot archive it gets: native (crates/archive-ruby) or pure (plain Ruby)."""

    name: str
    back_end: str

    def __str__(self):
        return f"{self.name}-{self.back_end}"


KINDS = [Kind("cruby", "native"), Kind("cruby", "pure"), Kind("truffleruby", "pure"), Kind("jruby", "pure")]


def environment(**extra):
    """What every boot gets: nothing that acts on Ruby, and `extra`."""
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8", **extra}


class CRuby:
    """Each boot is a process."""

    def __init__(self):
        self.command = shutil.which("ruby")
        if self.command is None:
            pytest.skip("there is no ruby")

    def boot(self, directory, words, **variables):
        """Run `ruby WORDS` in `directory`."""
        return self.run([self.command], directory, words, variables)

    def boot_unprivileged(self, directory, words, **variables):
        """The same, and what a file's mode forbids is forbidden to root, too."""
        command = [self.command]
        if os.geteuid() == 0:
            command = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", *command]
        return self.run(command, directory, words, variables)

    def run(self, command, directory, words, variables):
        done = subprocess.run(
            [*command, *map(str, words)],
            cwd=directory,
            env=environment(**variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
        )
        return Result(done.returncode, *(text.decode("utf-8", "backslashreplace") for text in (done.stdout, done.stderr)))

    def close(self):
        """Nothing stays."""


class OnJvm:
    """Boots one after the other in one JVM, each with a Ruby of its own; to start a JVM for each would take most of the time."""

    def __init__(self, name):
        try:
            self.command = workloads.prepare(name)[name]
        except workloads.Unavailable as reason:
            pytest.skip(str(reason))
        self.folder = tempfile.TemporaryDirectory()
        self.errors = pathlib.Path(self.folder.name, "stderr")
        self.process = subprocess.Popen(
            [self.command, "--boots"],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=open(self.errors, "ab"),
        )

    def boot(self, directory, words, **variables):
        """Run WORDS in `directory`. Variables are set from inside, before anything else."""
        with tempfile.NamedTemporaryFile("w", suffix=".rb") as first:
            options = []
            if variables:
                first.writelines(f"ENV[{name!r}] = {value!r}\n" for name, value in variables.items())
                first.flush()
                options = ["-r", first.name]
            line = "\t".join(map(str, [directory, *options, *words]))
            began = self.errors.stat().st_size
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
            limit = threading.Timer(SECONDS, self.process.kill)
            limit.start()
            out = b""
            while END not in out:
                part = self.process.stdout.readline()
                if not part:
                    raise RuntimeError(f"the JVM ended, or a boot took longer than {SECONDS} s: {line}\n{out.decode()}")
                out += part
            limit.cancel()
            out, _, status = out.partition(END)
            wait_until(lambda: END in self.errors.read_bytes()[began:], f"the JVM did not mark the end of the errors of {line}")
            err = self.errors.read_bytes()[began:].partition(END)[0]
        return Result(int(status), out.decode("utf-8", "backslashreplace"), err.decode("utf-8", "backslashreplace"))

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(SECONDS)
        self.folder.cleanup()


class Rubies:
    """Every Ruby that a session has asked for, started once."""

    def __init__(self):
        self.started = {}

    def __call__(self, name):
        if name not in self.started:
            self.started[name] = CRuby() if name == "cruby" else OnJvm(name)
        return self.started[name]

    def close(self):
        for ruby in self.started.values():
            ruby.close()


def archive_options(kind, folder):
    """The words and variables that switch the boot archive on, with its file in `folder`."""
    variables = {"SNAPBOOT_ARCHIVE": str(folder / "boot.archive"), "SNAPBOOT_ARCHIVE_BACK_END": kind.back_end}
    return ["-r", SETUP], variables
