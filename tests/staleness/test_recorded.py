"""That nothing a boot asks for gets lost: each path that strace shows of an ordinary start is in the image, or has a named reason.

strace knows nothing of the recorder, and the ordinary start nothing of a front end, so neither can hide what the other misses.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from common import support

sys.path.insert(0, str(support.ROOT / "tools"))

import workloads  # noqa: E402

pytestmark = pytest.mark.sample(12, whole=True)

# Why a path that was looked up is no input: what it looks like, and the reason.
REASONS = [
    (r"/(proc|sys|dev)(/.*)?", "a file of the kernel: named in `system`"),
    (r".*/__pycache__(/.*)?", "bytecode, or where it lies: the source counts"),
    (r".*/log/[^/]*\.log", "written by the boot"),
    (r".*/\.sprockets-manifest-[0-9a-f]{32}\.json", "a name drawn by chance: another one in every start"),
    (r"/", "always there"),
]
CALLS = "open,openat,stat,lstat,newfstatat,statx,access,faccessat,faccessat2,readlink,readlinkat,execve,chdir"
# openat(AT_FDCWD</cwd>, "path", ...
LINE = re.compile(r"^\d+\s+(?P<call>\w+)\((?:AT_FDCWD<(?P<here>.*?)>, |\d+<(?P<at>.*?)>, )?(?P<path>\"(?:[^\"\\]|\\.)*\")")


def asked(argv, cwd, env, tmp_path):
    """Every path that a command and its children ask the kernel for."""
    if not shutil.which("strace"):
        pytest.skip("needs strace (apt-get install strace)")
    trace = tmp_path / "trace"
    strace = ["strace", "-f", "-y", "-s", "4096", "-e", f"trace={CALLS}", "-o", trace]
    done = subprocess.run([*strace, *argv], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = set()
    for line in trace.read_text(errors="surrogateescape").splitlines():
        match = LINE.match(line)
        if match and ast.literal_eval(match["path"]):
            base = match["here"] or match["at"] or str(cwd)
            found.add(os.path.normpath(os.path.join(base, ast.literal_eval(match["path"]))))
    return found


class Image:
    """What an image says that it depends on."""

    def __init__(self, path):
        shown = subprocess.run([support.SNAPBOOT, "inspect", "--json", path], capture_output=True, check=True)
        content = json.loads(shown.stdout)
        self.files = {row["path"] for row in content["inputs"] + content["files"]}
        self.directories = {row["path"]: {answer["name"] for answer in row["answers"]} for row in content["directories"]}
        self.system = content["system"]

    def knows(self, path):
        """Whether the image depends on what is at that path."""
        if path in self.files or path in self.directories or os.path.realpath(path) in self.files:
            return True
        parts = path.split("/")
        places = (("/".join(parts[:cut]) or "/", "/".join(parts[cut:])) for cut in range(1, len(parts)))
        return any(name in self.directories.get(place, ()) for place, name in places)


def check(image, paths, own=()):
    """Fail for each path that is neither in the image nor has a reason, with all of them."""
    known = Image(image)
    reasons = [*REASONS, *own]
    used = {reason for pattern, reason in reasons for path in paths if re.fullmatch(pattern, path)}
    lost = [path for path in sorted(paths) if not known.knows(path)]
    lost = [path for path in lost if not any(re.fullmatch(pattern, path) for pattern, _ in reasons)]
    assert not lost, "\n".join([f"{len(lost)} of {len(paths)}:", *lost[:50]])
    assert used and known.system and len(paths) > 100


def workload(name, **options):
    try:
        return workloads.prepare(name, **options)
    except workloads.Unavailable as reason:
        pytest.skip(f"{name}: {reason}")


def test_the_web_trio(tmp_path):
    web = workload("web", python=support.PYTHON)
    env = support.environment(PYTHONDONTWRITEBYTECODE="1")
    modules = "flask,requests,pymongo"
    # In a boot for a level the loader looks into no folder of a higher one.
    options = ["--preload", modules, "--cpu", "native"]
    image = support.frozen(tmp_path / "web.img", [web["python"]], *options, env=env, cwd=tmp_path)
    paths = asked([web["python"], "-c", f"import {modules}"], tmp_path, env, tmp_path)
    check(image, paths, [(re.escape(str(tmp_path)), "the working directory: looked into after each thaw")])


def test_rails(tmp_path):
    rails = workload("rails")
    env = support.environment(RAILS_ENV="production")
    preload = ["--preload", "./config/environment", "--cpu", "native"]
    image = support.frozen(tmp_path / "rails.img", ["bin/rails"], *preload, env=env, cwd=rails["dir"])
    paths = asked([rails["ruby"], "-r", "./config/environment", "-e", "1"], rails["dir"], env, tmp_path)
    check(image, paths)
