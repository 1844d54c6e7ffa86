"""Servers that tests start."""

import contextlib
import os
import signal
import socket
import subprocess

from .waiting import SECONDS


def free_port():
    """A port of 127.0.0.1 on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def started(argv, cwd, env, log):
    """A process without input, whose output is in the file `log`. It is killed at the end, with its children."""
    with open(log, "w") as file:
        process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(SECONDS)
