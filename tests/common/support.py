"""Freezes programs and runs images in an environment that no test machine has a say in."""

import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys

import pytest

from .waiting import SECONDS

ROOT = pathlib.Path(__file__).resolve().parents[2]
SNAPBOOT = pathlib.Path(os.environ.get("SNAPBOOT", ROOT / "target/release/snapboot"))
PYTHON = os.path.realpath(sys._base_executable)
RUBY = shutil.which("ruby")
IS_ROOT = os.geteuid() == 0
NOBODY = 65534
BOUND = {"python": ["--env", "PYTHONPATH"], "ruby": ["--env", "LANG"]}  # by the beginning of an interpreter's name

# Code of a Python module that no image can have, which only the freezer sees.
MAPPED_MEMFD = "import mmap, os\nfd = os.memfd_create('x')\nos.ftruncate(fd, 4096)\nSHARED = mmap.mmap(fd, 4096)\nos.close(fd)\n"

needs_ruby = pytest.mark.skipif(RUBY is None, reason="there is no ruby")
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root may do this")


def environment(**extra):
    """What every program under test gets, and `extra`; a value of None leaves a variable out. Starts are counted nowhere,
    and nothing is made in the background."""
    home = os.environ.get("HOME", "/")
    all = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8", "SNAPBOOT_STATE": "", "SNAPBOOT_STORE": "off", **extra}
    return {name: value for name, value in all.items() if value is not None}


# What a freeze that takes more than 20 seconds, as on a busy machine, shows of its progress.
PROGRESS = re.compile(r"^snapboot: .* \(\d+ s so far\)\n", re.MULTILINE)


class Result:
    """How a process ended, and what it printed, without the progress of a slow freeze."""

    def __init__(self, done):
        self.status = done.returncode
        self.out = done.stdout.decode("utf-8", "backslashreplace") if done.stdout is not None else ""
        err = done.stderr.decode("utf-8", "backslashreplace") if done.stderr is not None else ""
        self.err = PROGRESS.sub("", err)

    @property
    def fell_back(self):
        """Whether the launcher said that it started the original command (run with log=True)."""
        return "starting the ordinary way" in self.err

    def __repr__(self):
        return f"status {self.status}\n--- stdout\n{self.out}--- stderr\n{self.err}"


def run(argv, env=None, log=True, input=b"", **options):
    """Run argv and wait. Descriptors above 2 are closed. `log` makes the launcher say why an image fell back."""
    env = environment() if env is None else env
    if log:
        env = {**env, "SNAPBOOT_LOG": "1"}
    words = [os.fspath(word) for word in argv]
    if "stdin" not in options:
        options["input"] = input
    done = subprocess.run(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS, **options
    )
    return Result(done)


def bound_to_variables(command):
    """The options by which an image serves one locale (of Ruby) or search path (of Python) only, which halves the time of its freeze."""
    name = pathlib.Path(command).name
    return next((options for language, options in BOUND.items() if name.startswith(language)), [*BOUND["python"], *BOUND["ruby"]])


def freeze(image, command, *options, env=None, serves_others=False, **more):
    """Run `snapboot freeze`. Returns its Result.

    serves_others: whether the image is to serve other locales (of Ruby) and search paths (of Python), too, which takes twice as long.
    """
    options = [*([] if serves_others else bound_to_variables(command[0])), *options]
    return run([SNAPBOOT, "freeze", "-o", image, *options, "--", *command], env=env, log=False, **more)


def frozen(image, command, *options, **more):
    """Freeze, and fail the test when that does not work. The rest as for `freeze`. Returns the image's path."""
    result = freeze(image, command, *options, **more)
    assert result.status == 0, result
    return image


def thawed(argv, **options):
    """Run an image that must not fall back. Returns its Result, whose `err` is empty."""
    result = run(argv, **options)
    assert "snapboot:" not in result.err, result
    return result


def no_signal(result):
    """Fail the test when the process was killed by a signal, or ended with the status of a shell that saw one."""
    died = -result.status if result.status < 0 else result.status - 128
    assert died not in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGABRT, signal.SIGKILL), result


def in_mount_namespace(script, *arguments):
    """The argv that runs a shell script in a mount namespace of its own. Skips where that is not permitted."""
    prefix = ["unshare", "-m", "--propagation", "private"]
    if not IS_ROOT:
        prefix = ["unshare", "-Ur", "-m", "--propagation", "private"]
    probe = "mount -t tmpfs none /mnt"
    if not shutil.which("unshare") or subprocess.run([*prefix, "sh", "-c", probe], capture_output=True).returncode:
        pytest.skip("mount namespaces are not permitted here")
    return [*prefix, "sh", "-ec", script, "sh", *arguments]


def as_nobody(argv):
    """The argv that runs argv as an ordinary user without privileges; needs root."""
    return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--inh-caps=-all", *argv]


def public_python():
    """A Python that an ordinary user can reach, library included. Skips where there is none."""
    for python in (PYTHON, "/usr/bin/python3"):
        if os.path.exists(python):
            library = subprocess.run([python, "-c", "import os; print(os.__file__)"], capture_output=True, text=True)
            reached = subprocess.run(as_nobody(["cat", library.stdout.strip()]), cwd="/", capture_output=True)
            if reached.returncode == 0:
                return os.path.realpath(python)
    pytest.skip("an ordinary user cannot reach any Python here")


def cc(source, target, *options):
    """Compile a C source text. Skips without a compiler. Returns the target."""
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    done = subprocess.run(
        ["cc", "-O1", "-Wall", "-o", target, "-x", "c", "-", *options], input=source.encode(), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return target


def seeded():
    """A random state for a walk through many cases, which SNAPBOOT_SEED repeats. Returns it and the words that say so; prints them."""
    seed = int(os.environ.get("SNAPBOOT_SEED", random.randrange(2**32)))
    words = f"SNAPBOOT_SEED={seed}"
    print(words)
    return random.Random(seed), words


def sampled(kinds):
    """A quarter of what a walk goes through, in the same order: for kinds of which each takes seconds. All of it in the long walks, which
    SNAPBOOT_STEPS asks for."""
    state, _ = seeded()
    if "SNAPBOOT_STEPS" in os.environ:
        return kinds
    chosen = sorted(state.sample(range(len(kinds)), (len(kinds) + 3) // 4))
    return [kinds[index] for index in chosen]


def read(image):
    """The bytes of an image."""
    return bytearray(pathlib.Path(image).read_bytes())


def write(path, content):
    """Write an executable file that only its owner may write. Returns its path."""
    path = pathlib.Path(path)
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    path.chmod(0o755)
    return path


def launcher():
    """The launcher of this installation."""
    installed = SNAPBOOT.parent.parent / "libexec/snapboot/snapboot-launcher"
    return installed if installed.exists() else SNAPBOOT.with_name("snapboot-launcher")
