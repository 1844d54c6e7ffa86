"""What the process itself holds and no object leads to, for object_paths.py. Use this only in a process that is not frozen: reading some of
it changes it.
"""

import posix
import sys

from .request import read_file


def of_interpreter():
    """Returns pairs of an object that the interpreter's C code keeps, and its name."""
    for module, names in SETTINGS.items():
        for name in names:
            ask = getattr(sys.modules.get(module), name, None)
            if ask is not None:
                yield ask(), "%s.%s()" % (module, name)


def of_process():
    """Returns pairs of a value that the kernel keeps for the process, and its name."""
    mask = posix.umask(0o077)
    posix.umask(mask)
    yield mask, "os.umask()"
    # Not os.getpriority(): to the recorder that would be a read of the program.
    yield read_file(b"/proc/self/stat").rpartition(b")")[2].split()[NICE], "the nice value"
    for line in read_file(b"/proc/self/status").splitlines():
        if line.startswith(OF_STATUS):
            yield line.decode(), "the " + line.decode().partition(":")[0]
    yield read_file(b"/proc/self/limits").decode(), "the limits"
    for number in posix.listdir("/proc/self/fd"):
        try:
            if int(number) > 2:
                yield posix.readlink("/proc/self/fd/" + number), "descriptor " + number
                yield read_file(b"/proc/self/fdinfo/" + number.encode()).split(b"\n")[0], "where descriptor %s stands" % number
        except OSError:
            pass  # the descriptor of the listing itself


# Functions that return settings of the interpreter, by module.
SETTINGS = {
    "sys": ("getrecursionlimit", "getswitchinterval", "get_int_max_str_digits", "getprofile", "gettrace", "getdlopenflags"),
    "atexit": ("_ncallbacks",),
    "faulthandler": ("is_enabled",),
    "threading": ("stack_size",),
    "decimal": ("getcontext",),
}
# The place of the nice value among the fields behind the process' name: see proc_pid_stat(5).
NICE = 16
# The relevant lines of a process' status: see proc_pid_status(5).
OF_STATUS = (b"SigBlk:", b"SigIgn:", b"SigCgt:", b"NoNewPrivs:", b"THP_enabled:", b"Groups:", b"CapEff:")
