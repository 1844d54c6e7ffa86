"""A copy of what package managers change, for this process and its children alone: tests go on undisturbed while something is installed.

Whatever a package brings, the files of PLACES change for everybody: the dynamic loader's cache, the lists of users, the folders
in which RubyGems and Python look for what is installed. An image that was made before is stale then, and rightly so.
"""

import ctypes
import errno
import glob
import os
import pathlib
import subprocess

PLACES = (
    "/etc",
    "/usr/lib/python3/dist-packages",
    "/usr/lib/ruby",
    "/usr/lib/*-linux-gnu/ruby",
    "/usr/lib/*-linux-gnu/rubygems-integration",
    "/usr/share/rubygems-integration",
    "/var/lib/gems",
)
# From <sched.h> and <sys/mount.h>.
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000


libc = ctypes.CDLL(None, use_errno=True)


def enter(folder: pathlib.Path) -> None:
    """Copy PLACES into `folder` and put the copies in their place, in a mount namespace of this process, which must have one thread.

    Raises OSError, and nothing has changed, where that is not permitted.
    """
    try_in_a_child(folder)
    enter_namespace()
    for place in sorted(place for pattern in PLACES for place in glob.glob(pattern) if not os.path.islink(place)):
        copy = folder / place[1:]
        copy.parent.mkdir(parents=True, exist_ok=True)
        # What an ordinary user may not read is left out; cp says so.
        subprocess.run(["cp", "-a", place, copy.parent], check=os.geteuid() == 0, stderr=subprocess.DEVNULL)
        mount(copy, place, MS_BIND)


def try_in_a_child(folder: pathlib.Path) -> None:
    """Some kernels allow the namespace and nothing in it. Raises OSError then."""
    child = os.fork()
    if child == 0:
        try:
            enter_namespace()
            mount(folder, "/etc", MS_BIND)
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
    if number := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        why = "/ is no mount point, as in a chroot" if number == errno.EINVAL else os.strerror(number)
        raise OSError(number, why)


def enter_namespace() -> None:
    """A mount namespace; for an ordinary user, in a user namespace that knows no other user."""
    user, group = os.geteuid(), os.getegid()
    call("unshare", CLONE_NEWNS | (CLONE_NEWUSER if user else 0))
    if user:
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    mount("none", "/", MS_REC | MS_PRIVATE)


def mount(source: str | pathlib.Path, target: str, flags: int) -> None:
    call("mount", os.fsencode(source), os.fsencode(target), None, flags, None)


def call(name: str, *arguments) -> None:
    """A function of the C library. Raises OSError when it fails."""
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
