"""Imports that a child tries first, so that the booting process stays clean of those that it does not take."""

import posix

from .fork import fork


def in_child(work, folder, importers, reads):
    """Calls `work` (without arguments) in a child that ends with it, and waits for that end. Raises OSError.

    folder: the control directory (bytes). importers and reads: the Importers and the Reads that watch.
    """
    child = fork()
    if not child:
        # What it reads is in no image. The parent reads it again with the imports that it takes.
        reads.tell_phase(b"rehearsal")
        importers.forget_lists()
        try:
            work()
        finally:
            try:
                importers.add_to(folder + b"/importers")
            finally:
                posix._exit(0)
    posix.waitpid(child, 0)
    reads.tell_phase(b"program")


def hear_output(folder):
    """Gives the child nothing to read, and a file for all that it writes. Returns the file's descriptor."""
    heard = posix.open(folder + b"/rehearsal", posix.O_RDWR | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o600)
    nothing = posix.open("/dev/null", posix.O_RDONLY)
    posix.dup2(nothing, 0)
    posix.close(nothing)
    posix.dup2(heard, 1)
    posix.dup2(heard, 2)
    return heard
