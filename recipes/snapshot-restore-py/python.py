"""Hooks of AWS's package: those of `register_before_snapshot` come before the image is written, last registered first, those of
`register_after_restore` after a thaw, first registered first."""

import sys

from .recipes import Defaults

BEFORE, AFTER = "register_before_snapshot", "register_after_restore"


class Recipe(Defaults):
    """See Defaults."""

    hooks_before = (BEFORE,)

    def before_freeze(self):
        """See Defaults."""
        return [(BEFORE, *hook) for hook in reversed(_hooks("get_before_snapshot"))]

    def after_thaw(self):
        """See Defaults."""
        return [(AFTER, *hook) for hook in _hooks("get_after_restore")]


def _hooks(getter):
    """What that function of the package returns: functions, arguments and keywords."""
    get = getattr(sys.modules.get("snapshot_restore_py"), getter, None)
    return [] if get is None else list(get())
