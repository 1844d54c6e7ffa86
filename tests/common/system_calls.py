"""Kills programs before each of the system calls with which they write. The calls come from strace, which also kills."""

import re
import shutil
import subprocess

import pytest

from . import support
from .image_file import workloads

CHANGES = (
    "mkdir,mkdirat,open,openat,creat,write,pwrite64,copy_file_range,sendfile,ftruncate,fchmod,fsync,fdatasync,rename,renameat,"
    "renameat2,unlink,unlinkat,rmdir"
)

# The start of a command line with a boot archive. Where memory is limited, the boot writes at its end itself; elsewhere a thread writes
# when the boot pauses, which on a busy machine is anywhere, and the calls of a thread are not counted here.
WITHOUT_THREAD = ["sh", "-c", 'ulimit -v 16000000; exec "$@"', "sh"]


def strace(*options):
    """The beginning of an strace command line. Skips where there is no strace, or where it may not trace."""
    try:
        workloads.install_debian_packages(("strace",))
    except workloads.Unavailable as reason:
        pytest.skip(str(reason))
    if not shutil.which("strace") or subprocess.run(["strace", "true"], capture_output=True).returncode:
        pytest.skip("strace is not there or may not trace")
    return ["strace", "-qq", "-y", *options]


def calls(argv, env, folder, log):
    """The calls by which a program changes something in a folder: name, number among the calls of that name, and the line."""
    result = support.run([*strace("-e", f"trace={CHANGES}", "-o", log), *argv], env=env, log=False)
    assert result.status == 0, result
    numbers, found = {}, []
    for line in log.read_text().splitlines():
        name = re.match(r"\w*", line).group()
        numbers[name] = numbers.get(name, 0) + 1
        opens = name in ("open", "openat", "creat")
        if name and str(folder) in line and not (opens and "O_CREAT" not in line):
            found.append((name, numbers[name], line))
    return found


def killed_before(argv, env, name, number):
    """Run a program that is killed when it makes that call."""
    inject = strace("-o", "/dev/null", "-e", f"trace={CHANGES}", "-e", f"inject={name}:signal=SIGKILL:when={number}")
    return support.run([*inject, *argv], env=env, log=False)


def thinned(found):
    """Of each run of equal calls the first, the middle and the last; of a long run (the pages) one shortly before its end, since the
    next freeze may have a call less."""
    runs = []
    for call in found:
        if runs and runs[-1][0][0] == call[0]:
            runs[-1].append(call)
        else:
            runs.append([call])
    return [run[index] for run in runs for index in sorted({0, len(run) // 2, len(run) - 1 - len(run) // 8})]
