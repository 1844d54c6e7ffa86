"""Makes images, once for each command, and the commands that they stand for."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SNAPBOOT = pathlib.Path(os.environ.get("SNAPBOOT", ROOT / "target/release/snapboot"))
OLDEST = (3, 8)

sys.path.append(str(ROOT / "tools"))
import workloads  # noqa: E402
from workloads import Unavailable  # noqa: E402, F401


class CannotFreeze(Exception):
    """`snapboot freeze` failed; the text is what it said."""


def interpreters():
    """The interpreters to test: name -> path. This CPython first, then the others that pyenv has, then Ruby."""
    # One of a free-threaded build ends with `t`.
    found = {"python%d.%d" % sys.version_info[:2] + "t" * ("t" in sys.abiflags): os.path.realpath(sys._base_executable)}
    versions = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    for folder in sorted(versions.glob("3.*"), key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)]):
        version = tuple(int(number) for number in re.findall(r"\d+", folder.name)[:2])
        if version >= OLDEST and (folder / "bin/python").exists():
            found.setdefault("python%d.%d" % version, str(folder / "bin/python"))
    ruby = shutil.which("ruby")
    if ruby:
        version = subprocess.run([ruby, "-e", "print RUBY_VERSION[/\\d+\\.\\d+/]"], stdout=subprocess.PIPE, text=True)
        found["ruby" + version.stdout] = ruby
    return found


def with_packages(workload, interpreter):
    """The interpreter of a workload's virtual environment. Raises workloads.Unavailable."""
    return workloads.prepare(workload, interpreter)["python"]


class Images:
    """The images of a test session in a folder. `kept`: those of an earlier session, maybe on another machine, are used again; else those
    that hold one case's program are dropped for the next case's."""

    def __init__(self, folder, kept=False):
        self.folder, self.kept = folder, kept
        self.made = {}

    def image_of(self, command, preload, env, cwd, for_case=None, options=()):
        """The image of a command. `for_case`: names the case that it is for, unless it is for many; with these options. Raises
        CannotFreeze."""
        key = repr((command, preload, for_case, options))
        if key not in self.made:
            name = f"{zlib.crc32(key.encode()):08x}.img" if self.kept or for_case is None else "case.img"
            if for_case is not None and not self.kept:
                self.made = {key: image for key, image in self.made.items() if not image.endswith("case.img")}
            there = self.kept and (self.folder / name).exists()
            self.made[key] = str(self.folder / name) if there else self._freeze(name, command, preload, env, cwd, options)
        return self.made[key]

    def _freeze(self, name, command, preload, env, cwd, options=()):
        image = self.folder / name
        options = [*options, "--preload", ",".join(preload)] if preload else [*options]
        options += shlex.split(os.environ.get("SNAPBOOT_FREEZE_OPTIONS", ""))
        done = subprocess.run(
            [SNAPBOOT, "freeze", "-o", image, *options, "--", *command],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=600,
        )
        if done.returncode != 0:
            raise CannotFreeze(done.stdout.decode(errors="replace"))
        return str(image)
