"""The launcher's stacks: nothing lies right below them, so who overruns one ends by a signal, and never writes over anything."""

import contextlib
import ctypes
import os
import re
import signal

import pytest
from common.support import launcher

TRACEME, GETREGS, SETREGS, CONT, STEP, GETSIGINFO = 0, 12, 13, 7, 9, 0x4202
PAGE = 4096
# image::RESERVED_START, and where a launcher that was started by itself ends.
OWN = range(0x1000_0000_0000, 0x1000_00F0_0000)
# Of the kernel's user_regs_struct, 27 words.
WORDS, RSP = 27, 19

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, data=0):
    if libc.ptrace(request, pid, 0, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace request {request}")


@contextlib.contextmanager
def started():
    """A launcher that was executed and has not run one instruction yet, as a process number."""
    path = str(launcher())
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(OSError):
            ptrace(TRACEME, 0)
            os.execv(path, [path])
        os._exit(9)
    try:
        assert os.WIFSTOPPED(os.waitpid(pid, 0)[1])
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def own_memory(pid):
    """The launcher's mappings: ranges, and whether they may be accessed at all."""
    with open(f"/proc/{pid}/maps") as maps:
        rows = [re.match(r"(\w+)-(\w+) (....)", line).groups() for line in maps]
    rows = [(range(int(start, 16), int(end, 16)), access) for start, end, access in rows]
    return [(place, access) for place, access in rows if place.start in OWN]


def stacks(pid):
    """Writable memory that comes from no file, from which the kernel has made the segments of stacks."""
    return [place for place, access in own_memory(pid) if "w" in access and len(place) >= 16 * PAGE]


def registers(pid):
    words = (ctypes.c_ulong * WORDS)()
    ptrace(GETREGS, pid, ctypes.addressof(words))
    return words


def to_own_stack(pid):
    """Runs the first instructions, until the stack is the launcher's own. Returns its range."""
    for _ in range(10):
        ptrace(STEP, pid)
        os.waitpid(pid, 0)
        stack = [place for place in stacks(pid) if place.start < registers(pid)[RSP] <= place.stop]
        if stack:
            return stack[0]
    pytest.fail("the launcher stays on the kernel's stack")


def test_there_is_nothing_below_a_stack():
    with started() as pid:
        found = stacks(pid)
        assert len(found) == 2, "the launcher's, and that of its helper process"
        for stack in found:
            below = stack.start - PAGE
            assert all(below not in place or access == "---p" for place, access in own_memory(pid))


def test_an_overrun_of_the_stack_is_the_end():
    with started() as pid:
        stack = to_own_stack(pid)
        words = registers(pid)
        # As if the rest of it were used up.
        words[RSP] = stack.start + 64
        ptrace(SETREGS, pid, ctypes.addressof(words))
        ptrace(CONT, pid)
        status = os.waitpid(pid, 0)[1]
        assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGSEGV
        about = (ctypes.c_ulong * 16)()
        ptrace(GETSIGINFO, pid, ctypes.addressof(about))
        # si_addr of siginfo_t.
        assert about[2] in range(stack.start - PAGE, stack.start)
        ptrace(CONT, pid, signal.SIGSEGV)
        status = os.waitpid(pid, 0)[1]
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV
