"""Hooks for programs that Snapboot freezes.

Snapboot boots a Python program once, writes the booted process to an image, and continues it in milliseconds at every
later start. Most programs need nothing from this module. One that holds something that must not be in the image, or
must be made anew in each process, says so here:

    import snapboot

    @snapboot.before_freeze
    def close():
        pool.close()

    @snapboot.after_thaw
    def reopen():
        pool.open()

In a process that is neither being frozen nor thawed the hooks do nothing, so a program may use them always.
"""

import _codecs

__all__ = ["after_thaw", "before_freeze", "defer", "freeze_point", "state"]

# Equal to the version in the workspace's Cargo.toml; a test compares them.
__version__ = "0.1.0"

# The front end that is freezing this process is found in the registry of codec error handlers: that is a place that each
# interpreter has, that is reachable by name, and that shows in no listing that a program could stumble over.
try:
    _front_end = _codecs.lookup_error("snapboot.front_end")
except LookupError:
    _front_end = None


def before_freeze(function):
    """Have `function` called (without arguments) before the image is written; the last one registered is called first.

    For what an image cannot hold: connections, threads, locks on files. Usable as a decorator: returns `function`.
    """
    if _front_end is not None:
        _front_end.before_freeze(function)
    return function


def after_thaw(function):
    """Have `function` called (without arguments) after each thaw; the first one registered is called first.

    Usable as a decorator: returns `function`.
    """
    if _front_end is not None:
        _front_end.after_thaw(function)
    return function


def defer(function):
    """Call `function` (without arguments) now in an ordinary start, and at every thaw in a frozen program.

    For what belongs to the start of a program but must not be frozen, such as reading the time or connecting. It takes its
    turn among the `after_thaw` hooks. Usable as a decorator: returns `function`.
    """
    if state() == "freezing":
        _front_end.after_thaw(function)
    else:
        function()
    return function


def freeze_point():
    """Freeze here, instead of right before the program's main part runs.

    While freezing, the image is written here, and each thaw continues from here. Everywhere else, and after the first
    call, this does nothing. Raises RuntimeError while freezing when it is called outside the main thread.
    """
    if state() == "freezing":
        _front_end.freeze_point()


def state():
    """Which process this is: "ordinary", "freezing" (its image is still to be written) or "thawed"."""
    return "ordinary" if _front_end is None else _front_end.state
