"""A sample of `make kernels` and `make cpus`, where QEMU is: an image of this machine under other kernels, on CPUs with and without its
level."""

import os
import shutil

import cpus
import kernels
import pytest
import workloads
from common import support

pytestmark = pytest.mark.sample(1, whole=True)

PROGRAM = """\
import json, os, sys, threading, time
if __name__ == "__main__":
    thread = threading.Thread(target=print, args=["in a thread"])
    thread.start(), thread.join()
    print(json.dumps(sys.argv[1:]), time.monotonic() <= time.monotonic(), os.waitpid(os.spawnlp(os.P_NOWAIT, "true", "true"), 0)[1])
    sys.exit(7)
"""
ARGUMENTS = ["one", "two words"]
# A kernel, a model of CPU, and whether that has the level of the image.
MACHINES = {"a kernel of 2021": ("bullseye", "Haswell", True), "a CPU below the level": ("bookworm", "Westmere", False)}


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    if not (shutil.which("qemu-system-x86_64") and any(map(os.path.exists, kernels.VIRTIOFSD)) and support.IS_ROOT):
        pytest.skip("other kernels cannot be tried here: that needs root, qemu-system-x86_64 and virtiofsd")
    folder = tmp_path_factory.mktemp("emulated")
    (folder / "program.py").write_text(PROGRAM)
    command = [support.PYTHON, "-I", str(folder / "program.py")]
    frozen = support.frozen(folder / "program.img", command, "--cpu", "v3", env=kernels.environment())
    return str(frozen), support.run([*command, *ARGUMENTS], env=kernels.environment(), log=False)


@pytest.mark.parametrize("machine", MACHINES)
def test_starts_elsewhere(machine, image, monkeypatch):
    suite, cpu, has_level = MACHINES[machine]
    path, ordinary = image
    name = f"sample-{cpu}"
    # On a busy machine an emulated kernel with several CPUs may hang while it boots.
    monkeypatch.setitem(kernels.KERNELS, name, kernels.Kernel(suite, cpu=cpu, count=1))
    monkeypatch.setattr(kernels, "BOOTS", 1)
    monkeypatch.setattr(kernels, "BOOT_SECONDS", 120)
    variables = {"SNAPBOOT_ON_STALE": "error"} if has_level else {"SNAPBOOT_LOG": "1"}
    try:
        outcomes = kernels.there(name, {"start": ([path, *ARGUMENTS], variables)})
    except workloads.Unavailable as reason:
        pytest.skip(f"other kernels cannot be tried here: {reason}")
    status, shown = outcomes["start"]
    assert status == ordinary.status and shown.endswith(ordinary.out), outcomes
    assert shown == ordinary.out if has_level else cpus.STALE in shown, outcomes
    assert outcomes["release"][1] != os.uname().release
